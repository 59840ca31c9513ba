/* `gpurestd --check-config`: checks whether a service could start with these settings on this machine as this user. */
#pragma once

struct config;

/* 0, or 2 after one line on standard error per error. What may be right when the service starts, such as a folder that the service manager
 * creates, is a comment on standard output instead. Nothing is started or left open. */
int config_check(const struct config *c);
