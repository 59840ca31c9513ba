/* Removal of whole folders, from the leaves up. */
#include "base/files/folder.h"

#include <ftw.h>
#include <stdio.h>

enum { FILES_OPEN_MAX = 8 };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

bool folder_remove(const char *path)
{
    return nftw(path, remove_one, FILES_OPEN_MAX, FTW_DEPTH | FTW_PHYS) == 0;
}
