/* Nobody waits where there is no fork. */
#ifndef TESTS_WINDOWS_WAIT_H
#define TESTS_WINDOWS_WAIT_H

#define WNOHANG 1
#define WIFEXITED(status) ((void)(status), 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((void)(status), 0)
#define WTERMSIG(status) (status)
#define SIGKILL 9
#define SIGALRM 14
#define SIGXCPU 24
#define waitpid(child, status, how) ((void)(child), (void)(how), *(status) = 0, (pid_t)-1)
#define kill(child, signal) ((void)(child), (void)(signal), -1)

#endif
