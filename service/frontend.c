/* Creates the parts of the front-end, serves until told to stop, drains, and destroys the parts in reverse order. */
#include "frontend.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/admin/drain.h"
#include "api/app.h"
#include "api/endpoints.h"
#include "api/hibernate.h"
#include "api/snapshot/state.h"
#include "base/buf.h"
#include "base/log/log.h"
#include "base/log/own_file.h"
#include "base/threads/spin.h"
#include "base/version.h"
#include "config/bind.h"
#include "config/fleet.h"
#include "handover.h"
#include "http/filter/idempotency.h"
#include "notify.h"
#include "pool/domains/find.h"
#include "session/code/code_cache.h"
#include "session/events/events.h"
#include "upgrade.h"
#include "worker/jail/privileges.h"

enum { DRAIN_POLL_MS = 50, PORT_FILE_BYTES_MAX = 64 * 1024 };

/* Every part or NULL, in the order in which they are made. */
enum { DEVICE_SETTINGS = 11 };

struct frontend {
    const struct config *config;
    int                  argc;
    char *const         *argv;    /* which config was made of */
    bool                 rereads; /* it has a file that can be read again */
    struct config        again;   /* as last read again; zeroed before */
    const char          *listen[LISTENERS_MAX];
    unsigned             listen_count;
    int                  signals; /* signalfd, -1 = none */
    struct upgrade       upgrade;
    bool                 restored;    /* sessions of an earlier process */
    bool                 is_replaced; /* all is saved, and another executable takes the place of this one */
    int                  late_signal; /* that came while an upgrade was prepared; 0 = none */
    struct app           app;         /* borrows all below */
    struct server       *server;
    struct state        *state;
    char                *device_arguments[DEVICE_SETTINGS + 1]; /* for workers; each owned */
    char                 mps_control[MPS_PATH_BYTES];
    struct problem       mps_missing;
};

static bool refuse_start(const char *what, const struct problem *why)
{
    const char *colon = why->detail[0] ? ": " : "";

    if (log_is_json())
        log_critical("frontend", "%s%s%s", what, colon, why->detail);
    else
        fprintf(stderr, "gpurestd: %s%s%s\n", what, colon, why->detail);
    return false;
}

/* ---- creation ---- */

/* Each connection and each worker needs descriptors; the low soft limit only exists for select(). */
static void raise_file_limit(void)
{
    if (!privileges_limit_raise(RLIMIT_NOFILE))
        log_warn("frontend", "cannot raise the limit of open files");
}

/* Before any thread starts: threads inherit the mask, so that only the descriptor gets these signals. */
static bool take_signals(struct frontend *f)
{
    struct problem why = {0};
    sigset_t       set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR2);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) == 0)
        f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return f->signals >= 0 || refuse_start("cannot receive signals", &why);
}

static bool choose_addresses(struct frontend *f)
{
    struct problem why = {0};

    if (bind_check(f->config, &why))
        return refuse_start("not started", &why);
    if (f->config->listen.count > LISTENERS_MAX) {
        problem_set(&why, STATUS_INVALID_REQUEST, "too many addresses, at most %d are possible", LISTENERS_MAX);
        return refuse_start("--listen", &why);
    }
    for (unsigned i = 0; i < f->config->listen.count; i++)
        f->listen[f->listen_count++] = f->config->listen.items[i];
    if (f->listen_count == 0)
        f->listen[f->listen_count++] = LISTEN_DEFAULT;
    return true;
}

static bool check_fleet(const struct frontend *f)
{
    struct problem why = {0};

    if (fleet_check_node(f->config, &why))
        return refuse_start("--node", &why);
    if (fleet_check_endpoint(f->config, &why))
        return refuse_start("--endpoint", &why);
    return !fleet_check_moves(f->config, &why) || refuse_start("--move-to", &why);
}

static bool check_sandbox(const struct frontend *f)
{
    struct problem why = {0};

    if (privileges_check(&why) == STATUS_OK)
        return true;
    if (!f->config->allow_no_sandbox)
        return refuse_start("not started", &why);
    log_warn("frontend", "workers and compilers run without a sandbox: clients that send code can do whatever this service can");
    return true;
}

/* Repeats the warning here, because an image or a unit may have set the flag unseen. */
static void warn_if_open(const struct frontend *f)
{
    for (unsigned i = 0; i < f->listen_count; i++)
        if (!f->config->tokens[0] && !address_is_local(f->listen[i]))
            log_warn("auth", "no tokens are configured: everyone who reaches %s can use this service", f->listen[i]);
}

static bool make_auth(struct frontend *f)
{
    const char    *path = f->config->tokens;
    struct problem why = {0};

    return auth_create(&f->app.auth, path[0] ? path : NULL, &why) == STATUS_OK || refuse_start("--tokens", &why);
}

static bool make_compiler(struct frontend *f)
{
    const struct config  *c = f->config;
    struct problem        why = {0};
    struct compile_config config = {.executable = "/proc/self/exe",
                                    .nvrtc_path = c->nvrtc[0] ? c->nvrtc : NULL,
                                    .include_path = c->cuda_include[0] ? c->cuda_include : NULL,
                                    .hip_path = c->libamdhip64[0] ? c->libamdhip64 : NULL,
                                    .jobs_max = (unsigned)c->compile_jobs,
                                    .callers_share = c->tokens[0] != '\0',
                                    .deadline_ms = COMPILE_DEADLINE_MS,
                                    .allow_no_sandbox = c->allow_no_sandbox,
                                    .keep_ready = !c->no_warm_compiler};

    if (compile_service_create(&f->app.compiler, &config))
        return refuse_start("cannot create the compile service", &why);
    if (compile_service_version(f->app.compiler)[0] == '\0')
        log_warn("frontend", "no runtime compiler was found: only PTX can be loaded");
    if (code_cache_create(&f->app.cache, c->cache[0] ? c->cache : NULL, c->cache_mib * 1024 * 1024))
        return refuse_start("not enough memory for the code cache", &why);
    return true;
}

/* Settings that are one backend's own: workers get them as they are. */
static bool make_device_arguments(struct frontend *f)
{
    const struct config *c = f->config;
    bool                 vendor = strcmp(c->vendor_libraries, "off") != 0;
    char                 threads[32];
    const struct {
        const char *name, *value; /* NULL: not set */
    } settings[DEVICE_SETTINGS] = {{"libcuda", c->libcuda},
                                   {"libamdhip64", c->libamdhip64},
                                   {"cublaslt", vendor ? c->libcublaslt : NULL},
                                   {"cufft", vendor ? c->libcufft : NULL},
                                   {"cusolver", vendor ? c->libcusolver : NULL},
                                   {"openblas", vendor ? c->libopenblas : NULL},
                                   {"fftw", vendor ? c->libfftw3 : NULL},
                                   {"fftwf", vendor ? c->libfftw3f : NULL},
                                   {"cpu-threads", threads},
                                   {"cpu-jit", c->cpu_jit},
                                   {"hibernation", c->hibernate_mib ? "on" : NULL}};
    unsigned count = 0;

    snprintf(threads, sizeof threads, "%u", (unsigned)c->cpu_threads);
    for (unsigned i = 0; i < DEVICE_SETTINGS; i++) {
        if (!settings[i].value)
            continue;
        if (asprintf(&f->device_arguments[count], "--%s=%s", settings[i].name, settings[i].value) < 0) {
            f->device_arguments[count] = NULL;
            return false;
        }
        count++;
    }
    return true;
}

/* A folder that was named must hold what it was named for. */
static bool find_mps(struct frontend *f)
{
    enum status st = mps_find(f->config->mps, f->mps_control, &f->mps_missing);

    return st != STATUS_INVALID_FIELD || refuse_start("--mps", &f->mps_missing);
}

static bool make_pool(struct frontend *f)
{
    const struct config *c = f->config;
    struct problem       why = {0};
    struct pool_config   config = {.executable = "/proc/self/exe",
                                   .backends = span_of(c->backends),
                                   .warm_per_device = (unsigned)c->pool_size,
                                   .workers_max = (unsigned)c->workers_max,
                                   .staging_bytes = c->staging_mib * 1024 * 1024,
                                   .device_arguments = (const char *const *)f->device_arguments,
                                   .start_deadline_ms = WORKER_START_DEADLINE_MS,
                                   .temperature_max_c = (unsigned)c->temperature_max_c,
                                   .temperature_stop_c = (unsigned)c->temperature_stop_c,
                                   .allow_device_settings = c->allow_device_settings,
                                   .nvidia_smi = c->nvidia_smi[0] ? c->nvidia_smi : NULL,
                                   .visible_devices = c->visible_devices,
                                   .sharing = c->local_sharing,
                                   .allow_no_sandbox = c->allow_no_sandbox};

    if (!find_mps(f))
        return false;
    config.mps_control = f->mps_missing.status ? NULL : f->mps_control;
    config.mps_missing = f->mps_missing.detail;
    if (!make_device_arguments(f))
        return refuse_start("not enough memory to start workers", &why);
    return pool_create(&f->app.pool, &config, &why) == STATUS_OK || refuse_start("no usable device", &why);
}

static bool choose_instance(struct frontend *f)
{
    struct problem why = {0};

    return random_id("", f->app.instance, sizeof f->app.instance) || refuse_start("no random numbers", &why);
}

static bool open_state(struct frontend *f)
{
    struct problem why = {0};

    if (state_open(&f->state, &f->app, f->config->state, f->config->snapshot_every, &why))
        return refuse_start("--state", &why);
    f->app.state = f->state;
    return true;
}

static bool make_registry(struct frontend *f)
{
    struct problem         why = {0};
    struct registry_config config = {.pool = f->app.pool,
                                     .compiler = f->app.compiler,
                                     .cache = f->app.cache,
                                     .node = f->config->node,
                                     .instance = f->app.instance,
                                     .sessions_max = SESSIONS_MAX,
                                     .idle_timeout_s_max = f->config->idle_timeout_max_s,
                                     .lifetime_s_max = f->config->lifetime_max_s,
                                     .cache_shared = f->config->cache_shared,
                                     .result_ttl_s = f->config->result_ttl_s,
                                     .crash_budget = (uint32_t)f->config->crash_budget,
                                     .crash_window_s = f->config->crash_window_s,
                                     .hibernate_bytes_max = f->config->hibernate_mib * 1024 * 1024,
                                     .hibernate_after_s = f->config->hibernate_after,
                                     .hibernate_dir = f->config->hibernate_dir[0] ? f->config->hibernate_dir : NULL,
                                     .shared_bytes_max = f->config->local_sharing ? f->config->local_sharing_mib * 1024 * 1024 : 0,
                                     .made = state_note,
                                     .ended = state_forget,
                                     .moved_over = state_moved_over,
                                     .moved_for_s = f->config->moved_for,
                                     .context = &f->state};

    if (registry_create(&f->app.registry, &config) || idempotency_create(&f->app.idempotency))
        return refuse_start("not enough memory for sessions", &why);
    return true;
}

/* Before anybody can ask for them. */
static bool restore_sessions(struct frontend *f)
{
    struct problem why = {0};

    state_restore(f->state);
    f->restored = f->state;
    return state_start(f->state) || refuse_start("cannot start the thread of the periodic snapshots", &why);
}

static bool make_server(struct frontend *f)
{
    const struct config *c = f->config;
    struct problem       why = {0};
    struct server_config config = {.app = &f->app,
                                   .enter = hibernation_enter,
                                   .leave = hibernation_leave,
                                   .node = c->node,
                                   .auth = f->app.auth,
                                   .listen = f->listen,
                                   .listen_count = f->listen_count,
                                   .inherited = f->upgrade.inherited,
                                   .inherited_count = f->upgrade.count,
                                   .hosts = (const char *const *)c->host.items,
                                   .hosts_count = c->host.count,
                                   .trusted_proxies = (const char *const *)c->trusted_proxy.items,
                                   .trusted_proxies_count = c->trusted_proxy.count,
                                   .origins = (const char *const *)c->origin.items,
                                   .origins_count = c->origin.count,
                                   .loop_threads = c->threads ? (unsigned)c->threads : server_loops_for(spin_cpus()),
                                   .io_threads = c->no_offload ? 0 : (unsigned)c->io_threads,
                                   .tls_cert = c->tls_cert[0] ? c->tls_cert : NULL,
                                   .tls_key = c->tls_key[0] ? c->tls_key : NULL,
                                   .tls_client_ca = c->tls_client_ca[0] ? c->tls_client_ca : NULL,
                                   .tls_client_crl = c->tls_client_crl[0] ? c->tls_client_crl : NULL,
                                   .connections_max = (unsigned)c->connections,
                                   .connections_per_address_max = (unsigned)c->connections_per_address,
                                   .requests_per_s = (unsigned)c->rate,
                                   .token_failures_per_minute = (unsigned)c->token_failures,
                                   .body_bytes_per_s = c->body_rate,
                                   .answer_bytes_per_s = c->answer_rate,
                                   .body_grace_s = BODY_RATE_GRACE_S,
                                   .header_deadline_s = HEADER_DEADLINE_S,
                                   .body_stall_s = (unsigned)c->body_stall_s,
                                   .idle_s = IDLE_CONNECTION_S};

    config.idempotency = f->app.idempotency;
    config.endpoints = endpoints_table(&config.endpoints_count);
    if (server_create(&f->server, &config, &why))
        return refuse_start("cannot serve", &why);
    atomic_store(&f->app.server, f->server);
    return true;
}

/* ---- announcements ---- */

/* Atomic: whoever waits for the file finds it complete. */
static bool write_port_file(const struct frontend *f)
{
    const char    *path = f->config->port_file;
    struct problem why = {0};
    struct buf     text;
    enum status    st;

    if (path[0] == '\0')
        return true;
    buf_init(&text, PORT_FILE_BYTES_MAX);
    for (unsigned i = 0; i < f->listen_count; i++)
        buf_printf(&text, "%s\n", server_address(f->server, i));
    st = text.failed ? problem_set(&why, STATUS_OUT_OF_MEMORY, "out of memory") : own_file_replace(path, buf_span(&text), &why);
    buf_finish(&text);
    return !st || refuse_start("--port-file", &why);
}

/* A line of its own on standard output; in the log where all lines are to be JSON. */
static void announce(const struct frontend *f)
{
    struct buf text;

    buf_init(&text, PORT_FILE_BYTES_MAX);
    buf_printf(&text, "gpurestd %s serving", GPUREST_VERSION);
    for (unsigned i = 0; i < f->listen_count; i++) {
        const char *address = server_address(f->server, i);
        const char *scheme = f->config->tls_cert[0] ? "https://" : "http://";

        buf_printf(&text, " %s%s", span_starts(span_of(address), "unix:") ? "" : scheme, address);
    }
    if (log_is_json()) {
        log_info("frontend", "%s", text.data ? text.data : "serving");
    } else {
        puts(text.data ? text.data : "gpurestd is serving");
        fflush(stdout);
    }
    buf_finish(&text);
}

static bool start_parts(struct frontend *f)
{
    raise_file_limit();
    return choose_addresses(f) && check_fleet(f) && check_sandbox(f) && take_signals(f) && choose_instance(f) && make_auth(f) &&
           make_compiler(f) && make_pool(f) && open_state(f) && make_registry(f) && restore_sessions(f) && make_server(f) &&
           write_port_file(f);
}

/* ---- serving ---- */

/* The next signal, or 0 after timeout_ms (-1: never). */
static int next_signal(const struct frontend *f, int timeout_ms)
{
    struct pollfd           p = {.fd = f->signals, .events = POLLIN};
    struct signalfd_siginfo info;

    if (poll(&p, 1, timeout_ms) <= 0 || read(f->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

static void reload_tokens(struct frontend *f)
{
    struct problem why = {0};

    if (!auth_has_tokens(f->app.auth))
        return;
    if (auth_reload(f->app.auth, &why))
        log_error("auth", "cannot reload the token file; the old tokens stay valid: %s", why.detail);
    else
        log_info("auth", "reloaded the token file");
}

static void reload_certificates(struct frontend *f)
{
    struct problem why = {0};

    if (!f->config->tls_cert[0])
        return;
    if (server_reload_tls(f->server, &why))
        log_error("http", "cannot reload the files of TLS; the old ones stay in use: %s", why.detail);
    else
        log_info("http", "reloaded the files of TLS");
}

static bool read_again(struct frontend *f)
{
    struct config now;

    if (!f->rereads)
        return true;
    if (!config_reread(f->argc, f->argv, &now))
        return false;
    config_finish(&f->again);
    f->again = now;
    return true;
}

static void set_levels(const struct config *c)
{
    enum log_level most = LOG_LEVEL_INFO;

    log_level_parse(span_of(c->log_level), &most);
    for (unsigned category = 0; category < LOG_CATEGORIES; category++)
        log_level_set(category, most);
    if (!c->access_log)
        log_level_set(LOG_CATEGORY_ACCESS, LOG_LEVEL_WARN);
}

/* The settings as last read. */
static const struct config *present(const struct frontend *f)
{
    return f->again.node ? &f->again : f->config;
}

/* Those that can change while the service runs; levels that /v1/admin/logging has changed stay unless the settings say something new. The count
 * of devices goes on in the background, and the log tells its result. */
static void reload_settings(struct frontend *f)
{
    const struct config *before = present(f), *now;
    bool                 had_access = before->access_log;
    enum log_level       most = LOG_LEVEL_INFO, then = LOG_LEVEL_INFO;

    log_level_parse(span_of(before->log_level), &then);
    if (!read_again(f)) {
        log_error("frontend",
                  "the settings have an error, which standard error tells; none of them is taken, and devices are not counted again");
        return;
    }
    now = present(f);
    log_level_parse(span_of(now->log_level), &most);
    if (most != then || now->access_log != had_access)
        set_levels(now);
    server_set_rate(f->server, (unsigned)now->rate);
    if (pool_count_again(f->app.pool, now->visible_devices))
        log_error("frontend", "not enough memory to count devices again");
}

static void reload(struct frontend *f)
{
    notify_reloading();
    reload_tokens(f);
    reload_certificates(f);
    reload_settings(f);
    notify("READY=1");
}

/* SIGTERM is for now, SIGHUP for later, and a second SIGUSR2 says nothing new. */
static bool is_interrupted(void *frontend, int timeout_ms)
{
    struct frontend *f = frontend;
    int              signal_number = next_signal(f, timeout_ms);

    if (signal_number && signal_number != SIGUSR2 && f->late_signal != SIGTERM)
        f->late_signal = signal_number == SIGHUP ? SIGHUP : SIGTERM;
    return f->late_signal == SIGTERM;
}

/* True: everything is ready for the executable that takes this one's place. */
static bool prepare_upgrade(struct frontend *f)
{
    struct handover h = {.app = &f->app,
                         .server = f->server,
                         .state = f->state,
                         .deadline_ns = deadline_after_ns(present(f)->drain_timeout * NS_PER_S),
                         .interrupted = is_interrupted,
                         .context = f};

    if (!f->state) {
        log_error("frontend", "not upgraded: without --state the sessions would be lost");
        return false;
    }
    if (!upgrade_check(&f->upgrade, f->config->state, &(struct upgrade_interrupt){is_interrupted, f}))
        return false;
    notify_reloading();
    notify("STATUS=upgrading");
    log_info("frontend", "upgrading: requests wait for the new process");
    if (handover_prepare(&h))
        return true;
    notify("READY=1\nSTATUS=serving");
    return false;
}

static void serve_signals(struct frontend *f)
{
    while (!f->is_replaced) {
        int signal_number = f->late_signal ? f->late_signal : next_signal(f, -1);

        f->late_signal = 0;
        if (signal_number == SIGHUP)
            reload(f);
        else if (signal_number == SIGUSR2)
            f->is_replaced = prepare_upgrade(f);
        else if (signal_number)
            return;
    }
}

/* Nobody asks for anything any more. The time that sessions would have goes to the requests under way. */
static void save_sessions(struct frontend *f, uint64_t deadline)
{
    events_end_all(f->app.registry);
    server_quiesce(f->server);
    while (server_in_flight(f->server) && deadline_left_ns(deadline) && !next_signal(f, DRAIN_POLL_MS))
        continue;
    server_freeze(f->server, false); /* what came now would be answered, and not be in the files */
    notify("STATUS=saving sessions");
    state_save(f->state);
}

/* Existing sessions are served on, over new connections too, until they end or the time is up; a second signal ends it at once. With --state they
 * are saved instead. */
static void drain_sessions(struct frontend *f)
{
    uint64_t deadline = deadline_after_ns(present(f)->drain_timeout * NS_PER_S);

    app_leave(&f->app);
    notify("STOPPING=1\nSTATUS=draining");
    log_info("frontend", "draining: %u sessions", registry_count(f->app.registry));
    state_stop(f->state);
    if (f->state) {
        save_sessions(f, deadline);
        return;
    }
    while (registry_count(f->app.registry) && deadline_left_ns(deadline)) {
        int signal_number = next_signal(f, DRAIN_POLL_MS);
        if (signal_number == SIGHUP)
            reload(f);
        else if (signal_number && signal_number != SIGUSR2)
            return;
    }
    events_end_all(f->app.registry);
    server_quiesce(f->server);
    deadline = deadline_after_ms(QUIESCE_MS);
    while (server_in_flight(f->server) && deadline_left_ns(deadline) && !next_signal(f, DRAIN_POLL_MS))
        continue;
}

/* One that is frozen stays so, with its sockets: they are the next process's. */
static void stop_server(struct frontend *f)
{
    if (f->is_replaced)
        server_leave(f->server);
    else
        server_destroy(f->server);
    atomic_store(&f->app.server, NULL);
}

/* Requests that are still waiting for a worker have had their time. */
static void stop_parts(struct frontend *f)
{
    state_stop(f->state);
    if (f->app.compiler)
        compile_service_stop(f->app.compiler);
    if (f->server && server_in_flight(f->server))
        registry_kill_workers(f->app.registry);
    stop_server(f);
    if (f->app.registry)
        registry_destroy(f->app.registry);
    state_close(f->state);
    pool_destroy(f->app.pool);
    for (unsigned i = 0; i < DEVICE_SETTINGS; i++)
        free(f->device_arguments[i]);
    config_finish(&f->again);
    code_cache_destroy(f->app.cache);
    if (f->app.compiler)
        compile_service_destroy(f->app.compiler);
    idempotency_destroy(f->app.idempotency);
    if (f->app.auth)
        auth_destroy(f->app.auth);
    if (f->signals >= 0)
        close(f->signals);
}

/* Before any thread starts. */
static bool start_log(const struct config *c)
{
    struct problem  why = {0};
    enum log_level  most = LOG_LEVEL_INFO;
    enum log_format format = strcmp(c->log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;

    log_level_parse(span_of(c->log_level), &most);
    log_init("frontend", most);
    log_format_set(format);
    log_node_set(c->node);
    if (!c->access_log)
        log_level_set(LOG_CATEGORY_ACCESS, LOG_LEVEL_WARN);
    if (!log_set_for_workers(most))
        return refuse_start("not enough memory for the environment", &why);
    if (c->log_file[0] && log_file_open(c->log_file, c->log_file_mib * 1024 * 1024, (unsigned)c->log_files, &why))
        return refuse_start("cannot open --log-file", &why);
    return (log_start() && log_relay_start()) || refuse_start("cannot start the threads of the log", &why);
}

static void serve(struct frontend *f)
{
    if (f->upgrade.drains)
        app_drain(&f->app);
    upgrade_done(&f->upgrade);
    server_own_names(f->server);
    warn_if_open(f);
    announce(f);
    notify("READY=1\nSTATUS=serving");
    serve_signals(f);
    if (!f->is_replaced)
        drain_sessions(f);
    log_info("frontend", f->is_replaced ? "making way for the new process" : "stopping");
}

/* Behind all threads but those of a frozen server. */
static void replace(struct frontend *f, bool started)
{
    static int sockets[SOCKETS_INHERITED_MAX];

    struct upgrade_legacy legacy = {.settings = f->config, .drains = atomic_load(&f->app.draining), .sockets = sockets};

    if (f->is_replaced) {
        legacy.count = server_sockets(f->server, sockets);
        upgrade_execute(&f->upgrade, &legacy);
    } else if (!started)
        upgrade_go_back(&f->upgrade);
}

int frontend_main(const struct config *config, int argc, char *const argv[])
{
    struct frontend f = {.config = config,
                         .argc = argc,
                         .argv = argv,
                         .signals = -1,
                         .app = {.config = config, .started_wall_ns = wall_ns(), .phase_lock = PTHREAD_MUTEX_INITIALIZER}};
    bool            started;

    upgrade_begin(&f.upgrade, argv);
    if (!start_log(config)) {
        upgrade_go_back(&f.upgrade);
        return 2;
    }
    spin_cpus_set((unsigned)config->spin_cpus);
    notify_begin();
    f.rereads = config_file_stays(config);
    started = start_parts(&f);
    if (started)
        serve(&f);
    else if (f.restored) /* else the next start would take them for older than they are */
        state_save(f.state);
    stop_parts(&f);
    log_relay_stop();
    log_stop();
    log_file_close();
    replace(&f, started);
    return started && !f.is_replaced ? 0 : 1;
}
