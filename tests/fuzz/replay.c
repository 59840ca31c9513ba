/* Runs a fuzz target without a fuzzer: on every file of the given folders, truncated at many places, and changed at random, the same way
 * each time. So the seeds are a regression test of every build, including those with sanitizers.
 * replay CHANGES FOLDER... ; the failure is a crash or a sanitizer's report. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 18, CUTS = 40, FLIPS_MAX = 8, PATH_BYTES = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint8_t  whole[FILE_BYTES_MAX], changed[FILE_BYTES_MAX];
static uint32_t state = 2463534242u;

static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Overwrites some bytes, or moves a piece. */
static void change(size_t bytes)
{
    unsigned flips = 1 + next_random() % FLIPS_MAX;
    size_t   from = next_random() % bytes, to = next_random() % bytes, n = next_random() % 40;

    if (next_random() % 4 == 0) {
        n = n < bytes - from ? n : bytes - from;
        n = n < bytes - to ? n : bytes - to;
        memmove(changed + to, whole + from, n);
        return;
    }
    for (unsigned i = 0; i < flips; i++)
        changed[next_random() % bytes] = next_random() % 3 ? whole[next_random() % bytes] : (uint8_t)next_random();
}

static void run_variants(size_t bytes, unsigned changes)
{
    LLVMFuzzerTestOneInput(whole, bytes);
    for (unsigned i = 1; i < CUTS; i++)
        LLVMFuzzerTestOneInput(whole, bytes * i / CUTS);
    for (unsigned i = 0; bytes && i < changes; i++) {
        memcpy(changed, whole, bytes);
        change(bytes);
        LLVMFuzzerTestOneInput(changed, bytes);
    }
}

/* Returns how many files of the folder were run. */
static unsigned run_folder(const char *folder, unsigned changes)
{
    DIR           *d = opendir(folder);
    struct dirent *entry;
    unsigned       count = 0;

    while (d && (entry = readdir(d)) != NULL) {
        char  path[PATH_BYTES];
        FILE *f;

        if (entry->d_name[0] == '.' || snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        f = fopen(path, "rb");
        if (!f)
            continue;
        run_variants(fread(whole, 1, sizeof whole, f), changes);
        fclose(f);
        count++;
    }
    if (d)
        closedir(d);
    return count;
}

int main(int argc, char **argv)
{
    unsigned changes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, count = 0;

    for (int i = 2; i < argc; i++) {
        unsigned found = run_folder(argv[i], changes);
        if (!found) {
            fprintf(stderr, "replay: no files in %s\n", argv[i]);
            return EXIT_FAILURE;
        }
        count += found;
    }
    printf("%u files, each whole, cut at %d places and changed %u times\n", count, CUTS - 1, changes);
    return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
