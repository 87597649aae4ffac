/* Room: cli/terminal. Interruption. The first SIGINT, SIGTERM or SIGHUP sets a flag that every loop
 * and every library call checks; the program then cleans up and ends by that signal. A second
 * signal deletes temporary files and ends the process at once. Signals that the parent process
 * ignores (nohup) stay ignored.
 *
 * A signal handler may neither lock nor read directories. So the second signal wakes a thread that
 * deletes the files. A crash or a loop inside a library that reads a damaged file ends in the same
 * way, with a sentence. The flag, its pipes and the temporary names are process-wide state. */
#include "terminal/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_STOPPING = sizeof stopping / sizeof stopping[0] };

static atomic_int first;          /* the first signal; 0: none */
static int woken[2] = {-1, -1};   /* readable after the first signal */
static int hurried[2] = {-1, -1}; /* readable after the second one */
static atomic_bool minded;        /* a thread waits for `hurried` */

/* The sentences that a crash and a loop print, of cli_guard, while `guarded`. */
static char sentence[1024], loop_sentence[1024];
static atomic_bool guarded, crashed;

/* The thread of the last cli_guard, under `lock`. */
static struct {
    pthread_t thread;
    int64_t number, limit; /* limit: nanoseconds of its clock */
} guard;

static void end_by(int signal_number)
{
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void on_signal(int signal_number)
{
    int none = 0, saved = errno;
    ssize_t n = 0;
    if (atomic_compare_exchange_strong(&first, &none, signal_number))
        n = write(woken[1], "", 1);
    else if (atomic_load(&minded))
        n = write(hurried[1], "", 1);
    else
        end_by(signal_number); /* takes effect when the handler returns */
    (void)n;
    errno = saved;
}

/* Opens a pipe that stays open until the process ends. Its ends never block. */
static bool open_pipe(int pipe_ends[2])
{
    if (pipe(pipe_ends) != 0) return false;
    for (int i = 0; i < 2; i++) {
        fcntl(pipe_ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(pipe_ends[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static bool is_ignored(int signal_number)
{
    struct sigaction now;
    return sigaction(signal_number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void cli_catch_signals(void)
{
    /* Without SA_RESTART, so that a write to a full pipe returns. */
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    signal(SIGXFSZ, SIG_IGN);      /* a file that grows too large is an error: EFBIG */
    if (!open_pipe(woken)) return; /* signals keep their default action */
    for (int i = 0; i < N_STOPPING; i++)
        if (!is_ignored(stopping[i])) sigaction(stopping[i], &action, NULL);
}

bool cli_interrupted(void) { return atomic_load_explicit(&first, memory_order_relaxed) != 0; }

int cli_end_interrupted(void)
{
    int signal_number = atomic_load(&first);
    if (signal_number) end_by(signal_number);
    return 128 + signal_number;
}

/* ---- Waiting --------------------------------------------------------------- */

cli_exit cli_wait(int fd, bool to_write)
{
    struct pollfd fds[2] = {{.fd = fd, .events = to_write ? POLLOUT : POLLIN},
                            {.fd = woken[0], .events = POLLIN}};
    while (!cli_interrupted())
        if (poll(fds, 2, -1) >= 0 || errno != EINTR) break; /* read reports errors */
    return cli_interrupted() ? CLI_INTERRUPTED : CLI_OK;
}

/* ---- The second signal ------------------------------------------------------ */

/* Files of cli_mind_file. The lock is held while such a file is created or renamed. */
enum { MAX_FILES = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *files[MAX_FILES];

static void *wait_for_second(void *unused)
{
    struct pollfd wait = {.fd = hurried[0], .events = POLLIN};
    (void)unused;
    while (poll(&wait, 1, -1) < 0) continue;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FILES; i++)
        if (files[i] && unlink(files[i]) != 0) output_delete_folder(files[i]);
    caterva_delete_temporaries();
    if (atomic_load(&crashed)) {
        ssize_t n = write(STDERR_FILENO, sentence, strlen(sentence));
        (void)n;
        _exit(CLI_CORRUPT);
    }
    signal(atomic_load(&first), SIG_DFL);
    kill(getpid(), atomic_load(&first));
    poll(NULL, 0, 1000); /* another thread gets the signal; this thread blocks it */
    _exit(128 + atomic_load(&first));
}

/* Starts a thread that gets no signals. */
static bool start(void *(*run)(void *))
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
    bool started = pthread_create(&thread, NULL, run, NULL) == 0;
    if (started) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void cli_mind_temporaries(void)
{
    if (atomic_load(&minded) || woken[0] < 0 || !open_pipe(hurried)) return;
    if (start(wait_for_second)) atomic_store(&minded, true);
}

void cli_mind_file(const char *path)
{
    cli_mind_temporaries();
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

/* ---- Crashes of libraries --------------------------------------------------- */

/* Wakes the thread that cleans up, which ends the process; this thread waits. */
static void on_crash(int signal_number)
{
    if (!atomic_load(&guarded) || atomic_exchange(&crashed, true)) {
        signal(signal_number, SIG_DFL); /* the instruction is repeated, and ends the process */
        return;
    }
    ssize_t n = write(hurried[1], "", 1);
    for (int i = 0; n == 1 && i < 10; i++) poll(NULL, 0, 1000);
    _exit(CLI_CORRUPT);
}

/* Returns the time that a thread has computed, or 0 on systems that do not measure it. */
static int64_t clock_of(pthread_t thread)
{
    struct timespec now = {0};
#if defined(_POSIX_THREAD_CPUTIME) && _POSIX_THREAD_CPUTIME >= 0 /* macOS: -1 */
    clockid_t id;
    if (pthread_getcpuclockid(thread, &id) == 0) clock_gettime(id, &now);
#endif
    (void)thread;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Looks each second whether the guarded library loops, or does not notice a signal. */
static void *watch_guard(void *unused)
{
    enum { PATIENCE = 3 };
    int64_t seen = 0;
    (void)unused;
    for (int seconds = 0;;) {
        poll(NULL, 0, 1000);
        pthread_mutex_lock(&lock);
        bool active = atomic_load(&guarded), same = active && guard.number == seen;
        bool loops = active && clock_of(guard.thread) > guard.limit;
        if (loops) memcpy(sentence, loop_sentence, sizeof sentence);
        seen = guard.number;
        pthread_mutex_unlock(&lock);
        seconds = same && cli_interrupted() ? seconds + 1 : 0;
        if (loops ? atomic_exchange(&crashed, true) : seconds < PATIENCE) continue;
        ssize_t n = write(hurried[1], "", 1);
        (void)n;
        return NULL;
    }
}

void cli_guard(const char *path, const char *library, int64_t size)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static atomic_bool installed;
    static char stack[1 << 16]; /* the crash may be an overflow of the stack */
    cli_mind_temporaries();
    if (!atomic_load(&minded)) return;
    cli_shown shown = cli_show_place(path);
    pthread_mutex_lock(&lock);
    snprintf(sentence, sizeof sentence,
             "caterva: %.800s: %s crashed on it: the file is damaged, or of a later version\n",
             shown.text, library);
    snprintf(loop_sentence, sizeof loop_sentence,
             "caterva: %.800s: %s does not end on it: the file is damaged\n", shown.text,
             library);
    guard.thread = pthread_self();
    guard.number++;
    guard.limit = clock_of(guard.thread) + (30 + size / (8 << 20)) * INT64_C(1000000000);
    atomic_store(&guarded, true);
    pthread_mutex_unlock(&lock);
    if (atomic_exchange(&installed, true)) return;
    (void)start(watch_guard);
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigfillset(&action.sa_mask);
    sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigaction(crashes[i], &action, NULL);
}

void cli_unguard(void) { atomic_store(&guarded, false); }
