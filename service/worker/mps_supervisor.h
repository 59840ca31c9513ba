/* The role of the executable that runs a fault domain's MPS control daemon. */
#pragma once

/* Role `mps`: --control=PATH of nvidia-cuda-mps-control, --folder=FOLDER of the daemon's own, with the folders "pipe" and "log"; descriptors
 * as in ipc/worker_fds.h. Ends when the front-end closes its end of the pipe or is gone, or when the daemon or its server has ended;
 * nothing of them is left then, the folder included. Returns the exit code. */
int mps_supervisor_main(int argc, char **argv);
