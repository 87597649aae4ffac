"""No message about a URL contains keys, secrets, tokens or signatures: sessions with signed
requests and with a presigned URL, without faults, and with each of many faults.

usage: test_remote_secrets.py"""

import os
import re
import subprocess
import sys

from tool_remote_case import CLI, Case as RemoteCase
import runs
from s3_signature import signature
from scripted_server import Reply

RUNS, SEED = 1, None
ACCESS, SECRET, TOKEN = "AKIDSHOWNNOWHERE", "wholly/secret+key=", "wholly-secret-token="
SLOW = ("503", "reset", "no http", "cut")  # are retried, which takes seconds
QUERY = {"X-Amz-Credential": "AKIDSHOWNNOWHERE%2Fday%2Fregion", "X-Amz-Signature": "5ec12e7" * 9,
         "X-Amz-Security-Token": "wholly-secret-token%3D", "sig": "query-5ec12e7"}


def changed(reply, names):
    for name, value in names.items():
        reply.headers[name] = value
    return reply


class Case(RemoteCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.other = self.serve()
        self.server.objects["/bucket/a.b2nd"] = self.frame
        self.said = []

    def good(self, request):
        return self.server.good(request)

    def ways(self):
        """Scripts by name: how the server responds from request `after` on."""
        return {
            "well": lambda r: None,
            "403": lambda r: Reply(403, body=self.echo(r)),
            "404": lambda r: Reply(404, body=self.echo(r)),
            "400": lambda r: Reply(400, body=self.echo(r)),
            "503": lambda r: Reply(503, body=self.echo(r)),
            "412": lambda r: Reply(412),
            "reset": lambda r: Reply(raw=b""),
            "no http": lambda r: Reply(raw=b"SSH-2.0-x " + self.echo(r)),
            "compressed": lambda r: changed(self.good(r), {"Content-Encoding": "gzip"}),
            "other range": lambda r: changed(self.good(r), {"Content-Range": "bytes 1-2/3"}),
            "cut": lambda r: Reply(206, self.good(r).headers, self.good(r).body, cut=10),
            "redirected": lambda r: Reply(307, {"Location": self.other.url(r.path)}),
            "to nowhere": lambda r: Reply(307, {"Location": "ftp://x/" + r.path}),
            "no array": lambda r: Reply(200, {}, b"<html>" + self.echo(r)),
            "damaged": lambda r: Reply(206, self.good(r).headers, bytes(
                b ^ (i % 900 == 7) for i, b in enumerate(self.good(r).body))),
        }

    @staticmethod
    def echo(request):
        """Some servers repeat the request in their response."""
        return (request.path + "\n" + "\n".join(request.headers.values())).encode()

    def commands(self, url):
        local = self.folder / "a.b2nd"
        yield ["info", "--trace", url]
        yield ["info", "--json", "--chunks", url]
        yield ["get", "--trace", url, "3:5,7,1", "-o", self.folder / "x.npy", "-f"]
        yield ["verify", "--trace", url]
        yield ["verify", "--json", url]
        yield ["stats", "--trace", url]
        yield ["stats", "--json", url]
        yield ["diff", url, local]
        yield ["diff", url, self.folder / "b.b2nd"]
        yield ["diff", "--json", url, local]
        yield ["info", "--short", url]
        yield ["convert", "-f", url, self.folder / "x.npy"]
        yield ["get", url, "nonsense"]
        yield ["info", url + "::/no"]
        yield ["put", url, "0", local]
        yield ["publish", "--trace", local, url]
        yield ["publish", "--trace", "-f", local, url]

    def session(self, url, **variables):
        """Runs all commands with all scripts; also searches all their output."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        cases = [(way, script, after, command) for way, script in self.ways().items()
                 for after in (0, 1)
                 for command in [*self.commands(url)][:1 if way in SLOW else None]]
        self.assertGreater(len(cases), 200)
        for way, script, after, command in runs.some(cases, sanitized=5):
            self.server.forget()
            self.server.objects["/bucket/a.b2nd"] = self.frame
            self.server.script = (
                lambda r, after=after, script=script: script(r) if r.number >= after else None)
            done = subprocess.run(
                [CLI, *map(str, command)], capture_output=True, check=False, timeout=50,
                env={**kept, "HOME": str(self.folder), **variables})
            self.said.append((way, command[0], done.stdout + done.stderr))
            self.note(self.server.requests)

    def note(self, requests):
        for request in requests:
            given = request.headers.get("authorization", "")
            self.signatures += re.findall("Signature=([0-9a-f]+)", given)
            self.signed = request if given else self.signed

    def check(self, *secrets):
        self.assertGreater(sum(len(text) > 0 for _, _, text in self.said), len(self.said) * 2 // 3)
        for way, command, text in self.said:
            for secret in secrets:
                self.assertNotIn(secret.encode(), text, "%s, %s" % (command, way))


class Sessions(Case):
    signed = None

    def setUp(self):
        super().setUp()
        self.signatures = []  # of each request: those of one second are often equal

    def test_signed(self):
        self.session("s3://bucket/a.b2nd", AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET,
                     AWS_SESSION_TOKEN=TOKEN, AWS_ENDPOINT_URL=self.server.url(""))
        request = self.signed
        self.assertEqual(request.headers["authorization"], signature(request, ACCESS, SECRET))
        self.assertGreater(len(self.signatures), len(self.said) // 2)
        print("%d runs, %d signatures" % (len(self.said), len(self.signatures)))
        self.check(ACCESS, SECRET, TOKEN, *set(self.signatures))

    def test_presigned(self):
        query = "&".join("%s=%s" % item for item in QUERY.items())
        self.session(self.server.url("/bucket/a.b2nd?" + query))
        print("%d runs" % len(self.said))
        self.check(ACCESS, TOKEN[:-1], *QUERY.values(), "X-Amz-Signature", "sig=")


if __name__ == "__main__":
    runs.main(sys.modules[__name__])
