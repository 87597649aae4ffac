"""A headless Chromium, driven by its DevTools protocol, for tests of pages."""

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import urllib.request


def program():
    """The path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """Opens one page. `evaluate` returns the value of an expression, or of its promise."""

    def __init__(self, folder, url):
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                   "--no-first-run", f"--user-data-dir={folder}"]
        self.process = subprocess.Popen([program(), *options, url], stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, text=True,
                                        env=os.environ | {"HOME": str(folder)})
        for line in self.process.stderr:
            if found := re.search(r"ws://(127.0.0.1:\d+)/", line):
                break
        pages = json.load(urllib.request.urlopen(f"http://{found[1]}/json", timeout=60))
        page = next(p for p in pages if p["type"] == "page")
        host, path = re.fullmatch(r"ws://([^/]+)(/.*)", page["webSocketDebuggerUrl"]).groups()
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline() != b"\r\n":
            pass
        self.calls = 0

    def close(self):
        self.stream.close()
        self.socket.close()
        self.process.terminate()
        self.process.wait(60)
        self.process.stderr.close()

    def send(self, text):
        data = text.encode()
        size = (bytes([0x80 | len(data)]) if len(data) < 126 else
                b"\xfe" + struct.pack(">H", len(data)) if len(data) < 1 << 16 else
                b"\xff" + struct.pack(">Q", len(data)))
        self.socket.sendall(b"\x81" + size + bytes(4) + data)  # a mask of zeros

    def receive(self):
        message = b""
        while True:
            first, size = self.stream.read(2)
            if size == 126:
                size, = struct.unpack(">H", self.stream.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.stream.read(8))
            message += self.stream.read(size)
            if first & 0x80:
                return json.loads(message)

    def evaluate(self, expression):
        """The value of the expression; None if the browser leaves the page meanwhile."""
        self.calls += 1
        self.send(json.dumps({"id": self.calls, "method": "Runtime.evaluate", "params": {
            "expression": expression, "awaitPromise": True, "returnByValue": True}}))
        while (reply := self.receive()).get("id") != self.calls:
            pass
        if "exceptionDetails" in reply.get("result", {}):
            raise AssertionError(reply["result"]["exceptionDetails"])
        return reply.get("result", {}).get("result", {}).get("value")
