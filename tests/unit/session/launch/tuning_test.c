/* Shapes that were chosen for built-in kernels: found again by the sizes, kept in the cache's folder, refused when damaged. */
#include "session/launch/tuning.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/fake_worker.h"

enum { PATH_BYTES = 512 };

static char                        folder[PATH_BYTES];
static const struct builtin_device device = {.multiprocessors = 1, .max_grid = {65535, 65535, 65535}};

static void setup(void)
{
    snprintf(folder, sizeof folder, "%s/gpurest-tuning-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert(mkdtemp(folder));
}

/* f on each entry of the cache; how many there were. */
static unsigned each_entry(void (*f)(int folder_fd, const char *name))
{
    char           path[2 * PATH_BYTES];
    unsigned       n = 0;
    struct dirent *e;
    DIR           *d;

    snprintf(path, sizeof path, "%s/code-2", folder);
    d = opendir(path);
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.') {
            n++;
            if (f)
                f(dirfd(d), e->d_name);
        }
    if (d)
        closedir(d);
    return n;
}

static void remove_entry(int folder_fd, const char *name)
{
    unlinkat(folder_fd, name, 0);
}

static void teardown(void)
{
    char path[2 * PATH_BYTES];

    each_entry(remove_entry);
    snprintf(path, sizeof path, "%s/code-2", folder);
    rmdir(path);
    rmdir(folder);
}

TestSuite(tuning, .init = setup, .fini = teardown);

struct process {
    struct code_cache *cache;
    struct tunings    *tunings;
};

static struct process begin(void)
{
    struct process p;

    cr_assert_eq(code_cache_create(&p.cache, folder, CACHE_BYTES_DEFAULT), STATUS_OK);
    cr_assert_eq(tunings_create(&p.tunings, fake_pool(), NULL, p.cache), STATUS_OK);
    return p;
}

static void end(struct process *p)
{
    tunings_destroy(p->tunings);
    code_cache_destroy(p->cache);
}

static const struct builtin *add(void)
{
    return builtin_find(SPAN_LITERAL("add"));
}

static unsigned choice(struct process *p, enum builtin_dtype dtype, uint64_t n)
{
    uint64_t values[BUILTIN_ARGS_MAX] = {[3] = n};

    return tuning_choice(p->tunings, 0, add(), dtype, values, &device);
}

static struct tuning of_add(enum builtin_dtype dtype, uint64_t n, unsigned chosen)
{
    struct tuning m = {
        .dtype = dtype, .candidates = builtin_candidates(add()), .chosen = chosen, .rounds = 9, .measured_wall_ns = 1, .us = {4, 3, 2, 1}};

    m.size_class = builtin_size_class(3 * n * builtin_type_bytes(&(struct builtin_param){.type = BUILTIN_TYPE_T}, dtype));
    return m;
}

static void set(struct process *p, enum builtin_dtype dtype, uint64_t n, unsigned chosen)
{
    struct tuning m = of_add(dtype, n, chosen);

    tuning_set(p->tunings, 0, add(), &m);
}

Test(tuning, a_choice_stands_for_its_dtype_and_sizes_alone)
{
    struct process p = begin();

    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 0);
    set(&p, BUILTIN_DTYPE_f32, 1000, 2);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 2);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1001), 2);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 100000), 0);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f64, 1000), 0);
    set(&p, BUILTIN_DTYPE_f32, 1000, 0);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 0);
    end(&p);
}

Test(tuning, sizes_beyond_all_bounds_have_none)
{
    struct process p = begin();

    set(&p, BUILTIN_DTYPE_f32, 1000, 2);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, UINT64_MAX), 0);
    end(&p);
}

Test(tuning, the_next_process_finds_what_was_measured)
{
    struct tuning_list *list = malloc(sizeof *list);
    struct process      p = begin();

    set(&p, BUILTIN_DTYPE_f32, 1000, 2);
    set(&p, BUILTIN_DTYPE_f64, 1000, 3);
    tuning_list_of(p.tunings, 0, add(), list);
    cr_assert(list->count == 2 && !list->kept[0] && !list->kept[1]);
    end(&p);
    p = begin();
    cr_assert_not(tuning_is_read(p.tunings, 0, add()));
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f64, 1000), 3);
    cr_assert(tuning_is_read(p.tunings, 0, add()));
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 2);
    tuning_list_of(p.tunings, 0, add(), list);
    cr_assert(list->count == 2 && list->kept[0] && list->kept[1]);
    cr_assert_eq(list->of[0].us[1], 3);
    end(&p);
    free(list);
}

Test(tuning, what_another_process_measured_meanwhile_stays)
{
    struct process one = begin(), two = begin(), three;

    cr_assert_eq(choice(&two, BUILTIN_DTYPE_f32, 1000), 0);
    set(&one, BUILTIN_DTYPE_f32, 1000, 1);
    set(&two, BUILTIN_DTYPE_f64, 1000, 2);
    three = begin();
    cr_assert_eq(choice(&three, BUILTIN_DTYPE_f32, 1000), 1);
    cr_assert_eq(choice(&three, BUILTIN_DTYPE_f64, 1000), 2);
    end(&three);
    end(&two);
    end(&one);
}

static void flip_last_byte(int folder_fd, const char *name)
{
    int   fd = openat(folder_fd, name, O_RDWR);
    off_t end = lseek(fd, 0, SEEK_END);
    char  last;

    cr_assert_eq(pread(fd, &last, 1, end - 1), 1);
    last = (char)~last;
    cr_assert_eq(pwrite(fd, &last, 1, end - 1), 1);
    close(fd);
}

Test(tuning, a_damaged_file_counts_for_nothing_and_is_removed)
{
    struct process p = begin();

    set(&p, BUILTIN_DTYPE_f32, 1000, 2);
    end(&p);
    cr_assert_eq(each_entry(flip_last_byte), 1);
    p = begin();
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 0);
    cr_assert_eq(each_entry(NULL), 0);
    set(&p, BUILTIN_DTYPE_f32, 1000, 3);
    end(&p);
    p = begin();
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 3);
    end(&p);
}

/* Whole and of the right key, but of no sense: as another program might write it. */
Test(tuning, a_file_that_says_what_cannot_be_counts_for_nothing)
{
    struct tuning bad[6];

    for (unsigned i = 0; i < COUNT(bad); i++)
        bad[i] = of_add(BUILTIN_DTYPE_f32, 1000, 2);
    bad[0].chosen = bad[0].candidates;
    bad[1].candidates++;
    bad[2].dtype = BUILTIN_DTYPES;
    bad[3].size_class = BUILTIN_SIZE_CLASSES;
    bad[4].us[7] = -1;
    bad[5].rounds = TUNE_ROUNDS_MAX + 1;
    for (unsigned i = 0; i < COUNT(bad); i++) {
        struct process p = begin();
        tuning_set(p.tunings, 0, add(), &bad[i]);
        end(&p);
        cr_assert_eq(each_entry(NULL), 1);
        p = begin();
        cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 0, "case %u", i);
        cr_assert_eq(each_entry(NULL), 0, "case %u", i);
        end(&p);
    }
}

Test(tuning, a_kernel_of_one_shape_is_never_looked_up)
{
    const struct builtin *k = builtin_find(SPAN_LITERAL("softmax"));
    struct process        p = begin();

    cr_assert(tuning_is_read(p.tunings, 0, k));
    cr_assert_not(tuning_may_be(p.tunings, 0, k));
    end(&p);
}

Test(tuning, one_measurement_at_a_time_on_a_device)
{
    struct process p = begin();

    cr_assert(tuning_begin(p.tunings, 0));
    cr_assert_not(tuning_begin(p.tunings, 0));
    tuning_end(p.tunings, 0);
    cr_assert(tuning_begin(p.tunings, 0));
    tuning_end(p.tunings, 0);
    cr_assert_not(tuning_begin(p.tunings, 1));
    end(&p);
}

Test(tuning, without_a_cache_it_lasts_as_long_as_the_process)
{
    struct process p = {0};

    cr_assert_eq(tunings_create(&p.tunings, fake_pool(), NULL, NULL), STATUS_OK);
    set(&p, BUILTIN_DTYPE_f32, 1000, 2);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 2);
    tunings_destroy(p.tunings);
}

enum { LOOKS = 2000, CHANGES = 20 };

static void *look(void *context)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        unsigned chosen = choice(context, BUILTIN_DTYPE_f32, 1000);
        cr_assert(chosen == 0 || chosen == 2 || chosen == 3);
    }
    return NULL;
}

Test(tuning, launches_look_while_a_choice_changes)
{
    struct process p = begin();
    pthread_t      threads[2];

    for (unsigned i = 0; i < COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look, &p), 0);
    for (unsigned i = 0; i < CHANGES; i++)
        set(&p, BUILTIN_DTYPE_f32, 1000, 2 + i % 2);
    for (unsigned i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(choice(&p, BUILTIN_DTYPE_f32, 1000), 3);
    end(&p);
}
