#!/usr/bin/env python3
"""The end of the demo: how to look at the array in a browser. Tries it on a free port.

usage: demo_serve.py CATERVA ARRAY     paths that the reader can type
"""

import http.client
import re
import signal
import subprocess
import sys
from pathlib import Path


def status_of(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("HEAD", path)
    return connection.getresponse().status


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ends quietly if its reader has gone
    program, array = sys.argv[1:]
    view = "/view/%s.zarr" % Path(array).stem
    server = subprocess.Popen([program, "serve", array, "--port", "0"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        found = re.search(r":(\d+)/$", server.stdout.readline())
        status = status_of(int(found[1]), view) if found else None
    finally:
        server.terminate()
        sentence = server.communicate()[1]
    if not found and "libmicrohttpd" not in sentence:
        print(sentence, end="", file=sys.stderr)
        return 1
    print("To show it to Zarr readers and in a browser:\n  %s serve %s" % (program, array))
    if not found:
        print("  (this build cannot: it found no libmicrohttpd)")
    elif status == 200:
        print("  http://127.0.0.1:8080%s" % view)
    else:
        print("  http://127.0.0.1:8080/ (without pages that show slices: it found no Node)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
