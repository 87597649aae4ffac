/* The size of a terminal. */
#ifndef CLI_WINDOWS_IOCTL_H
#define CLI_WINDOWS_IOCTL_H

struct winsize {
    unsigned short ws_row, ws_col;
};
enum { TIOCGWINSZ };
int ioctl(int fd, int what, struct winsize *out);

#endif
