/* poll for one descriptor that is read. */
#ifndef CLI_WINDOWS_POLL_H
#define CLI_WINDOWS_POLL_H

enum { POLLIN = 1, POLLOUT = 4 };
struct pollfd {
    int fd;
    short events, revents;
};
int poll(struct pollfd *one, unsigned n, int milliseconds);

#endif
