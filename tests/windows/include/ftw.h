/* nftw as the tests use it: depth first, without following links. */
#ifndef TESTS_WINDOWS_FTW_H
#define TESTS_WINDOWS_FTW_H

#include <sys/stat.h>

enum { FTW_F, FTW_D, FTW_DEPTH = 8, FTW_PHYS = 1 };
struct FTW {
    int base, level;
};
int nftw(const char *path, int (*visit)(const char *, const struct stat *, int, struct FTW *),
         int most, int flags);

#endif
