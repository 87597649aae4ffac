"""`caterva serve`: what it answers, in zarr-python, in this library and in raw requests; and what
hostile clients get. Paths are never more than names in a list."""

import asyncio
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import selectors
import signal
import socket
import subprocess
import time
import unittest
import warnings
from pathlib import Path

import blosc2
import numpy as np

from tool_cli import CLI, LONG, SANITIZED, WINDOWS, Case, environment, main, run

try:
    import zarr
except ImportError:
    zarr = None

MEMORY = 200 << 20
blosc2.set_nthreads(1)  # with more, python-blosc2 4.14 sometimes waits for ever for blocks of 8 MiB


def smooth(shape, dtype="<f4"):
    return (np.arange(np.prod(shape)) // 7 % 1000).astype(dtype).reshape(shape)


class Server(Case):
    def setUp(self):
        super().setUp()
        self.path("data").mkdir()
        self.items = smooth((30, 40, 50))
        self.write("data/x.b2nd", self.items, chunks=(10, 20, 25), blocks=(5, 10, 25))
        self.write("secret.b2nd", smooth((5,)))
        self.path("data/notes.txt").write_text("secret")

    def write(self, name, items, **options):
        options["cparams"] = {"nthreads": 1} | options.get("cparams", {})
        return blosc2.asarray(items, urlpath=str(self.path(name)), mode="w", **options)

    @contextlib.contextmanager
    def serving(self, *arguments):
        """Yields the process; sets self.port."""
        with open(self.path("stderr"), "wb") as err:
            server = subprocess.Popen([CLI, "serve", "--port", "0", *map(str, arguments)],
                                      stdout=subprocess.PIPE, stderr=err, env=environment(),
                                      cwd=self.folder)
            try:
                line = server.stdout.readline().decode()
                if "libmicrohttpd" in self.path("stderr").read_text():
                    self.skipTest(self.path("stderr").read_text())
                found = re.search(r"at http://.*:(\d+)/$", line.strip())
                self.assertTrue(found, (line, self.path("stderr").read_text()))
                self.port = int(found[1])
                yield server
                self.assertIsNone(server.poll(), self.path("stderr").read_text())
            finally:
                server.terminate()
                try:
                    self.status = server.wait(60)
                finally:
                    server.kill()
                    server.stdout.close()
            self.assertEqual(self.status, -signal.SIGTERM if WINDOWS else 0,  # wine has no signals
                             self.path("stderr").read_text())  # no leaks, too

    def get(self, path, method="GET", **headers):
        """Status, headers and body of one request."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            c.putheader(name.replace("_", "-"), value)
        c.endheaders()
        reply = c.getresponse()
        body = reply.read()
        c.close()
        return reply.status, reply.headers, body

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"


class Answers(Server):
    def test_files(self):
        stored = self.path("data/x.b2nd").read_bytes()
        with self.serving("data"):
            status, headers, body = self.get("/x.b2nd")
            self.assertEqual((status, body), (200, stored))
            tag = headers["ETag"]
            self.assertEqual(self.get("/x.b2nd", "HEAD")[0], 200)
            self.assertEqual(self.get("/x.b2nd", "HEAD")[1]["Content-Length"], str(len(stored)))
            for text, part in (("0-9", stored[:10]), ("5-", stored[5:]), ("-7", stored[-7:]),
                               ("10-10", stored[10:11]), ("3-999999999", stored[3:]),
                               ("-999999999", stored)):
                status, headers, body = self.get("/x.b2nd", Range="bytes=" + text)
                self.assertEqual((status, body), (206, part), text)
                self.assertTrue(headers["Content-Range"].endswith(f"/{len(stored)}"))
            for text in (f"{len(stored)}-", "-0", "99999999999-"):
                status, headers, _ = self.get("/x.b2nd", Range="bytes=" + text)
                self.assertEqual((status, headers["Content-Range"]),
                                 (416, f"bytes */{len(stored)}"), text)
            for text in ("bytes=5-3", "bytes=", "bytes=-", "bytes=a-b", "items=0-3", "bytes=0-3,8-9",
                         "bytes=99999999999999999999-"):
                self.assertEqual(self.get("/x.b2nd", Range=text)[0], 200, text)
            status, headers, body = self.get("/x.b2nd", If_None_Match=tag)
            self.assertEqual((status, headers["ETag"], headers["Cache-Control"], body),
                             (304, tag, "no-cache", b""))
            self.assertEqual(self.get("/x.b2nd", Range="Bytes=0-3")[0], 206)
            self.assertEqual(self.get("/x.b2nd", If_None_Match="W/" + tag)[0], 304)
            self.assertEqual(self.get("/x.b2nd", If_Match='"other"')[0], 412)
            self.assertEqual(self.get("/x.b2nd", If_Match=tag)[0], 200)
            self.assertEqual(self.get("/x.b2nd", Range="bytes=0-3", If_Range=tag)[0], 206)
            self.assertEqual(self.get("/x.b2nd", Range="bytes=0-3", If_Range='"o"')[0], 200)
            self.ok("diff", self.path("data/x.b2nd"), self.url("/x.b2nd"))

    def test_headers_and_methods(self):
        with self.serving("data"):
            for path in ("/x.zarr/zarr.json", "/x.zarr/c/0/0/0", "/x.b2nd", "/none", "/"):
                headers = self.get(path)[1]
                self.assertEqual(headers["Access-Control-Allow-Origin"], "*", path)
                self.assertEqual(headers["Cache-Control"],
                                 "no-store" if path == "/none" else "no-cache")
            status, headers, _ = self.get("/x.zarr/zarr.json", "OPTIONS")
            self.assertEqual((status, headers["Access-Control-Allow-Methods"]),
                             (204, "GET, HEAD, OPTIONS"))
            for method in ("PUT", "POST", "DELETE", "PATCH", "BREW"):
                self.assertEqual(self.get("/x.b2nd", method, Content_Length="0")[0], 405, method)
            status, headers, body = self.get("/x.zarr/c/1/2/1")
            self.assertEqual(self.get("/x.zarr/c/1/2/1", Range="bytes=20-29")[2], body[20:30])
            self.assertEqual(self.get("/x.zarr/c/1/2/1", If_None_Match=headers["ETag"])[0], 304)

    def test_the_list(self):
        self.write("data/<b>&\u00fc %.b2nd", smooth((5,), "<i2"))
        self.path("data/.hidden").mkdir()
        self.write("data/.hidden/y.b2nd", smooth((5,)))
        os.symlink(self.path("secret.b2nd"), self.path("data/link.b2nd"))
        self.path("data/broken.b2nd").write_bytes(b"no frame")
        with self.serving("data"):
            found = json.loads(self.get("/index.json")[2])["arrays"]
            self.assertEqual([a["name"] for a in found], ["<b>&\u00fc %.zarr", "x.zarr"])
            self.assertEqual(found[1] | {"stored_bytes": 0},
                             {"name": "x.zarr", "file": "x.b2nd", "dtype": "<f4",
                              "shape": [30, 40, 50], "chunks": [5, 10, 25],
                              "data_bytes": self.items.nbytes, "stored_bytes": 0})
            page = self.get("/")[2].decode()
            self.assertNotIn("<b>&", page)
            self.assertIn("&lt;b&gt;&amp;\u00fc %.zarr", page)
            link = "/%3Cb%3E%26%C3%BC%20%25"
            self.assertIn(link + ".b2nd", page)
            self.assertEqual(self.get(link + ".zarr/zarr.json")[0], 200)
            self.assertEqual(self.get("/link.b2nd")[0], 404)

    def test_links_in_directories(self):
        self.ok("repack", self.path("secret.b2nd"), self.path("s.zarr"), "--zarr")
        self.path("data/a.zarr").mkdir()
        self.path("data/a.zarr/zarr.json").write_bytes(self.path("s.zarr/zarr.json").read_bytes())
        os.symlink(self.path("s.zarr/c"), self.path("data/a.zarr/c"))
        with blosc2.TreeStore(str(self.path("data/t.b2d")), mode="w") as tree:
            tree["/g/y"] = np.arange(5)
        os.symlink(self.path("secret.b2nd"), self.path("data/t.b2d/g/z.b2nd"))
        with self.serving("data"):
            for path in ("/a.b2nd", "/a.zarr/zarr.json", "/a.zarr/c/0", "/t.zarr/g/z/c/0",
                         "/t.zarr/zarr.json", "/view/a.zarr"):
                self.assertEqual(self.get(path)[0], 404, path)
            self.assertEqual(self.names_listed(), ["x.zarr"])
        self.assertIn("symbolic links in their directories: 2", self.path("stderr").read_text())

    def test_links_that_appear(self):
        """They are not followed before the next list, either."""
        with blosc2.TreeStore(str(self.path("data/t.b2d")), mode="w") as tree:
            tree["/g/y"] = np.arange(5)
        self.path("out").mkdir()
        os.rename(self.path("secret.b2nd"), self.path("out/secret.b2nd"))
        with self.serving("data"):
            self.assertEqual(self.get("/t.zarr/g/y/zarr.json")[0], 200)
            os.symlink(self.path("out"), self.path("data/t.b2d/lnk"))
            os.symlink(self.path("out/secret.b2nd"), self.path("data/t.b2d/g/z.b2nd"))
            os.remove(self.path("data/x.b2nd"))
            os.symlink(self.path("out/secret.b2nd"), self.path("data/x.b2nd"))
            for path in ("/t.zarr/lnk/secret/zarr.json", "/t.zarr/lnk/secret/c/0", "/t.zarr/g/z/c/0",
                         "/t.zarr/g/z/zarr.json", "/x.zarr/c/0", "/x.zarr/zarr.json", "/x.b2nd"):
                self.assertEqual(self.get(path)[0], 404, path)
        self.fails(3, "get", f"{self.path('data/t.b2d')}::/lnk/secret")

    def test_changes_are_seen(self):
        with self.serving("data/x.b2nd"):
            status, headers, first = self.get("/x.zarr/c/0/0/0")
            tag = self.get("/x.b2nd")[1]["ETag"]
            self.ok("put", self.path("data/x.b2nd"), "0,0,0", "--fill", "5")
            time.sleep(1.5)
            self.assertNotEqual(self.get("/x.zarr/c/0/0/0")[2], first)
            self.assertNotEqual(self.get("/x.b2nd")[1]["ETag"], tag)

    def test_a_commit_ends_the_answer(self):
        """A client never gets parts of two states of a file in one answer."""
        rng = np.random.default_rng(1)
        self.write("data/big.b2nd", rng.integers(0, 1 << 60, (32, 1 << 17)), chunks=(1, 1 << 17))
        size = self.path("data/big.b2nd").stat().st_size  # 32 MiB: not all is in a socket's buffers
        with self.serving("data"):
            tag = self.get("/big.b2nd", "HEAD")[1]["ETag"]
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                s.sendall(b"GET /big.b2nd HTTP/1.1\r\nHost: a\r\n\r\n")
                reply = s.recv(1000)
                self.assertIn(b"\r\nContent-Length: %d\r\n" % size, reply)
                self.ok("put", self.path("data/big.b2nd"), "31,9", "--fill", "5")
                got = len(reply)
                with contextlib.suppress(ConnectionResetError):
                    while part := s.recv(1 << 20):
                        got += len(part)
            self.assertLess(got, size)
            self.assertEqual(self.get("/big.b2nd", If_Match=tag)[0], 412)
            self.assertEqual(self.get("/big.b2nd", If_Match=tag, Range="bytes=0-9")[0], 412)
            self.assertEqual(self.get("/big.b2nd")[2], self.path("data/big.b2nd").read_bytes())

    def names_listed(self):
        return [a["name"] for a in json.loads(self.get("/index.json")[2])["arrays"]]

    def expect_list(self, *names):
        """A new list is made after two seconds, or later where a search takes long."""
        end = time.monotonic() + 60
        while self.names_listed() != [*names] and time.monotonic() < end:
            time.sleep(0.5)
        self.assertEqual(self.names_listed(), [*names])

    def test_files_come_and_go(self):
        self.path("data/sub").mkdir()
        with self.serving("data"):
            self.assertEqual(self.names_listed(), ["x.zarr"])
            self.assertEqual(self.get("/sub/new.b2nd")[0], 404)
            self.write("data/sub/new.b2nd", smooth((7,)))
            self.write("data/sub/newer.b2nd", smooth((8,)))
            self.expect_list("sub/new.zarr", "sub/newer.zarr", "x.zarr")
            self.assertEqual(self.get("/sub/new.zarr/zarr.json")[0], 200)
            self.path("data/x.b2nd").unlink()
            self.assertEqual(self.get("/x.b2nd")[0], 404)
            self.expect_list("sub/new.zarr", "sub/newer.zarr")
            self.path("data").rename(self.path("gone"))
            self.expect_list()
            self.path("gone").rename(self.path("data"))
            self.expect_list("sub/new.zarr", "sub/newer.zarr")

    def test_damage_is_an_error(self):
        self.ok("seal", self.path("data/x.b2nd"))
        data = bytearray(self.path("data/x.b2nd").read_bytes())
        data[400:1200] = bytes(800)
        self.path("data/x.b2nd").write_bytes(data)
        with self.serving("data"):
            status, _, body = self.get("/x.zarr/c/0/0/0")
            self.assertEqual(status, 500)
            self.assertNotIn(str(self.folder).encode(), body)
        self.assertIn("x.b2nd", self.path("stderr").read_text())

    def test_addresses_of_arrays(self):
        """Not of a key or a file: what an address is for, is said."""
        with self.serving("data"):
            for path in ("/x.zarr", "/x.zarr/"):
                status, _, body = self.get(path)
                self.assertEqual((status, b"zarr.json" in body), (404, True))
            self.assertIn("open the file", self.fails(5, "info", self.url("/x.zarr")))
            self.ok("info", self.url("/x.b2nd"))

    def test_targets_and_names(self):
        with blosc2.TreeStore(str(self.path("data/t.b2d")), mode="w") as tree:
            tree["/g/y"] = np.arange(5)
        self.write("data/dup.b2frame", smooth((5,)))
        self.write("data/dup.b2nd", smooth((6,)))
        self.path("data/broken.b2nd").write_bytes(b"no frame")
        self.path("data/view").mkdir()
        self.write("data/view/v.b2nd", smooth((7,)))
        with self.serving("data"):
            self.assertEqual(json.loads(self.get("/view/v.zarr/zarr.json")[2])["shape"], [7])
            for path in ("/t.zarr/g/../g/y/zarr.json", "/t.zarr/g/../zarr.json", "/t.zarr/../zarr.json"):
                self.assertEqual(self.get(path)[0], 404, path)
            self.assertEqual(self.get("http://127.0.0.1/index.json")[2], self.get("/index.json")[2])
            self.assertEqual(self.get("HTTP://a")[0], 200)
            for name in ("dup.b2frame", "dup.b2nd"):
                self.assertEqual(self.get("/" + name)[2], self.path("data/" + name).read_bytes())
            for _ in range(3):
                self.get("/index.json")
                self.assertEqual(self.get("/broken.zarr/zarr.json")[0], 500)
        self.assertEqual(self.path("stderr").read_text().count("broken.b2nd"), 1)

    def test_what_cannot_be_served(self):
        self.fails(3, "serve", self.path("data/none"))
        self.path("empty").mkdir()
        self.assertIn("no array or tree", self.fails(3, "serve", self.path("empty")))
        self.fails(2, "serve", "http://example.org/x.b2nd")
        self.fails(2, "serve", self.path("data"), "--port", "99999")
        with self.serving("data"): # or skips
            self.fails(2, "serve", self.path("data"), "--bind", "256.1.1.1")
            self.assertIn("cannot listen",
                          self.fails(3, "serve", self.path("data"), "--port", self.port))

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.serving("data") as server:
                self.get("/")
                server.send_signal(number)
                self.assertEqual(server.wait(60), 0)
                server.poll = lambda: None


@unittest.skipIf(zarr is None, "zarr-python is not installed")
class Zarr(Server):
    """Read by zarr-python, through a store of plain requests."""

    def open(self, path, **options):
        test = self

        class Http(zarr.storage.MemoryStore):
            async def get(self, key, prototype=None, byte_range=None):
                status, _, body = await asyncio.to_thread(test.get, f"{path}/{key}")
                if status == 404:
                    return None
                test.assertEqual(status, 200, key)
                return (prototype or zarr.core.buffer.default_buffer_prototype()
                        ).buffer.from_bytes(body)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return zarr.open(Http(read_only=True), mode="r", **options)

    def test_arrays(self):
        self.write("data/delta.b2nd", self.items, chunks=(10, 20, 25), blocks=(5, 10, 25),
                   cparams={"filters": [blosc2.Filter.DELTA]})
        self.write("data/odd.b2nd", self.items, chunks=(10, 20, 25), blocks=(4, 13, 25))
        self.write("data/zero.b2nd", np.float64(3))
        self.ok("repack", self.path("data/x.b2nd"), self.path("data/dual.zarr"), "--zarr")
        with self.serving("data"):
            for name in ("x", "delta", "odd", "dual"):
                found = self.open(f"/{name}.zarr")
                np.testing.assert_array_equal(found[...], self.items)
                np.testing.assert_array_equal(found[3:9, ::7, 5], self.items[3:9, ::7, 5])
            self.assertEqual(self.open("/zero.zarr")[()], 3)
            self.ok("diff", self.path("data/x.b2nd"), self.url("/dual.b2nd"))

    def test_trees(self):
        with blosc2.TreeStore(str(self.path("data/t.b2d")), mode="w") as tree:
            tree["/g/x"] = self.items
            tree["/y"] = np.arange(5)
        self.ok("pack", self.path("data/t.b2d"), self.path("data/p.b2z"))
        with self.serving("data"):
            for name in ("t", "p"):
                root = self.open(f"/{name}.zarr")
                self.assertEqual(sorted(k for k, _ in root.members(max_depth=None)),
                                 ["g", "g/x", "y"])
                np.testing.assert_array_equal(root["g/x"][...], self.items)
            self.assertEqual(self.get("/p.b2z")[0], 200)
            self.assertEqual(self.get("/t.zarr/none/zarr.json")[0], 404)


class Hostile(Server):
    def memory(self, server):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{server.pid}/status").read_text()
            return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) << 10
        return 0

    def place_canaries(self):
        """Beside PATH, in it but no array, behind a link in it; as text and as items."""
        self.canary = os.urandom(12).hex().encode()
        items = np.frombuffer(self.canary * 40, "u1")
        self.path("canary.txt").write_bytes(self.canary)
        self.path("data/canary.txt").write_bytes(self.canary)
        self.path("beside").mkdir()
        self.write("canary.b2nd", items, cparams={"clevel": 0})
        self.write("beside/canary.b2nd", items, cparams={"clevel": 0})
        os.symlink(self.path("beside"), self.path("data/beside"))
        os.symlink(self.path("canary.b2nd"), self.path("data/link.b2nd"))

    def hostile_path(self, rng):
        if rng.random() < 0.3:  # of a good one, the header fields may be hostile
            return rng.choice(["/", "/index.json", "/x.b2nd", "/x.zarr/zarr.json", "/x.zarr/c/1/2/1"])
        ups = ["..", "%2e%2e", "%252e%252e", "%2e.", "..%5c", "..%00", "%c0%ae%c0%ae", "%uff0e.", "..;",
               "....//", "..%252f", "\xc0\xae.", "%%32%65."]
        names = [*ups, ".", "", "%00", "x.b2nd", "x.zarr", "c", "0", "zarr.json", "view", "etc", "-1",
                 "99999999999999999999", "%ff", "%", "a" * 300, "::", "g", "\x7f", "%0d%0aX: y"]
        targets = ["canary.txt", "canary.b2nd", "canary.zarr/c/0", "beside/canary.b2nd",
                   "beside/canary.zarr/c/0", "link.b2nd", "link.zarr/c/0", "notes.txt",
                   str(self.path("canary.txt")), "etc/passwd", "proc/self/environ", "c/0/0/0",
                   f"x.b2nd::{self.path('canary.b2nd')}"]
        slash = rng.choice(["/", "%2f", "//", "%252f", "\\"])
        start = rng.choice(["/", "//", "/view/", "/x.zarr/", "/x.b2nd/", "/data/", "",
                            "http://127.0.0.1/", "file://", "*"])
        middle = [rng.choice(ups if rng.random() < 0.5 else names) for _ in range(rng.randrange(8))]
        return start + slash.join([*middle, rng.choice(targets).replace("/", slash)])

    def hostile_request(self, rng):
        lines = [f"{rng.choice(['GET', 'HEAD', 'GET', 'GET', 'POST', 'X' * 50])} "
                 f"{self.hostile_path(rng)} HTTP/1.1", "Host: a"]
        fields = [*["Range: bytes=%d-%d", "Range: bytes=%d-", "Range: bytes=-%d"] * 4, "If-Match: %d", "X: " + "y" * 3000,
                  "If-None-Match: " + '"a",' * 200, "Range: " + "bytes=0-1," * 100, "Host: %d",
                  "Range: bytes=" + "0-,5-9," * 300 + "1-1", "Range: bytes=9-1", "Range: bytes=" + "9" * 900,
                  "Content-Length: %d", "Content-Length: -1", "Transfer-Encoding: chunked",
                  "Connection: close", "Expect: 100-continue", "Upgrade: h2c", " folded", "no colon",
                  "X-Original-URL: /canary.txt", "Cookie: " + "a=b; " * 500, "\0: \0"]
        for _ in range(rng.randrange(4)):
            field = rng.choice(fields)
            lines.append(re.sub("%d", lambda _: str(rng.randrange(1 << rng.randrange(1, 70))),
                                field))
        if rng.random() < 0.05:  # huge, or many
            lines += ["H: " + "h" * (1 << rng.randrange(10, 20)), *["A: b"] * rng.randrange(5000)]
        data = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        if rng.random() < 0.1:
            data = bytes(rng.randrange(256) for _ in range(rng.randrange(2000)))
        elif rng.random() < 0.1:
            data = data[:rng.randrange(len(data))]
        elif rng.random() < 0.1:
            data *= rng.randrange(1, 20)
        return data

    def send_hostile(self, rng):
        """Returns the reply. Some requests wait for a body, or for their end."""
        reply = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            with contextlib.suppress(OSError):
                s.sendall(self.hostile_request(rng))
            s.settimeout(0.1)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
                while part := s.recv(1 << 16):
                    reply += part
        return reply

    def check_alive(self, server):
        status, _, body = self.get("/x.b2nd", Range="bytes=10-99")
        self.assertEqual((status, body), (206, self.path("data/x.b2nd").read_bytes()[10:100]))
        if not SANITIZED:
            self.assertLess(self.memory(server), MEMORY)

    def test_paths_and_requests(self):
        seed = random.randrange(1 << 30)
        print("seed", seed)
        rng = random.Random(seed)
        self.place_canaries()
        passwords = Path("/etc/passwd").read_bytes()[:20]
        seen = collections.Counter()
        with self.serving("data") as server:
            for n in range(10_000 if LONG else 600):
                reply = self.send_hostile(rng)
                for secret in (self.canary, passwords, b"HOME="):
                    self.assertNotIn(secret, reply, (seed, n))
                seen[reply[9:12].decode() if reply.startswith(b"HTTP/1.") else
                     "not HTTP" if reply else "no reply"] += 1
                if n % 100 == 0:
                    self.check_alive(server)
            self.check_alive(server)
            print(dict(seen), "memory", self.memory(server) >> 20, "MiB")
            self.assertEqual(seen["not HTTP"], 0)

    def connect(self, n):
        """Sockets that may wait for the server to accept them."""
        clients = []
        for _ in range(n):
            s = socket.socket()
            self.addCleanup(s.close)
            s.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                s.connect(("127.0.0.1", self.port))
            clients.append(s)
        return clients

    def send(self, clients, data):
        for n, s in enumerate(clients):
            with contextlib.suppress(OSError):
                s.send(data(n))

    def wait_for_answer(self, server, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                if self.get("/x.zarr/zarr.json")[0] == 200:
                    self.check_alive(server)
                    return
            time.sleep(0.2)
        self.fail("the server does not answer any more")

    def test_many_and_slow_connections(self):
        rng = np.random.default_rng(1)
        self.write("data/big.b2nd", rng.integers(0, 1 << 60, (64, 1 << 17)),
                   chunks=(8, 1 << 17), blocks=(1, 1 << 17))  # blocks of 1 MiB
        with self.serving("data") as server:
            clients = self.connect(1000)
            time.sleep(0.5)
            self.send(clients, lambda n: b"GET /big.zarr HT" if n % 2 == 0 else  # never reads
                      b"GET /big.zarr/c/%d/0 HTTP/1.1\r\nHost: a\r\n\r\n" % (n % 64))
            time.sleep(1)
            for s in clients:
                s.close()
            self.wait_for_answer(server, 30)

    def test_requests_wait_for_memory(self):
        """Blocks of 8 MiB, 16 at once; then the server stops while some wait."""
        rng = np.random.default_rng(1)
        items = rng.integers(0, 1 << 60, (16, 1 << 20))
        self.write("data/big.b2nd", items, chunks=(4, 1 << 20), blocks=(1, 1 << 20))
        request = b"GET /big.zarr/c/%d/0 HTTP/1.1\r\nHost: a\r\n\r\n"
        with self.serving("data") as server:
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                replies = pool.map(self.get, [f"/big.zarr/c/{n}/0" for n in range(16)])
                for n, (status, _, body) in enumerate(replies):
                    self.assertEqual(status, 200)
                    self.assertTrue(blosc2.decompress(body) == items[n].tobytes(), n)
            if not SANITIZED:
                self.assertLess(self.memory(server), MEMORY)
            clients = self.connect(16)
            for n, s in enumerate(clients):
                s.setblocking(True)
                s.sendall(request % n)
            time.sleep(1)
            stopped = time.monotonic()
        self.assertLess(time.monotonic() - stopped, 10)

    def test_a_crowd_is_answered(self):
        """2,000 connections at once with a request each, which the client keeps, as Node does."""
        request = b"GET /x.zarr/c/1/2/1 HTTP/1.1\r\nHost: a\r\n\r\n"
        with self.serving("data"):
            chunk = self.get("/x.zarr/c/1/2/1")[2]
            waiting = selectors.DefaultSelector()
            for s in self.connect(2000):
                waiting.register(s, selectors.EVENT_WRITE, [])
            end = time.monotonic() + (120 if WINDOWS else 60 if SANITIZED else 30)
            answered = 0
            while answered < 2000 and time.monotonic() < end:
                for key, _ in waiting.select(1):
                    if key.events == selectors.EVENT_WRITE:
                        key.fileobj.send(request)
                        waiting.modify(key.fileobj, selectors.EVENT_READ, key.data)
                        continue
                    part = key.fileobj.recv(1 << 16)
                    key.data.append(part)
                    if b"".join(key.data).endswith(chunk) or not part:
                        self.assertTrue(part, key.data)
                        waiting.unregister(key.fileobj)
                        answered += 1
            self.assertEqual(answered, 2000)
            stopped = time.monotonic()
        self.assertLess(time.monotonic() - stopped, 10)

    @unittest.skipUnless(LONG, "it waits for a minute")
    def test_slow_connections_are_closed(self):
        """1,000 clients that send a byte each second, and stay."""
        with self.serving("data") as server:
            clients = self.connect(1000)
            words = b"GET /x.zarr/zarr.json HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200
            for n in range(45):
                self.send(clients, lambda _: words[n:n + 1])  # noqa: B023
                time.sleep(1)
            self.wait_for_answer(server, 30)
            print("memory", self.memory(server) >> 20, "MiB")


if __name__ == "__main__":
    main()
