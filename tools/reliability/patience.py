"""Programs that may hang, run on machines that may be busy.

A hang is told by processor time, which a busy machine does not use up, or by a wait that no
busy machine explains: TIMES as long on the clock."""

import contextlib
import resource
import signal
import subprocess

TIMES = 30


def run(argv, seconds, **options):
    """As subprocess.run(argv, **options); None: it used `seconds` of processor time, or took
    TIMES as long. Linux only."""
    with subprocess.Popen(argv, **options) as child:
        limit_processor_time(child.pid, max(1, round(seconds)))
        try:
            out, err = child.communicate(timeout=TIMES * seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return None
        except BaseException:
            child.kill()
            raise
    if child.returncode == -signal.SIGXCPU:
        return None
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


def limit_processor_time(process, seconds):
    """From outside: a function that runs in the child is not safe beside threads. It counts
    from the program's start."""
    with contextlib.suppress(ProcessLookupError):  # it has ended
        resource.prlimit(process, resource.RLIMIT_CPU, (seconds, seconds + 1))
