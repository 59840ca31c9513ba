/* One line per event on standard error: time, level, role, category, message. Thread-safe; lines never interleave. */
#ifndef GPUREST_BASE_LOG_H
#define GPUREST_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Once, before threads start. `role` is a static string, e.g. "frontend". */
void log_init(const char *role, enum log_level most);
/* `category` names the folder: "http", "pool", ... Long lines are cut. Control bytes in the text are written as '?'. No secrets. */
void log_write(enum log_level level, const char *category, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
