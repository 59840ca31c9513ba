/* The lock-down of a device worker: the device is open, its driver loaded and its threads run; from here on the process needs little, and
 * gets no more, so that a caller whose kernel took the worker over has not got the machine.
 *
 * Without a driver (`cpu`) that is a list of system calls, everything else kills. With one it is the list that was learnt for the driver's build
 * (device_calls_driver.def); for other builds only what leads out of the process is refused. Sanitizers need more than any list: built with
 * them, a worker without a driver gets the deny-list, too, and says so. */
#ifndef GPUREST_WORKER_DEVICE_JAIL_H
#define GPUREST_WORKER_DEVICE_JAIL_H

#include "device/device.h"
#include "ipc/message.h"

struct device_jail {
    const struct device_driver *driver;         /* the device is reached through it; NULL: it has none */
    const char                 *driver_build;   /* "580.95.05"; "" = unknown. Borrowed */
    bool                        device_monitor; /* serves no caller, and reads sensors through files: never more than the deny-list */
    bool                        sharing;        /* there is a socket for descriptors */
    uint64_t                    memory;         /* bytes of the host's memory that the device may be; 0: it has a memory of its own */
    bool                        optional;       /* what this machine does not offer is left out, and said in the log */
};

/* Before the device is opened: files, for all threads that come after. Only without a driver, whose needs before it is open are not known. */
enum status device_jail_prepare(const struct device_jail *j, struct problem *why);
/* Once, by the command thread, after everything is open and every thread has started. *level: what holds from now on. */
enum status device_jail_enter(const struct device_jail *j, enum worker_sandbox *level, struct problem *why);

#endif
