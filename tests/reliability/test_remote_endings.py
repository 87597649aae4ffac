"""Servers that close connections: after a number of requests (nginx's keepalive_requests), or
after an idle time (keepalive_timeout). That is no error: no request that was answered is sent
again, and nothing counts as a retry."""

import subprocess
import threading
import time
import unittest

from tool_remote_case import CLI, NGINX, Case as RemoteCase, convert
import nginx_server
from scripted_server import ScriptedServer


class Ending(ScriptedServer):
    """Closes each connection after `answers` responses; `says`: the last one announces it;
    `rests`: seconds between that response and the close."""

    def __init__(self, answers, says, rests=0.0):
        self.answers, self.says, self.rests = answers, says, rests
        self._connection = threading.local()
        super().__init__()

    def _send(self, connection, request, reply):
        done = self._connection.done = getattr(self._connection, "done", 0) + 1
        if done < self.answers:
            return super()._send(connection, request, reply)
        if self.says:
            reply.headers["Connection"] = "close"
        super()._send(connection, request, reply)
        time.sleep(self.rests)
        return False


class Case(RemoteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder_array = convert(cls.folder, "d.b2nd", cls.items, "--sparse", "--chunks", "5,10,25",
                                   "--codec", "blosclz", "--level", "0")

    def fill(self, server):
        self.addCleanup(server.close)
        server.objects["/a.b2nd"] = self.frame
        for file in self.folder_array.iterdir():
            server.objects["/d.b2nd/" + file.name] = file.read_bytes()
        return server

    def counted(self, url):
        """Counts requests and retries of two openings and reads."""
        requests = retried = 0
        for name in ("a.b2nd", "d.b2nd"):
            self.assertEqual(self.reader.say("open", url(name), "nocache", "retries=0"), "ok", name)
            for _ in range(2):
                self.reads_right()
                for i in range(0, 40, 3):
                    self.assertRegex(self.reader.say("point", i, i, i), r"\Aok ")
            words = self.reader.say("transfers").split()
            requests, retried = requests + int(words[-6]), retried + int(words[-2])
        return requests, retried


class Endings(Case):
    def compared(self, **words):
        steady = self.fill(ScriptedServer())
        wanted, _ = self.counted(lambda name: steady.url("/" + name))
        self.assertEqual(len(steady.requests), wanted)
        for answers in (1, 2, 7):
            with self.subTest(answers=answers):
                server = self.fill(Ending(answers, **words))
                found, retried = self.counted(lambda name: server.url("/" + name))
                server.settle()
                # libcurl may give up a request that meets several closed connections in a row;
                # no request that was answered is sent again.
                self.assertLessEqual(retried, 0 if words["says"] else found // 10)
                self.assertEqual(len(server.requests), found - retried)
                self.assertLessEqual(found, wanted * 1.1 + 4)  # round-trip times vary
                self.assertGreaterEqual(server.connections, len(server.requests) // answers)

    def test_that_are_said(self):
        self.compared(says=True)

    def test_that_are_not_said(self):
        self.compared(says=False)

    def test_that_come_late(self):
        self.compared(says=False, rests=0.002)


@unittest.skipUnless(NGINX, "nginx is not installed")
class Nginx(Case):
    def reads(self, lines):
        server = nginx_server.Nginx(NGINX, self.folder, self.folder, lines)
        self.addCleanup(server.close)
        log = self.folder / "access.log"
        log.write_text("")
        requests, retried = self.counted(server.url)
        self.assertEqual(retried, 0)
        time.sleep(0.2)
        entries = [line.split() for line in log.read_text().splitlines()]
        entries = [entry for entry in entries if entry[0] in ("200", "206")]
        self.assertLessEqual(requests - 2, len(entries))  # except a refused redirection
        self.assertLessEqual(len(entries), requests)
        return entries

    def test_few_requests_for_a_connection(self):
        entries = self.reads("keepalive_requests 5;")
        self.assertGreaterEqual(len({entry[3] for entry in entries}), len(entries) // 5)

    def test_connections_that_end_at_once(self):
        entries = self.reads("keepalive_timeout 0;")
        self.assertEqual(len({entry[3] for entry in entries}), len(entries))

    def test_connections_that_rested_too_long(self):
        server = nginx_server.Nginx(NGINX, self.folder, self.folder, "keepalive_timeout 1s;")
        self.addCleanup(server.close)
        self.assertEqual(self.reader.say("open", server.url("a.b2nd"), "nocache", "retries=0"), "ok")
        self.reads_right()
        time.sleep(2.5)
        self.reads_right()
        self.assertEqual(self.reader.say("transfers").split()[-2], "0")
        done = subprocess.run([CLI, "verify", server.url("a.b2nd")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
