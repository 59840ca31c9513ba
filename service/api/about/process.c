/* The front-end's process under the names that Prometheus' own clients use. Workers are processes of their own. */
#include "api/about/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"

static void add_memory(struct buf *out)
{
    FILE              *f = fopen("/proc/self/statm", "re");
    unsigned long long pages, resident;
    int                read = f ? fscanf(f, "%llu %llu", &pages, &resident) : 0;

    if (f)
        fclose(f);
    if (read != 2)
        return;
    metrics_head(out, METRIC_PROCESS_RESIDENT);
    metrics_sample(out, METRIC_PROCESS_RESIDENT, "", (double)resident * (double)sysconf(_SC_PAGESIZE));
}

static void add_descriptors(struct buf *out)
{
    DIR          *folder = opendir("/proc/self/fd");
    unsigned      open = 0;
    struct rlimit limit;

    while (folder && readdir(folder))
        open++;
    if (folder) {
        closedir(folder);
        metrics_head(out, METRIC_PROCESS_FDS);
        metrics_sample(out, METRIC_PROCESS_FDS, "", open > 3 ? open - 3 : 0); /* not "." and "..", nor the folder itself */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        metrics_head(out, METRIC_PROCESS_FDS_MAX);
        metrics_sample(out, METRIC_PROCESS_FDS_MAX, "", (double)limit.rlim_cur);
    }
}

static void add_times(struct buf *out, uint64_t started_wall_ns)
{
    struct timespec cpu;

    metrics_head(out, METRIC_PROCESS_START);
    metrics_sample(out, METRIC_PROCESS_START, "", (double)(started_wall_ns / 1000000) / 1e3);
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu))
        return;
    metrics_head(out, METRIC_PROCESS_CPU);
    metrics_sample(out, METRIC_PROCESS_CPU, "", (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
}

void process_write_metrics(struct buf *out, uint64_t started_wall_ns)
{
    add_memory(out);
    add_descriptors(out);
    add_times(out, started_wall_ns);
}
