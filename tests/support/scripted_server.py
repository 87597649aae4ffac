"""A web server for tests: records requests, and misbehaves on demand.

    server = ScriptedServer()                  # on loopback, a port of the system's choice
    server.objects["/a.b2nd"] = b"..."
    server.url("/a.b2nd")
    server.script = lambda request: Reply(...) # or None: a correct response

A correct response has one or several ranges (with `parts=False` the whole object instead of
several), supports ETags and If-Match, and keeps the connection open. The server accepts
conditional PUT and S3 multipart uploads. `before_body` is called after the fields of a request
and before its body; it may sleep, or return False, which resets the connection.
"""

import email.utils
import functools
import hashlib
import re
import urllib.parse
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Request:
    number: int  # of all requests, from 0
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes = b""
    began: float = 0.0
    ended: float = 0.0
    sent: int = 0  # bytes of bodies


@dataclass
class Reply:
    """A response. `cut`: after this many bytes of the body the connection is closed, or reset if
    `resets`. `drip`: seconds before each `piece` bytes. `delay`: seconds before the response."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    resets: bool = False
    delay: float = 0.0
    drip: float = 0.0
    piece: int = 4096
    raw: bytes | None = None  # sent instead of everything else
    closes: bool = False


@functools.lru_cache(maxsize=16)
def etag_of(body):
    return '"%s"' % hashlib.md5(body).hexdigest()


BOUNDARY = "THIS_IS_BETWEEN"


def spans_of(request):
    """Returns the ranges of a request as (first, end); [] if it has none, or in another form."""
    text = request.headers.get("range", "")
    if not re.fullmatch(r"bytes=\d+-\d+(,\d+-\d+)*", text):
        return []
    return [(int(a), int(b) + 1) for a, b in re.findall(r"(\d+)-(\d+)", text)]


def parts_of(parts, boundary=BOUNDARY, line=b"\r\n", last=True):
    """Returns a multipart body of parts (first, bytes, size of the object)."""
    pieces = []
    for first, data, total in parts:
        pieces += [line, b"--", boundary.encode(), line, b"Content-Type: application/octet-stream", line,
                   b"Content-Range: bytes %d-%d/%d" % (first, first + len(data) - 1, total), line, line,
                   data]
    return b"".join(pieces) + (line + b"--" + boundary.encode() + b"--" + line if last else b"")


class ScriptedServer:
    def __init__(self, delay=0.0, etags=True, dates=False, suffixes=True, ranges=True,
                 tls=None, parts=True, name=None):
        self.objects = {}
        self.script = self.before_body = None
        self.meta = {}     # stored fields of objects
        self.uploads = {}  # id: (path, meta, {number: body})
        self.conditions = True
        self.delay, self.etags, self.dates = delay, etags, dates
        self.suffixes, self.ranges, self.parts = suffixes, ranges, parts
        self.name = name  # value of the field Server in correct responses
        self.requests = []
        self.connections = 0
        self._accepted = None  # the address of the last client
        self._open = 0         # connections that are served
        self._tls = None
        if tls:  # (certificate, key), for the host "localhost"
            self.certify(*tls)
        self._lock = threading.Lock()
        self._ends = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path):
        return "%s:%d%s" % ("https://localhost" if self._tls else "http://127.0.0.1", self.port, path)

    def certify(self, certificate, key):
        """Sets or replaces the certificate for new connections. Old TLS sessions cannot resume."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._tls = context

    def forget(self):
        with self._lock:
            self.requests.clear()
            self.connections = 0

    @property
    def sent(self):
        return sum(request.sent for request in self.requests)

    def close(self):
        self._ends = True
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        except OSError:
            pass
        self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- Connections ---------------------------------------------------------------

    def _accept(self):
        while not self._ends:
            try:
                connection, client = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open += 1
                self._accepted = client
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb", buffering=65536) as stream:
                while self._answer(connection, stream):
                    pass
        except OSError:
            pass
        finally:
            with self._lock:
                self._open -= 1

    def _read_head(self, stream):
        line = stream.readline(65536)
        if not line.strip():
            return None
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers = {}
        while (line := stream.readline(65536)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        with self._lock:
            request = Request(len(self.requests), method, path, headers, b"", time.monotonic())
            self.requests.append(request)
        return request

    def _read_body(self, connection, stream, request):
        """Reads the body of a request. Returns whether it has arrived completely."""
        headers = request.headers
        if self.before_body and self.before_body(request) is False:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return False
        if headers.get("expect") == "100-continue":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        size = int(headers.get("content-length", 0))
        request.body = stream.read(size)
        return len(request.body) == size

    def _answer(self, connection, stream):
        request = self._read_head(stream)
        if request is None:
            return False
        try:
            if not self._read_body(connection, stream, request):
                return False
            reply = (self.script and self.script(request)) or self.good(request)
            delay = reply.delay or self.delay
            if delay:
                time.sleep(delay)
            return self._send(connection, request, reply)
        finally:
            request.ended = time.monotonic()

    def settle(self):
        """Waits until all requests so far have ended, even those of clients that are gone."""
        self._wait(lambda: all(request.ended for request in list(self.requests)))

    def drain(self):
        """Waits until the server has read all that clients have sent, who must be gone."""
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            address = last.getsockname()
            self._wait(lambda: self._accepted == address)  # so all earlier ones are accepted
        self._wait(lambda: self._open == 0)

    @staticmethod
    def _wait(is_over):
        end = time.monotonic() + 60
        while not is_over():
            assert time.monotonic() < end
            time.sleep(0.002)

    def _send(self, connection, request, reply):
        if reply.raw is not None:
            connection.sendall(reply.raw)
            return False
        headers = {"Content-Length": str(len(reply.body)), **reply.headers}
        head = "HTTP/1.1 %d X\r\n" % reply.status
        head += "".join("%s: %s\r\n" % item for item in headers.items() if item[1] is not None)
        body = reply.body if reply.cut is None else reply.body[:reply.cut]
        if reply.drip:
            connection.sendall(head.encode("latin-1") + b"\r\n")
            for at in range(0, len(body), reply.piece):
                time.sleep(reply.drip)
                request.sent += len(body[at:at + reply.piece])  # before the client can see it
                connection.sendall(body[at:at + reply.piece])
        else:
            request.sent += len(body)
            connection.sendall(head.encode("latin-1") + b"\r\n" + body)
        if reply.cut is not None and reply.resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return reply.cut is None and not reply.closes and request.headers.get("connection") != "close"

    # ---- Correct responses -----------------------------------------------------------------

    def good(self, request):
        path, _, query = request.path.partition("?")
        if request.method != "GET" or "uploadId=" in query:
            return self._good_write(request, path, dict(urllib.parse.parse_qsl(query, True)))
        body = self.objects.get(path)
        if body is None:
            return Reply(404, body=b"no such thing")
        headers = {"Accept-Ranges": "bytes", **self.meta.get(path, {})}
        if self.name:
            headers["Server"] = self.name
        if self.etags:
            headers["ETag"] = etag_of(body)
        if self.dates:
            headers["Last-Modified"] = email.utils.formatdate(hash(body) % 10**9, usegmt=True)
        wanted = request.headers.get("if-match")
        if wanted and self.etags and wanted != headers["ETag"]:
            return Reply(412)
        several = spans_of(request)
        if len(several) > 1 and self.ranges and self.parts:
            return Reply(206, {**headers, "Content-Type": "multipart/byteranges; boundary=" + BOUNDARY},
                         parts_of([(a, body[a:b], len(body)) for a, b in several]))
        span = self._span(request.headers.get("range", ""), len(body))
        if span is None:
            return Reply(200, headers, body)
        first, end = span
        if first >= end:
            return Reply(416, {**headers, "Content-Range": "bytes */%d" % len(body)})
        headers["Content-Range"] = "bytes %d-%d/%d" % (first, end - 1, len(body))
        return Reply(206, headers, body[first:end])

    def _span(self, text, size):
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", text)
        if not found or not self.ranges:
            return None
        first, last = found.groups()
        if not first:
            return (max(0, size - int(last)), size) if self.suffixes else None
        return int(first), min(size, int(last) + 1 if last else size)

    # ---- Writing -----------------------------------------------------------------------

    def _stands_against(self, request, path):
        there = self.objects.get(path)
        wanted = request.headers.get("if-match")
        if not self.conditions:
            return False
        return (request.headers.get("if-none-match") == "*" and there is not None) or \
            (wanted is not None and (there is None or wanted != etag_of(there)))

    def _keep(self, path, body, meta):
        self.objects[path], self.meta[path] = body, meta
        return {"ETag": etag_of(body)} if self.etags else {}

    def _good_write(self, request, path, query):
        meta = {k: v for k, v in request.headers.items() if k.startswith("x-amz-meta-")}
        upload = self.uploads.get(query.get("uploadId"))
        if "uploadId" in query and (upload is None or upload[0] != path):
            return Reply(404, body=b"<Error><Code>NoSuchUpload</Code></Error>")
        if request.method == "POST" and "uploads" in query:
            name = "id/%d+=&" % len(self.uploads)
            self.uploads[name] = (path, meta, {})
            return Reply(200, body=b"<InitiateMultipartUploadResult><UploadId>%s</UploadId>"
                                   b"</InitiateMultipartUploadResult>"
                                   % name.replace("&", "&amp;").encode())
        if request.method == "PUT" and upload:
            upload[2][int(query["partNumber"])] = request.body
            return Reply(200, {"ETag": etag_of(request.body)})
        if request.method == "GET":
            return self._list_parts(upload[2], int(query.get("part-number-marker", 0)))
        if request.method == "DELETE":
            del self.uploads[query["uploadId"]]
            return Reply(204)
        if self._stands_against(request, path):
            return Reply(412, body=b"<Error><Code>PreconditionFailed</Code></Error>")
        if request.method == "POST":
            return self._complete(request, upload, query["uploadId"])
        return Reply(201, self._keep(path, request.body, meta))

    def _list_parts(self, parts, after):
        page, more = [], False
        for number in sorted(n for n in parts if n > after):
            more = len(page) == 2
            if more:
                break
            page.append(number)
        text = "".join("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag><Size>%d</Size></Part>" % (
            n, etag_of(parts[n]).replace('"', "&quot;"), len(parts[n])) for n in page)
        text += "<IsTruncated>%s</IsTruncated>" % str(more).lower()
        if page:
            text += "<NextPartNumberMarker>%d</NextPartNumberMarker>" % page[-1]
        return Reply(200, body=b'<?xml version="1.0"?>\n<ListPartsResult xmlns="x">%s'
                               b"</ListPartsResult>" % text.encode())

    def _complete(self, request, upload, name):
        path, meta, parts = upload
        listed = re.findall(rb"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag></Part>",
                            request.body)
        if any(etag_of(parts.get(int(n), b"")).encode() != etag for n, etag in listed):
            return Reply(400, body=b"<Error><Code>InvalidPart</Code></Error>")
        body = b"".join(parts[int(n)] for n, _ in listed)
        self._keep(path, body, meta)
        del self.uploads[name]
        return Reply(200, body=b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
