/* Sockets of the server. */
#ifndef CLI_WINDOWS_SYS_SOCKET_H
#define CLI_WINDOWS_SYS_SOCKET_H

#include <winsock2.h>
#include <ws2tcpip.h>

#define SHUT_RDWR SD_BOTH
#define shutdown(socket, how) shutdown((SOCKET)(socket), how)
#define SIGPIPE SIGTERM /* neither is ever sent */

#endif
