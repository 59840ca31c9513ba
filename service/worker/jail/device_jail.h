/* The lock-down of a device worker. The device is open, its driver loaded and its threads run: from here on the process needs little and
 * gets no more, so that a kernel that takes over the worker does not get the machine.
 *
 * Without a driver (`cpu`) that is a list of system calls; all others kill. With a driver it is the list learnt for its build
 * (device_calls_driver.def); for other builds, and for clients
 * of a server, only calls that lead out of the process are refused. Built with a sanitizer, which needs
 * more than any list, a worker without a driver gets the deny-list, too, and logs that. */
#pragma once

#include "device/device.h"
#include "ipc/message.h"

struct device_jail {
    const struct device_driver *driver;         /* the device is reached through it; NULL: it has none */
    const char                 *driver_build;   /* "580.95.05"; "" = unknown. Borrowed */
    bool                        device_monitor; /* serves no caller, and reads sensors through files: only the deny-list */
    bool        makes_code; /* its device compiles kernels: memory that it wrote becomes executable, and then cannot be written */
    bool        sharing;    /* there is a socket for descriptors */
    const char *server;     /* the folder of the server that the driver is a client of; NULL: of none. Borrowed */
    uint64_t    memory;     /* host memory in bytes that is the device's; 0: it has memory of its own */
    bool        optional;   /* leave out what this machine does not offer, and log it */
};

/* Before the device is opened: files, for all threads that come later. Only without a driver: the needs of one before it is open are
 * unknown. */
void device_jail_prepare(const struct device_jail *j);
/* Once, by the command thread, after everything is open and every thread has started. *level: the sandbox from now on. */
enum status device_jail_enter(const struct device_jail *j, enum worker_sandbox *level, struct problem *why);
