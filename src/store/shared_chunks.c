/* Room: store. What shared chunk files were when they were shared. One that has lost its name
 * or whose name is another file's by now is not the list's matter: it was put anew. */
#include "store/shared_chunks.h"

#include "store/sframe.h"

typedef struct shared_chunk {
    cv_object object;
    cv_file_info info;
} shared_chunk;

void cv_shared_chunks_init(cv_shared_chunks *shared)
{
    cv_mutex_init(&shared->lock);
    shared->list = (cv_buffer){0};
}

void cv_shared_chunks_destroy(cv_shared_chunks *shared)
{
    cv_buffer_free(&shared->list);
    cv_mutex_destroy(&shared->lock);
}

bool cv_shared_chunks_add(cv_shared_chunks *shared, cv_object object, cv_file file)
{
    shared_chunk entry = {.object = object};
    if (cv_file_get_info(file, &entry.info)) return false;
    cv_mutex_lock(&shared->lock);
    cv_status status = cv_buffer_append(&shared->list, &entry, sizeof entry, NULL);
    cv_mutex_unlock(&shared->lock);
    return status == CV_OK;
}

/* Its other name goes only with the job: the number of names is no sign, nor is the time of
 * a change to the file's owner or permissions. */
static bool is_changed(const cv_file_info *was, const cv_file_info *is)
{
    bool same_file = was->device == is->device && was->inode == is->inode;
    return same_file && (was->size != is->size || was->changed_ns != is->changed_ns);
}

cv_status cv_shared_chunks_check(cv_shared_chunks *shared, cv_dir dir, cv_error *err)
{
    const shared_chunk *list = (const shared_chunk *)(const void *)shared->list.data;
    size_t n = shared->list.size / sizeof list[0];
    for (size_t i = 0; i < n; i++) {
        cv_chunk_name name = cv_sframe_chunk_name(list[i].object);
        cv_file_info is;
        if (cv_dir_get_link_info(dir, name.text, &is) || !is_changed(&list[i].info, &is))
            continue;
        return cv_fail(
            err, CATERVA_ECORRUPT, -1,
            "%s was changed through the part that it was merged from, where it had "
            "%llu bytes and has %llu: roll back, and merge again without that part",
            name.text, (unsigned long long)list[i].info.size, (unsigned long long)is.size);
    }
    return CV_OK;
}

void cv_shared_chunks_forget(cv_shared_chunks *shared) { cv_buffer_free(&shared->list); }
