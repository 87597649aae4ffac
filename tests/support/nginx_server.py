"""nginx on loopback, for tests: serves a folder on a port that the system chooses.

    server = Nginx(find(), scratch, folder, "gzip on;")    # adds lines to the server block
    server.url("a.b2nd")
    server.close()
    Nginx(..., tls=(certificate, key), http2=True)         # https, for the host "localhost"

The log `access.log` in the scratch folder has a line for each request: status, bytes of the
body, protocol, number of the connection.
"""

import os
import shutil
import socket
import subprocess
import time


def find():
    """Returns the path of the program, or None."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


class Nginx:
    def __init__(self, program, scratch, folder, lines="", tls=None, http2=False):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        config, log = scratch / "nginx.conf", scratch / "error.log"
        paths = "".join("%s_temp_path %s/%s;" % (p, scratch, p) for p in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        self.tls, self.lines = tls, lines
        listens = " ssl" * bool(tls) + " http2" * http2
        if tls:
            lines = "ssl_certificate %s; ssl_certificate_key %s; " % tls + lines
        config.write_text(
            "daemon off; pid %s/nginx.pid; error_log %s; %s events {} http { %s "
            "log_format r '$status $body_bytes_sent $server_protocol $connection'; access_log %s/access.log r; "
            "server { listen 127.0.0.1:%d%s; root %s; %s } }"
            % (scratch, log, "user root;" if os.getuid() == 0 else "", paths, scratch, self.port,
               listens, folder, lines))
        self.process = subprocess.Popen([program, "-c", str(config)], stderr=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.close()
        raise AssertionError("nginx does not start: " + log.read_text())

    def url(self, name):
        return "%s:%d/%s" % ("https://localhost" if self.tls else "http://127.0.0.1", self.port, name)

    def close(self):
        self.process.terminate()
        self.process.wait()
