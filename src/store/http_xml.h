/* Texts of elements in S3's answers: pure functions. They are not XML's grammar, but enough
 * for documents of elements and texts; what does not look like one has no such element. */
#ifndef CV_STORE_HTTP_XML_H
#define CV_STORE_HTTP_XML_H

#include <stdbool.h>
#include <stddef.h>

/* What stands inside an element. */
typedef struct cv_xml {
    const char *at, *end;
} cv_xml;

/* Finds the next <name>...</name>, of whatever attributes, and goes on behind it. False:
 * there is none. */
bool cv_xml_next(cv_xml *rest, const char *name, cv_xml *out);

/* The text of the first such element, with its references resolved, and a NUL. False: there
 * is none, or it has more than `room` bytes, or bytes that are not printable ASCII. */
bool cv_xml_text(cv_xml document, const char *name, char *out, size_t room);

/* Room for what a refusal is called. */
enum { CV_XML_REFUSAL_SIZE = 50 };

/* What S3 calls a refusal whose answer this is, behind ", "; "": it has no name of letters and
 * digits. */
void cv_xml_refusal(const void *answer, size_t size, char out[CV_XML_REFUSAL_SIZE]);

#endif
