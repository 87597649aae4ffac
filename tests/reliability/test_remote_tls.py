"""HTTPS: servers with a wrong certificate are refused with a message that names them, and reads
over HTTP/1.1 and HTTP/2 are right and take the number of requests that the handle counts."""

import os
import subprocess
import threading
import time
import unittest

import numpy as np

from tool_remote_case import CLI, NGINX, OPENING, Case as RemoteCase, Reader, convert, fnv
import certificates
import nginx_server
from relay import Relay
from scripted_server import Reply

MULTIPLEXED = 100  # concurrent requests on an HTTP/2 connection
VARIABLES = ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@unittest.skipUnless(certificates.OPENSSL, "openssl is not installed")
class Case(RemoteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in VARIABLES:
            os.environ.pop(name, None)
        cls.authority = certificates.Authority(cls.folder)
        cls.other_authority = certificates.Authority(cls.folder, "other")
        cls.pair = cls.authority.certify("good", "DNS:localhost")

    def trusting(self, server, *words, path="/a.b2nd"):
        return self.reader.say("open", server.url(path), "ca=%s" % self.authority.file, *words)


class Trust(Case):
    def setUp(self):
        super().setUp()
        self.server = self.serve(tls=self.pair)

    def info(self, *words, server=None, **variables):
        return subprocess.run([CLI, "info", (server or self.server).url("/a.b2nd"), *map(str, words)],
                              capture_output=True, text=True, env={**os.environ, **variables})

    def refused(self, answer, words):
        self.fails(answer, "the certificate of localhost is refused: .*" + words)
        self.assertNotIn("times", answer)  # another attempt would end the same way
        self.assertEqual(self.server.requests, [])

    def test_who_vouches_is_given(self):
        self.assertEqual(self.trusting(self.server), "ok")
        self.reads_right()

    def test_nobody_known_vouches(self):
        self.refused(self.reader.say("open", self.server.url("/a.b2nd")), "issuer")

    def test_somebody_else_vouches(self):
        answer = self.reader.say("open", self.server.url("/a.b2nd"),
                                 "ca=%s" % self.other_authority.file)
        self.refused(answer, "issuer")

    def test_one_who_trusts_does_not_let_in_another(self):
        """Neither a kept connection nor its TLS session lets a handle in that does not trust
        the certificate."""
        self.assertEqual(self.trusting(self.server), "ok")
        self.server.requests.clear()
        self.refused(self.reader.say("open", self.server.url("/a.b2nd")), "issuer")

    def test_of_another_host(self):
        self.server = self.serve(tls=self.authority.certify("elsewhere", "DNS:elsewhere.example"))
        self.refused(self.trusting(self.server), "(name|host)")

    def test_that_is_over(self):
        self.server = self.serve(tls=self.authority.certify("old", "DNS:localhost", days=-1))
        self.refused(self.trusting(self.server), "expired")

    def test_of_where_a_redirection_leads(self):
        elsewhere = self.serve(tls=self.other_authority.certify("good", "DNS:localhost"))
        plain = self.serve()
        plain.script = lambda r: Reply(302, {"Location": elsewhere.url("/a.b2nd")})
        answer = self.reader.say("open", plain.url("/a.b2nd"))
        self.fails(answer, "127.0.0.1.*the certificate of localhost is refused")

    def test_that_changes_while_it_is_read(self):
        """The certificate of a later connection is checked as that of the first one."""
        self.assertEqual(self.trusting(self.server, "nocache", "retries=1"), "ok")
        self.server.certify(*self.other_authority.certify("good", "DNS:localhost"))
        self.server.script = lambda r: Reply(503, closes=True)
        self.fails(self.reader.say("read"), "the certificate of localhost is refused")

    def test_files_that_are_none(self):
        answer = self.reader.say("open", self.server.url("/a.b2nd"), "ca=/nowhere/ca.pem")
        self.fails(answer, "cannot read the certificates in /nowhere/ca.pem: No such file")
        (self.folder / "odd.pem").write_text("no certificate")
        answer = self.reader.say("open", self.server.url("/a.b2nd"),
                                 "ca=%s" % (self.folder / "odd.pem"))
        self.fails(answer, r"localhost:\d+/a\.b2nd: (?!the certificate of).*odd\.pem")
        self.assertEqual(self.server.requests, [])

    def test_the_command_line(self):
        done = self.info("--ca-file", self.authority.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.info()
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "the certificate of localhost is refused")

    def test_the_environment(self):
        good, wrong = str(self.authority.file), str(self.other_authority.file)
        for name in VARIABLES[1:]:
            done = self.info(**{name: good})
            self.assertEqual(done.returncode, 0, (name, done.stderr))
        for variables in ({"AWS_CA_BUNDLE": good}, {"CURL_CA_BUNDLE": wrong, "SSL_CERT_FILE": good}):
            self.assertEqual(self.info(**variables).returncode, 3, variables)
        done = self.info("--ca-file", good, CURL_CA_BUNDLE=wrong)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_environment_of_s3(self):
        self.server.objects["/bucket/a.b2nd"] = self.frame
        good, wrong = str(self.authority.file), str(self.other_authority.file)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        done = subprocess.run(
            [CLI, "info", "s3://bucket/a.b2nd"], capture_output=True, text=True,
            env={**kept, "HOME": str(self.folder), "AWS_ENDPOINT_URL": self.server.url(""),
                 "AWS_CA_BUNDLE": good, "CURL_CA_BUNDLE": wrong})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_redirection_to_http(self):
        plain = self.serve()
        for status in (301, 302, 303, 307, 308):
            self.server.script = lambda r: Reply(status, {"Location": plain.url("/a.b2nd")})
            self.fails(self.trusting(self.server), "from https to http, which is not followed")
        self.server.script = None
        self.assertEqual(self.trusting(self.server, "nocache"), "ok")
        self.server.script = lambda r: Reply(302, {"Location": plain.url("/a.b2nd")})
        self.fails(self.reader.say("read"), "from https to http, which is not followed")
        self.assertEqual(plain.requests, [])

    def test_a_redirection_within_https(self):
        other = self.serve(tls=self.pair)
        self.server.script = lambda r: Reply(302, {"Location": other.url("/a.b2nd")})
        self.assertEqual(self.trusting(self.server, "nocache", "token=hidden"), "ok")
        self.reads_right()
        self.assertEqual(self.server.requests[0].headers["x-token"], "hidden")
        self.assertFalse([r for r in other.requests if "x-token" in r.headers])

    def test_publishing(self):
        path = self.folder / "a.b2nd"
        path.write_bytes(self.frame)
        url = self.server.url("/new.b2nd")
        done = subprocess.run([CLI, "publish", path, url], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "the certificate of localhost is refused")
        done = subprocess.run([CLI, "publish", path, url, "--ca-file", self.authority.file],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.server.objects["/new.b2nd"], self.frame)


@unittest.skipUnless(NGINX, "nginx is not installed (scripts/bootstrap --test)")
class Http1(Case):
    """A real server; its log shows how it responded."""

    PROTOCOL, HTTP2 = "HTTP/1.1", False
    SINGLE = "max_ranges 1;"  # responds to a request for several ranges with the whole object

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.www = cls.folder / "www"
        cls.www.mkdir()
        (cls.www / "a.b2nd").write_bytes(cls.frame)
        items = np.random.default_rng(8).integers(0, 1 << 40, (64, 64, 512))
        convert(cls.www, "many.b2nd", items, "--chunks", "16,16,512", "--blocks", "4,4,64",
                "--codec", "blosclz", "--level", "0", "-T", "1")
        cls.many, cls.many_hash = items, fnv(items.tobytes())

    def start(self, lines=""):
        server = nginx_server.Nginx(NGINX, self.folder, self.www, lines, tls=self.pair,
                                    http2=self.HTTP2)
        self.addCleanup(server.close)
        self.log = self.folder / "access.log"
        self.log.write_text("")
        return server

    def requests(self, n):
        """The lines of the log, as soon as there are n: a request is logged after its
        response."""
        end = time.monotonic() + 60
        while len(lines := self.log.read_text().splitlines()) < n:
            assert time.monotonic() < end, lines
            time.sleep(0.01)
        return [line.split() for line in lines]

    def told(self):
        return int(self.reader.say("transfers").split()[0])

    def told_lines(self):
        """The least and the greatest number of lines of the log: a server that closes a
        connection may log the requests that it did not answer, which are sent again, or not."""
        n, _, _, _, retried, _ = map(int, self.reader.say("transfers").split())
        return n - retried, n

    def test_what_is_read_and_what_it_takes(self):
        server = self.start()
        self.assertEqual(self.trusting(server, "nocache", path="a.b2nd"), "ok")
        self.assertEqual([line[:3] for line in self.requests(1)],
                         [["206", str(OPENING), self.protocol()]])
        self.assertEqual(self.reader.say("point", 33, 5, 7),
                         "ok " + self.items[33, 5, 7].tobytes().hex())
        self.assertLessEqual(self.told(), 4)
        self.reads_right()
        told = self.told()
        lines = self.requests(told)
        self.assertEqual(len(lines), told)
        self.assertEqual({line[0] for line in lines}, {"206"})
        self.assertEqual({line[2] for line in lines}, {self.protocol()})

    def protocol(self):
        return self.PROTOCOL

    def scattered(self, server, *words):
        """Reads many blocks that are far apart; returns the log lines of their requests. A
        server whose name says that it sends several parts, and that does not, is asked at most
        once per connection."""
        self.assertEqual(self.trusting(server, "nocache", "over=-1", *words, path="many.b2nd"), "ok")
        opened = len(self.requests(1))
        self.assertRegex(self.reader.say("box", 0, 64, 0, 64, 65, 66), r"\Aok ")
        least, told = self.told_lines()
        if "keepalive" not in server.lines: # it closes no connection
            self.assertEqual(least, told)
        lines = self.requests(least)
        self.assertIn(len(lines), range(least, told + 1))
        refused = [line for line in lines if line[0] == "200"]
        most = int(words[0].partition("=")[2]) if words else 16
        self.assertIn(len(refused), range(1, most + 1) if self.SINGLE in server.lines else [0])
        self.assertEqual({line[0] for line in lines if line not in refused}, {"206"})
        return lines[opened:]

    def test_many_at_once(self):
        lines = self.scattered(self.start(self.SINGLE), "connections=4")
        self.assertGreater(len(lines), 200)
        self.check_connections({line[3] for line in lines})
        self.assertEqual(self.reader.say("read"), "ok " + self.many_hash)

    def test_several_at_once(self):
        lines = self.scattered(self.start(), "connections=4")
        self.assertLess(len(lines), 30)
        self.assertLessEqual(len({line[3] for line in lines}), 4)
        self.assertEqual(self.reader.say("read"), "ok " + self.many_hash)

    def check_connections(self, connections):
        """Connections whose response is the whole object are closed."""
        self.assertGreater(len(connections), 1)
        self.assertLessEqual(len(connections), 4 + 4)

    def test_from_threads(self):
        server = self.start()
        self.assertEqual(self.trusting(server, "nocache", "over=-1", path="many.b2nd"), "ok")
        self.assertEqual(self.reader.say("threads", 8), "ok 0")
        self.assertEqual(len(self.requests(self.told())), self.told())

    def test_stopping(self):
        """A stopped read leaves nothing behind that disturbs the next one."""
        server = self.start("limit_rate 50k;")
        os.environ["CURL_CA_BUNDLE"] = str(self.authority.file)
        self.addCleanup(os.environ.pop, "CURL_CA_BUNDLE")
        reader = Reader()
        self.addCleanup(reader.close)
        for _ in range(3):
            answer = reader.say("stop", 20, server.url("many.b2nd"))
            self.assertRegex(answer, r"\Astopped ")
        self.assertEqual(reader.say("open", server.url("a.b2nd"), "nocache"), "ok")

    def test_replaced(self):
        server = self.start()
        self.addCleanup((self.www / "a.b2nd").write_bytes, self.frame)
        self.assertEqual(self.trusting(server, "nocache", path="a.b2nd"), "ok")
        (self.www / "new").write_bytes(self.other)
        os.utime(self.www / "new", (1, 1))
        os.replace(self.www / "new", self.www / "a.b2nd")
        self.fails(self.reader.say("read"), "changed on the server")
        self.assertEqual(self.reader.say("refresh"), "ok")
        self.assertEqual(self.reader.say("read"), "ok " + self.other_hash)

    def test_published(self):
        server = self.start("dav_methods PUT; create_full_put_path on; client_max_body_size 0;")
        path = self.folder / "here.b2nd"
        path.write_bytes(self.frame)
        url = server.url("new-%s.b2nd" % self.HTTP2)
        done = subprocess.run([CLI, "publish", path, url, "--ca-file", self.authority.file],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({line[2] for line in self.requests(3)}, {self.protocol()})
        self.assertEqual((self.www / url.rsplit("/", 1)[1]).read_bytes(), self.frame)


class Http2(Http1):
    PROTOCOL, HTTP2 = "HTTP/2.0", True

    def check_connections(self, connections):
        self.assertEqual(len(connections), 1)

    def test_more_at_once_than_connections(self):
        """All requests that fit are sent on the one connection before the first response
        arrives."""
        server = self.start(self.SINGLE)
        relay = Relay(server.port)
        self.addCleanup(relay.close)
        server.port = relay.port
        self.assertEqual(self.trusting(server, "nocache", "over=-1", "connections=2",
                                       path="many.b2nd"), "ok")
        self.assertRegex(self.reader.say("box", 0, 64, 0, 64, 65, 66), r"\Aok ")  # and layouts
        before = len(self.requests(self.told()))
        relay.holds = True

        def let_go():
            try:
                self.logged = len(self.requests(before + MULTIPLEXED)) - before
            finally:
                relay.holds = False
        waiting = threading.Thread(target=let_go)
        waiting.start()
        answer = self.reader.say("box", 0, 64, 0, 64, 129, 130)
        waiting.join()
        self.assertRegex(answer, r"\Aok ")
        self.assertEqual(self.logged, MULTIPLEXED)
        self.assertEqual(relay.connections, 1)

    def test_a_connection_that_was_idle(self):
        """The server closes it: all requests wait for one new connection instead of opening one
        each."""
        server = self.start("keepalive_timeout 1s;" + self.SINGLE)
        lines = self.scattered(server)
        time.sleep(3)  # if that is too short, it is the same connection
        self.assertRegex(self.reader.say("box", 0, 64, 0, 64, 129, 130), r"\Aok ")
        more = self.requests(self.told_lines()[0])[len(lines) + 1:]
        self.assertGreater(len(more), 200)
        self.assertEqual(len({line[3] for line in more}), 1)

    def test_a_connection_that_ends(self):
        """The server closes it after a number of requests, with others in flight."""
        lines = self.scattered(self.start("keepalive_requests 50;" + self.SINGLE))
        self.assertGreater(len({line[3] for line in lines}), 1)
        self.assertEqual(self.reader.say("read"), "ok " + self.many_hash)


if __name__ == "__main__":
    unittest.main(verbosity=2)
