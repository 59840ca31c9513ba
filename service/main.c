/* One executable, several roles: the front-end starts itself again as worker, device counter, compile worker or health check. */
#include <unistd.h>

#include "base/log/crash.h"
#include "base/span.h"
#include "config/check.h"
#include "config/config.h"
#include "frontend.h"
#include "health/healthcheck.h"
#include "init.h"
#include "worker/compile/compile_worker.h"
#include "worker/device_worker.h"
#include "worker/mps_supervisor.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} roles[] = {
#define ROLE(name, function) {name, function},
#include "roles.def"
#undef ROLE
};

static int frontend_run(int argc, char **argv)
{
    struct config config = {0};
    int           code = 0;

    crash_install(getpid() == 1 ? "init" : "frontend");
    if (!init_become_service(&code))
        return code;
    crash_install("frontend");
    if (!config_parse(argc, argv, &config, &code))
        return code;
    code = config.only_check ? config_check(&config) : frontend_main(&config, argc, argv);
    config_finish(&config);
    return code;
}

int main(int argc, char **argv)
{
    static const char flag[] = "--role=";
    struct span       word = span_of(argc > 1 ? argv[1] : "");

    if (span_starts(word, flag))
        word = span_from(word, sizeof flag - 1);
    for (unsigned i = 0; i < COUNT(roles); i++)
        if (span_is(word, roles[i].name)) {
            crash_install(roles[i].name);
            return roles[i].run(argc, argv);
        }
    return frontend_run(argc, argv);
}
