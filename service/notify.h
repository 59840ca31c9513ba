/* Notifies the service manager: datagrams to the socket that NOTIFY_SOCKET names, as in sd_notify(3). */
#pragma once

#include <stdbool.h>

/* Stores the socket's name and removes it from the environment: workers must not notify. Before any thread starts. */
void notify_begin(void);
/* Puts it back, for the process that takes the place of this one. False: no memory. */
bool notify_hand_over(void);
/* Does nothing without a manager, and does not wait for one that does not listen. `state` is lines of NAME=VALUE. Any thread. */
void notify(const char *state);
/* RELOADING=1 with the current time, as the protocol requires; notify("READY=1") follows when the reload is done. */
void notify_reloading(void);
