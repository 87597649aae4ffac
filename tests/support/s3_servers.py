"""S3 object stores on loopback, for tests: existing programs.

    for kind in KINDS:
        reason = kind.why_not()       # a sentence if it cannot be started
        server = kind(scratch)
        server.endpoint, server.access, server.secret
        server.client()               # of boto3, with those keys; or others
        server.close()

versitygw is the program $VERSITYGW, or that on the PATH, or that in build/deps/bin (built there by
scripts/versitygw); moto is a package of this Python. A store has the empty buckets BUCKET and
PUBLIC. If `checks_all` is set, it checks presigned URLs and every permission, and PUBLIC can be
read without credentials. If `domain` is set, host names begin with the bucket.
"""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

BUCKET, PUBLIC = "bucket", "public"
ROOT = Path(__file__).resolve().parent.parent.parent


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class _Server:
    access, secret = "AKIDEXAMPLE", "hidden/secret+key="

    def start(self, *words, **variables):
        self.log = (self.scratch / "server.log").open("wb")
        self.process = subprocess.Popen(list(map(str, words)), stdout=self.log, stderr=self.log,
                                        cwd=self.scratch, env={**os.environ, **variables})
        for _ in range(600):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.close()
        raise AssertionError("%s does not start: %s"
                             % (words[0], (self.scratch / "server.log").read_text()[-500:]))

    @property
    def endpoint(self):
        return "http://%s:%d" % (self.domain or "127.0.0.1", self.port)

    def client(self, service="s3", access=None, secret=None, **more):
        import boto3
        from botocore.config import Config
        return boto3.client(service, endpoint_url="http://127.0.0.1:%d" % self.port,
                            aws_access_key_id=access or self.access,
                            aws_secret_access_key=secret or self.secret,
                            region_name="us-east-1",
                            config=Config(s3={"addressing_style": "path"},
                                          signature_version="s3v4"), **more)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Versitygw(_Server):
    name, checks_all, domain = "versitygw", True, "localhost"

    @staticmethod
    def program():
        own = ROOT / "build" / "deps" / "bin" / "versitygw"
        return (os.environ.get("VERSITYGW") or shutil.which("versitygw") or
                (str(own) if own.exists() else None))

    @classmethod
    def why_not(cls):
        if importlib.util.find_spec("boto3") is None:
            return "boto3 is not installed"
        return None if cls.program() else "versitygw is not installed (scripts/versitygw builds it)"

    def __init__(self, scratch):
        self.scratch, self.port = Path(scratch), _free_port()
        root, sidecar = self.scratch / "root", self.scratch / "sidecar"
        root.mkdir()
        sidecar.mkdir()
        # Stores extended attributes in a folder, because some file systems have none.
        self.start(self.program(), "--port", "127.0.0.1:%d" % self.port, "--quiet",
                   "--virtual-domain", "localhost:%d" % self.port, "posix", "--sidecar", sidecar,
                   root, ROOT_ACCESS_KEY=self.access, ROOT_SECRET_KEY=self.secret)
        client = self.client()
        client.create_bucket(Bucket=BUCKET)
        client.create_bucket(Bucket=PUBLIC)
        client.put_bucket_policy(Bucket=PUBLIC, Policy=json.dumps({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
                           "Resource": "arn:aws:s3:::%s/*" % PUBLIC}]}))


class Moto(_Server):
    name, checks_all, domain = "moto", False, None

    @classmethod
    def why_not(cls):
        missing = [name for name in ("boto3", "moto", "flask", "flask_cors")
                   if importlib.util.find_spec(name) is None]
        return "%s is not installed" % missing[0] if missing else None

    def __init__(self, scratch):
        self.scratch, self.port = Path(scratch), _free_port()
        self.start(sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", self.port)
        iam = self.client("iam")
        iam.create_user(UserName="tester")
        key = iam.create_access_key(UserName="tester")["AccessKey"]
        iam.put_user_policy(UserName="tester", PolicyName="all", PolicyDocument=json.dumps({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
        self.access, self.secret = key["AccessKeyId"], key["SecretAccessKey"]
        client = self.client()
        client.create_bucket(Bucket=BUCKET)
        client.create_bucket(Bucket=PUBLIC)
        # From now on moto checks signatures.
        urllib.request.urlopen(urllib.request.Request(
            self.endpoint + "/moto-api/reset-auth", data=b"0",
            headers={"Content-Type": "text/plain"})).close()


KINDS = (Versitygw, Moto)
