/* What the process's environment says. The library obeys no variable but those that hold
 * credentials of s3:// URLs, which every program for S3 looks for there, and those that name a
 * file of certificates. */
#ifndef CV_BASE_OS_ENVIRONMENT_H
#define CV_BASE_OS_ENVIRONMENT_H

/* Owned, free with cv_free; NULL: it is not set, or empty, or there is no memory. */
char *cv_os_variable(const char *name);

#endif
