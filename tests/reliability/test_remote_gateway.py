"""Implementations of S3 by others: arrays are published there, read, and refused. The objects
are also written, read and replaced by boto3.

usage: test_remote_gateway.py [--seed S]"""

import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import urllib.parse
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import runs  # noqa: E402
import s3_servers  # noqa: E402
from s3_servers import BUCKET, PUBLIC  # noqa: E402
from tool_remote_case import CLI, Reader, convert  # noqa: E402

SEED = None
SHAPE = (60, 200, 150)
KEYS = ("a.b2nd", "a folder/of arrays/x y.b2nd", "plus+and&amp;.b2nd", "what?.b2nd", "hash#1.b2nd",
        "100%.b2nd", "percent%41.b2nd", "%2F.b2nd", "a=b;c,d.b2nd", "tilde~star*.b2nd",
        "quote'\"quote.b2nd", "(paren)[bracket]{brace}.b2nd", "at@colon:$!.b2nd", "pipe|^`.b2nd",
        "\u00e4\u00f6\u00fc-\u65e5\u672c-\U0001f9ea.b2nd", "e\u0301.b2nd", ".hidden.b2nd",
        "dots..in...it.b2nd", "-dash.b2nd", "year=2020/month=01/t.b2nd", "n" * 200 + ".b2nd")


def seal(path):
    subprocess.run([CLI, "seal", path], check=True, stdout=subprocess.DEVNULL)


class Store(unittest.TestCase):
    kind = None

    @classmethod
    def setUpClass(cls):
        if cls.kind is None:
            raise unittest.SkipTest("what the stores share")
        reason = cls.kind.why_not()
        if reason:
            print("skipped: %s: %s" % (cls.kind.name, reason), flush=True)
            raise unittest.SkipTest(reason)
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        cls.server = cls.kind(cls.folder)
        cls.s3 = cls.server.client()
        rng = np.random.default_rng(SEED)
        cls.items = rng.integers(0, 1 << 20, SHAPE).astype("i4")
        partition = ["--chunks", "20,100,150", "--blocks", "5,20,50"]
        cls.path = convert(cls.folder, "a.b2nd", cls.items, *partition)
        cls.other = convert(cls.folder, "b.b2nd", cls.items[::-1].copy(), *partition)
        for path in cls.path, cls.other:
            seal(path)
        cls.frame = cls.path.read_bytes()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.scratch.cleanup()

    # ---- Who asks ---------------------------------------------------------------------------

    def run_as(self, *words, status=0, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        keys = {"AWS_ACCESS_KEY_ID": self.server.access,
                "AWS_SECRET_ACCESS_KEY": self.server.secret,
                "AWS_ENDPOINT_URL": self.server.endpoint, "HOME": str(self.folder)}
        env = {**kept, **keys, **variables}
        done = subprocess.run([CLI, *map(str, words)], capture_output=True,
                              env={k: v for k, v in env.items() if v is not None})
        said = (done.stdout if "-o" in words or words[0] != "get" else b"") + done.stderr
        said = said.decode()
        self.assertEqual(done.returncode, status, said)
        for secret in {self.server.secret, urllib.parse.quote(self.server.secret, safe=""),
                       variables.get("AWS_SECRET_ACCESS_KEY"),
                       variables.get("AWS_SESSION_TOKEN"), "X-Amz-Signature=", "Signature="}:
            self.assertNotIn(secret or "\0", said)
        return said

    def reader(self):
        """A program that holds an array open, with the access keys."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        with unittest.mock.patch.dict(os.environ, {
                **kept, "AWS_ACCESS_KEY_ID": self.server.access, "HOME": str(self.folder),
                "AWS_SECRET_ACCESS_KEY": self.server.secret,
                "AWS_ENDPOINT_URL": self.server.endpoint}, clear=True):
            reader = Reader()
        self.addCleanup(reader.close)
        return reader

    def without_keys(self):
        return {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}

    def reads(self, url, selection, right, **variables):
        out = self.folder / "out.npy"
        self.run_as("get", "-f", "--trace", "-o", out, url, selection, **variables)
        np.testing.assert_array_equal(np.load(out), right)

    def reads_some(self, url, **variables):
        self.reads(url, "7, 50:60, ::7", self.items[7, 50:60, ::7], **variables)

    def put(self, key, body=None, bucket=BUCKET):
        self.s3.put_object(Bucket=bucket, Key=key, Body=self.frame if body is None else body)
        return "s3://%s/%s" % (bucket, key)

    def refused(self, url, words, status=3, **variables):
        for command in (("info", "--trace"), ("get", "-o", self.folder / "no.npy")):
            self.assertRegex(self.run_as(*command, url, status=status, **variables), words)
        self.assertFalse((self.folder / "no.npy").exists())

    # ---- Keys -------------------------------------------------------------------------------

    def test_odd_keys_that_others_wrote(self):
        for key in KEYS:
            with self.subTest(key=key):
                self.reads_some(self.put(key))

    def test_odd_keys_that_we_write(self):
        for key in KEYS:
            with self.subTest(key=key):
                self.run_as("publish", self.path, "s3://%s/ours/%s" % (BUCKET, key))
                body = self.s3.get_object(Bucket=BUCKET, Key="ours/" + key)["Body"].read()
                self.assertEqual(body, self.frame)
                self.reads_some("s3://%s/ours/%s" % (BUCKET, key))
        listed = {entry["Key"] for entry in
                  self.s3.list_objects_v2(Bucket=BUCKET, Prefix="ours/")["Contents"]}
        self.assertEqual(listed, {"ours/" + key for key in KEYS})

    def test_slices(self):
        rng = random.Random(SEED)
        url = self.put("slices.b2nd")
        for _ in range(12):
            slices = []
            for n in SHAPE:
                first = rng.randrange(n)
                slices.append(slice(first, rng.randint(first + 1, n), rng.randint(1, 9)))
            text = ",".join("%d:%d:%d" % (s.start, s.stop, s.step) for s in slices)
            self.reads(url, text, self.items[tuple(slices)])

    # ---- Refusals ---------------------------------------------------------------------------

    def test_what_is_not_there(self):
        self.refused("s3://%s/no.b2nd" % BUCKET, r"does not exist on the server \(NoSuchKey\)")
        self.refused("s3://no-bucket/no.b2nd", r"does not exist on the server \(NoSuchBucket\)")

    def test_wrong_keys(self):
        url = self.put("refused.b2nd")
        self.refused(url, r"forbidden or absent \(status 403, SignatureDoesNotMatch\)",
                     AWS_SECRET_ACCESS_KEY="hidden-wrong")
        self.refused(url, r"\((status 403, InvalidAccessKeyId|XAdminUserNotFound)\)",
                     AWS_ACCESS_KEY_ID="AKIDSTRANGER")
        said = self.run_as("publish", self.path, "s3://%s/mine.b2nd" % BUCKET, status=3,
                           AWS_SECRET_ACCESS_KEY="hidden-wrong")
        self.assertRegex(said, "403|forbidden")
        listed = self.s3.list_objects_v2(Bucket=BUCKET, Prefix="mine")
        self.assertNotIn("Contents", listed)

    def test_a_token_that_without_keys_gave(self):
        if not self.server.checks_all:
            self.skipTest("%s takes every token" % self.server.name)
        self.refused(self.put("token.b2nd"), r"status 400 \(InvalidToken\)",
                     AWS_SESSION_TOKEN="hidden-token")

    def test_without_keys(self):
        self.refused(self.put("private.b2nd"), "forbidden or absent", **self.without_keys())
        if self.server.checks_all:
            self.reads_some(self.put("open.b2nd", bucket=PUBLIC), **self.without_keys())

    def presigned(self, key, seconds):
        return self.s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": key},
                                              ExpiresIn=seconds)

    def test_presigned_urls(self):
        """They apply only to GET, contain their signature, and need no keys."""
        if not self.server.checks_all:
            self.skipTest("%s has no presigned URLs while it checks signatures" % self.server.name)
        self.put("a folder/signed+.b2nd")
        url = self.presigned("a folder/signed+.b2nd", 600)
        self.reads_some(url, **self.without_keys())
        self.refused(url[:-4] + "0000", "forbidden or absent", **self.without_keys())
        short = self.presigned("a folder/signed+.b2nd", 1)
        time.sleep(2.5)
        self.refused(short, r"forbidden or absent \(status 403, AccessDenied\)", **self.without_keys())

    # ---- Hosts ------------------------------------------------------------------------------

    def test_the_bucket_is_in_the_hosts_name(self):
        """libcurl resolves names below localhost to this machine."""
        if not self.server.domain:
            self.skipTest("%s has buckets in paths" % self.server.name)
        reader = self.reader()
        self.assertEqual(reader.say("open", self.put("host.b2nd"), "nocache", "addressing=2"), "ok")
        self.assertEqual(reader.say("point", 7, 50, 3),
                         "ok " + self.items[7, 50, 3].tobytes().hex())

    # ---- Changes ----------------------------------------------------------------------------

    def test_nothing_is_replaced_unasked(self):
        url = self.put("kept.b2nd")
        said = self.run_as("publish", self.other, url, status=3)
        self.assertRegex(said, "exists|there")
        self.reads_some(url)
        etag = self.s3.head_object(Bucket=BUCKET, Key="kept.b2nd")["ETag"]
        self.run_as("publish", "--if-match", etag, self.other, url)
        self.reads(url, "7", self.items[::-1][7])
        said = self.run_as("publish", "--if-match", etag, self.path, url, status=3)
        self.reads(url, "7", self.items[::-1][7])
        self.run_as("publish", "--force", self.path, url)
        self.reads_some(url)

    def test_uploads_in_parts(self):
        """With incompressible items, so that there are several parts of the minimum size."""
        items = np.random.default_rng(SEED).integers(0, 256, (3, 1024, 4200)).astype("u1")
        path = convert(self.folder, "large.b2nd", items, "--chunks", "1,1024,1400")
        seal(path)
        url = "s3://%s/large.b2nd" % BUCKET
        said = self.run_as("publish", "--part-size", "5MiB", "--trace", path, url)
        self.assertGreaterEqual(said.count("PUT "), 3)
        body = self.s3.get_object(Bucket=BUCKET, Key="large.b2nd")["Body"].read()
        self.assertEqual(body, path.read_bytes())
        self.reads(url, "1, :, 5", items[1, :, 5])
        self.assertNotIn("Uploads", self.s3.list_multipart_uploads(Bucket=BUCKET))

    def test_an_upload_that_is_killed_is_gone_on_with(self):
        items = np.random.default_rng(SEED).integers(0, 256, (6, 1024, 4200)).astype("u1")
        path = convert(self.folder, "killed.b2nd", items, "--chunks", "1,1024,1400")
        seal(path)
        url, state = "s3://%s/killed.b2nd" % BUCKET, self.folder / "state"
        words = ["publish", "--part-size", "5MiB", "--resume", state, path, url]
        env = {**os.environ, "AWS_ACCESS_KEY_ID": self.server.access,
               "AWS_SECRET_ACCESS_KEY": self.server.secret, "HOME": str(self.folder),
               "AWS_ENDPOINT_URL": self.server.endpoint}
        killed = subprocess.Popen([CLI, *map(str, words)], env=env, stderr=subprocess.DEVNULL)
        ended = time.monotonic() + 30
        while not state.exists() and killed.poll() is None and time.monotonic() < ended:
            time.sleep(0.002)
        killed.kill()
        if killed.wait():  # otherwise it had ended before
            self.run_as(*words)
        body = self.s3.get_object(Bucket=BUCKET, Key="killed.b2nd")["Body"].read()
        self.assertEqual(body, path.read_bytes())
        self.assertFalse(state.exists())
        self.assertNotIn("Uploads", self.s3.list_multipart_uploads(Bucket=BUCKET))

    def test_replaced_under_a_reader(self):
        reader = self.reader()
        self.assertEqual(reader.say("open", self.put("replaced.b2nd"), "nocache"), "ok")
        self.put("replaced.b2nd", self.other.read_bytes())
        self.assertRegex(reader.say("read"), "changed on the server")
        self.assertEqual(reader.say("refresh"), "ok")
        self.assertRegex(reader.say("read"), r"\Aok ")


class OfVersitygw(Store):
    kind = s3_servers.Versitygw


class OfMoto(Store):
    kind = s3_servers.Moto


if __name__ == "__main__":
    runs.seeded(sys.modules[__name__])
