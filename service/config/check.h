/* `gpurestd --check-config`: whether a service could start with these settings, here and as this user. */
#ifndef GPUREST_CONFIG_CHECK_H
#define GPUREST_CONFIG_CHECK_H

struct config;

/* 0, or 2 after a line on standard error for everything that is wrong. What may come right before the service starts, such as a folder
 * that its manager makes, is a comment on standard output instead. Starts, opens and keeps nothing. */
int config_check(const struct config *c);

#endif
