/* What a server answers to the path of a request. Knows nothing of HTTP but the status codes. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "server/opened.h"
#include "server/shelf.h"

/* Decoded and encoded bytes of all requests in progress together, unless one alone takes more. */
enum { ANSWER_MEMORY = 64 << 20 };

typedef struct answerer answerer;

/* The state of a file. `ends` is a hash of its first and last bytes: it tells commits apart that
 * follow each other within the resolution of the times. */
typedef struct file_state {
    int64_t size, changed_at[2]; /* ns: contents, contents or attributes */
    uint64_t number, ends;
} file_state;

typedef struct answer {
    int status;       /* 200, or 404, 500, 503 with a sentence */
    const char *type; /* MIME */
    void *bytes;      /* to be freed by answer_free; NULL: those of the file */
    size_t size;
    int file; /* descriptor; -1: none */
    file_state state;
    int64_t reserved; /* of ANSWER_MEMORY */
    bool is_page;
    bool is_busy;   /* status 503: memory is short, which may be over soon */
    char etag[100]; /* with its quotes; "" for errors */
} answer;

/* `offered` is borrowed. NULL after a reported lack of memory. */
answerer *answerer_new(shelves *offered);
void answerer_free(answerer *a);

/* Makes the answer to a path, which is percent-decoded and begins with "/". Any thread. Release with
 * answer_free. */
void answer_make(answerer *a, const char *path, answer *out);

/* Reads bytes of the answer's file. False if the file is not in the answer's state any more, or
 * cannot be read: the bytes may then be of several states. */
bool answer_read(const answer *a, int64_t start, void *out, size_t size);
void answer_free(answerer *a, answer *out);

#endif
