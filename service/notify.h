/* Tells the service manager what the service does: datagrams to the socket that NOTIFY_SOCKET names, as sd_notify(3) describes. */
#ifndef GPUREST_NOTIFY_H
#define GPUREST_NOTIFY_H

/* Remembers the socket's name and takes it out of the environment: workers have nothing to say there. Before any thread. */
void notify_begin(void);
/* Without a manager nothing happens; one that does not listen is not waited for. `state` is lines of NAME=VALUE. Any thread. */
void notify(const char *state);
/* RELOADING=1 with the time that the manager compares; notify("READY=1") follows when it is done. */
void notify_reloading(void);

#endif
