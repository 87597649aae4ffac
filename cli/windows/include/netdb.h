/* Names of hosts: declared beside sockets. */
#include <sys/socket.h>
