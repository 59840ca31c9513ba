/* The roles of the executable that load a device backend. Each is a process of its own. */
#pragma once

/* Role `worker`: --backend=NAME --index=N [--uuid=ID, which decides where indices have changed] [--spin-cpus=N] [--device-monitor]
 * [--allow-no-sandbox] [--mps=FOLDER] [settings of backends]; descriptors as in ipc/worker_fds.h. Serves commands until it is told to
 * end, its context is lost, or its parent is gone. Returns the exit code. */
int device_worker_main(int argc, char **argv);

/* Role `count`: --backends=LIST|auto [settings of backends]; writes one row of struct device_count per backend and ends. */
int device_count_main(int argc, char **argv);

/* The value of --name=value among argv[1...], or NULL. Borrowed. */
const char *worker_argument(int argc, char **argv, const char *name);
/* Offers each --NAME=VALUE to the backends: their settings are among them. */
void worker_arguments_set(int argc, char **argv);
