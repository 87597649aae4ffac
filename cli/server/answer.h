/* What a server answers to the path of a request. Knows nothing of HTTP but the status codes. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "server/opened.h"
#include "server/shelf.h"

/* Decoded and encoded bytes of all requests in progress together, unless one alone takes more. */
enum { ANSWER_MEMORY = 64 << 20 };

typedef struct answerer answerer;

typedef struct answer {
    int status;       /* 200, or 404, 500, 503 with a sentence */
    const char *type; /* MIME */
    void *bytes;      /* to be freed by answer_free; NULL: those of the file */
    size_t size;
    int file; /* descriptor; -1: none */
    int64_t file_size;
    int64_t reserved; /* of ANSWER_MEMORY */
    bool is_page;
    char etag[64]; /* with its quotes; "" for errors */
} answer;

/* `offered` is borrowed. NULL after a reported lack of memory. */
answerer *answerer_new(shelves *offered);
void answerer_free(answerer *a);

/* Makes the answer to a path, which is percent-decoded and begins with "/". Any thread. Release with
 * answer_free, except for a file that another has taken: set `file` to -1. */
void answer_make(answerer *a, const char *path, answer *out);
void answer_free(answerer *a, answer *out);

#endif
