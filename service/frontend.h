/* The front-end process: serves HTTP, owns the sessions and all workers. */
#pragma once

struct config;

/* Serves until SIGTERM or SIGINT, tears everything down and returns the exit code. Call it before any thread is started. `config` was made of
 * these arguments, which SIGHUP has read again. */
int frontend_main(const struct config *config, int argc, char *const argv[]);
