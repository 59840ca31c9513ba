/* `gpurestd healthcheck`: is the service of this machine, or of this container, ready? */
#pragma once

/* 0: ready. 1: it is not, or does not answer; a line on standard error says why. 2: wrong arguments or settings. */
int healthcheck_main(int argc, char **argv);
