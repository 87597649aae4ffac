/* Room: cli/terminal. Interruption on Windows; the counterpart of signals.c. The system calls the
 * handler in a thread of its own, so that it may delete files. Ctrl-C is SIGINT, Ctrl-Break is
 * SIGTERM, and the end of the console or session is SIGHUP. */
#include "terminal/output.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <windows.h>

enum { HANGUP = 1, INTERRUPT = 2, TERMINATE = 15 };

static atomic_int first; /* the first signal; 0: none */

/* Files of cli_mind_file. The lock is held while such a file is created or renamed. */
enum { MAX_FILES = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *files[MAX_FILES];

_Noreturn static void end_at_once(int signal_number)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FILES; i++)
        if (files[i] && unlink(files[i]) != 0) output_delete_folder(files[i]);
    caterva_delete_temporaries();
    TerminateProcess(GetCurrentProcess(), 128U + (unsigned)signal_number);
    abort();
}

static BOOL WINAPI on_event(DWORD event)
{
    int none = 0, signal_number = event == CTRL_C_EVENT       ? INTERRUPT
                                  : event == CTRL_BREAK_EVENT ? TERMINATE
                                                              : HANGUP;
    if (!atomic_compare_exchange_strong(&first, &none, signal_number)) end_at_once(none);
    if (signal_number == HANGUP) Sleep(INFINITE); /* the process ends when this returns */
    return TRUE;
}

void cli_catch_signals(void) { (void)SetConsoleCtrlHandler(on_event, TRUE); }

bool cli_interrupted(void) { return atomic_load_explicit(&first, memory_order_relaxed) != 0; }

int cli_end_interrupted(void) { return 128 + atomic_load(&first); }

/* The system cannot wait until a pipe has room. */
cli_exit cli_wait(int fd, bool to_write)
{
    enum { LOOK_MS = 50 };
    struct pollfd one = {.fd = fd, .events = POLLIN};
    while (!to_write && !cli_interrupted() && poll(&one, 1, LOOK_MS) == 0) continue;
    return cli_interrupted() ? CLI_INTERRUPTED : CLI_OK;
}

void cli_mind_temporaries(void) {}

void cli_mind_file(const char *path)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FILES; i++) {
        if (files[i]) continue;
        files[i] = path;
        break;
    }
    pthread_mutex_unlock(&lock);
}

void cli_forget_file(const char *path)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FILES; i++)
        if (files[i] == path) files[i] = NULL;
    pthread_mutex_unlock(&lock);
}
