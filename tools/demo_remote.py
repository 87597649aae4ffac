#!/usr/bin/env python3
"""The last line of the demo: the array served by nginx on loopback, and a slice of it read.

usage: demo_remote.py ARRAY [SELECTION]     says why not where there is no nginx
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
import nginx_server  # noqa: E402

REQUEST = re.compile(r"^GET .*  (?:200|206)  (\d+) bytes ", re.M)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ends quietly if its reader has gone
    array, selection = Path(sys.argv[1]).resolve(), [s for s in sys.argv[2:] if s]
    program = nginx_server.find()
    if program is None:
        print("(nginx is not installed: nothing is read over HTTP.)")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # noqa: S103: other users of nginx look in
        server = nginx_server.Nginx(program, Path(scratch), array.parent)
        try:
            done = subprocess.run(["caterva", "get", "--trace", server.url(array.name), *selection,
                                   "--to", "raw"], capture_output=True,
                                  env={**os.environ, "no_proxy": "127.0.0.1"})
        finally:
            server.close()
    trace = done.stderr.decode()
    if done.returncode != 0:
        print(trace, end="", file=sys.stderr)
        return done.returncode
    sizes = [int(size) for size in REQUEST.findall(trace)]
    print("Served by nginx, %s came with %d request%s and %d bytes, of an object of %d bytes: "
          "%d bytes of items." % (" ".join(selection) or "all of it", len(sizes),
                                  "s" * (len(sizes) != 1), sum(sizes), array.stat().st_size,
                                  len(done.stdout)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
