/* Unit: store/sframe. A directory whose old chunks are being deleted by its writer is always
 * recognised as an array; one with a foreign file is not. */
#include "store/sframe.h"

#include "support/check.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _WIN32
enum { CHUNKS = 300, LOOKS = 200 }; /* in wine, to look once takes 150 ms */
#else
enum { CHUNKS = 300, LOOKS = 2000 };
#endif

static char folder[SCRATCH_PATH];
static atomic_bool done;

static void make(const char *name)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0, "cannot make %s", path);
    close(fd);
}

static void drop(const char *name)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(unlink(path) == 0, "cannot remove %s", path);
}

/* Creates and deletes chunk files as a writer does. */
static void *change(void *unused)
{
    while (!atomic_load(&done)) {
        for (int i = 0; i < CHUNKS; i++) make(cv_sframe_chunk_name(i).text);
        for (int i = 0; i < CHUNKS; i++) drop(cv_sframe_chunk_name(i).text);
    }
    return unused;
}

int main(void)
{
    pthread_t writer;
    scratch_path(folder, "sframe");
    CHECK(mkdir(folder, 0700) == 0, "cannot make %s", folder);
    CHECK(!cv_sframe_is_array_at(cv_dir_here, folder), "an array without a frame");
    make(CV_SFRAME_FRAME);
    CHECK(pthread_create(&writer, NULL, change, NULL) == 0, "a thread");
    for (int i = 0; i < LOOKS; i++)
        CHECK(cv_sframe_is_array_at(cv_dir_here, folder), "look %d: taken for no array", i);
    atomic_store(&done, true);
    CHECK(pthread_join(writer, NULL) == 0, "the thread");
    make("other");
    CHECK(!cv_sframe_is_array_at(cv_dir_here, folder), "an array with a file of others");
    scratch_remove(folder);
    return 0;
}
