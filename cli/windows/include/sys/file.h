/* The lock of a writer, as the library takes it. */
#ifndef CLI_WINDOWS_FILE_H
#define CLI_WINDOWS_FILE_H

enum { LOCK_EX = 2, LOCK_NB = 4 };
int flock(int fd, int how);

#endif
