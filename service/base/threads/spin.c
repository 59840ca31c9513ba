/* Chooses the spin budgets by the number of CPUs that this process may use. */
#include "base/threads/spin.h"
#include "base/bounds.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/deadline.h"
#include "limits.h"

static pthread_once_t      once = PTHREAD_ONCE_INIT;
static unsigned            cpus_set;
static unsigned            cpus_known;
static struct spin_budgets chosen;

struct spin_budgets spin_budgets_for(unsigned cpus)
{
    if (cpus < SPIN_CPUS_FEW)
        return (struct spin_budgets){0}; /* no other thread could run during a spin */
    if (cpus < SPIN_CPUS_MANY)
        return (struct spin_budgets){
            .call_ns = SPIN_BUDGET_US * NS_PER_US, .worker_ns = WORKER_SPIN_US * NS_PER_US, .busy_ns = WORKER_BUSY_SPIN_US * NS_PER_US};
    return (struct spin_budgets){.call_ns = SPIN_BUDGET_MANY_US * NS_PER_US,
                                 .worker_ns = WORKER_SPIN_MANY_US * NS_PER_US,
                                 .busy_ns = WORKER_BUSY_SPIN_US * NS_PER_US,
                                 .loop_ns = LOOP_SPIN_MANY_US * NS_PER_US};
}

unsigned spin_quota_cpus(struct span text)
{
    struct span rest = span_cut(&text, '\n');
    struct span quota = span_cut(&rest, ' ');
    uint64_t    used, period;

    if (!span_u64(quota, &used) || !span_u64(rest, &period) || period == 0 || used / period >= UINT32_MAX)
        return UINT32_MAX;
    return used < period ? 1 : (unsigned)(used / period);
}

/* Reads the root of the mounted hierarchy, which has the quota of a container. */
static unsigned cgroup_quota(void)
{
    char    text[64];
    int     file = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, text, sizeof text) : -1;

    if (file >= 0)
        close(file);
    return got > 0 ? spin_quota_cpus((struct span){text, (size_t)got}) : UINT32_MAX;
}

static unsigned usable_cpus(void)
{
    cpu_set_t set;
    unsigned  n = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    unsigned  most = cgroup_quota();

    return n < most ? n : most;
}

static void choose_cpus(void)
{
    cpus_known = cpus_set ? cpus_set : usable_cpus();
    chosen = spin_budgets_for(cpus_known);
}

const struct spin_budgets *spin_budgets(void)
{
    pthread_once(&once, choose_cpus);
    return &chosen;
}

unsigned spin_cpus(void)
{
    pthread_once(&once, choose_cpus);
    return cpus_known;
}

void spin_cpus_set(unsigned cpus)
{
    cpus_set = cpus;
}
