/* A worker executable on the fake device: the service's own, whose calls fail by the script. The program is linked with --wrap= for two functions. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/fake_device.h"
#include "worker/commands/internal.h"
#include "worker/device_worker.h"

static bool        serves_sessions = true;
static enum status refuse; /* the next command of a stream */

enum status __real_issue_command(struct device_worker *w, struct stream *s, uint32_t message, const void *body,
                                 const struct issue_events *events, struct problem *why);
enum status __wrap_issue_command(struct device_worker *w, struct stream *s, uint32_t message, const void *body,
                                 const struct issue_events *events, struct problem *why);

/* A record that is refused counts all the same: nobody waits for it for ever. */
static void record_pass(struct device_worker *w, uint32_t message, const void *body)
{
    const struct msg_event_record *m = body;

    if (message == MESSAGE_EVENT_RECORD)
        w->named[m->event.place].number = m->event.number;
}

enum status __wrap_issue_command(struct device_worker *w, struct stream *s, uint32_t message, const void *body,
                                 const struct issue_events *events, struct problem *why)
{
    enum status st = refuse;

    if (!st)
        return __real_issue_command(w, s, message, body, events, why);
    refuse = STATUS_OK;
    record_pass(w, message, body);
    return problem_set(why, st, "fake: %s", status_code(st));
}

void __real_worker_accept(struct device_worker *w, struct accepted_command *k);
void __wrap_worker_accept(struct device_worker *w, struct accepted_command *k);

/* This is the n-th. */
static bool is_due(_Atomic int *at)
{
    return *at >= 0 && atomic_fetch_sub(at, 1) == 0;
}

static void call_fail(struct device_worker *w, struct accepted_command *k, enum status st)
{
    struct completion done = {0};
    struct problem    why;

    if (k->command.message == MESSAGE_COMMAND_LIST) {
        refuse = st;
        __real_worker_accept(w, k);
        return;
    }
    record_pass(w, k->command.message, &k->command.body);
    problem_set(&why, st, "fake: %s", status_code(st));
    command_answer(w, k, st, &done, &why);
}

void __wrap_worker_accept(struct device_worker *w, struct accepted_command *k)
{
    if (serves_sessions) {
        fake_be_seen();
        while (script->held && k->command.message == MESSAGE_MEM_TRIM)
            usleep(100);
        if (is_due(&script->die_at))
            raise(SIGKILL);
        if (is_due(&script->fail_at)) {
            call_fail(w, k, script->fail_status);
            return;
        }
    }
    __real_worker_accept(w, k);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        serves_sessions = serves_sessions && strcmp(argv[i], "--device-monitor") != 0;
    if (argc > 1 && strcmp(argv[1], "--role=worker") == 0)
        return device_worker_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--role=count") == 0)
        return device_count_main(argc, argv);
    return EXIT_FAILURE;
}
