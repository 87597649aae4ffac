"""Arrays in S3 object stores: whose keys are used, and how a URL names the bucket."""

import os
import subprocess
import unittest
import unittest.mock
import urllib.parse

from tool_remote_case import CLI, Case, Reader
import certificates
from s3_signature import signature
from scripted_server import Reply


class S3(Case):
    """Signed requests, checked by another implementation of the signature."""

    ACCESS, SECRET, TOKEN = "AKIDEXAMPLE", "hidden/secret+key=", "hidden-token"

    def serve_s3(self, token=None, prefix="/bucket"):
        server = self.serve()
        key = "dir/odd key=+&?#%~\u00e4.b2nd"
        path = prefix + "/" + urllib.parse.quote(key, safe="/-._~")
        server.objects[path] = self.frame

        def check(request):
            given = request.headers.get("authorization")
            if given is None:
                return None if server.is_public else Reply(403)
            return None if given == signature(request, self.ACCESS, self.SECRET) else Reply(403)
        server.is_public = False
        server.script = check
        return server, "s3://bucket/" + key

    def run_info(self, url, *words, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        done = subprocess.run([CLI, "info", "--trace", url, *words], capture_output=True, text=True,
                              env={**kept, "HOME": str(self.folder), **variables})
        self.assertNotIn("hidden", done.stdout + done.stderr)
        return done

    def test_credentials_of_the_environment(self):
        server, url = self.serve_s3()
        keys = {"AWS_ACCESS_KEY_ID": self.ACCESS, "AWS_SECRET_ACCESS_KEY": self.SECRET,
                "AWS_ENDPOINT_URL": server.url(""), "AWS_REGION": "eu-central-1"}
        done = self.run_info(url, **keys)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/eu-central-1/", server.requests[0].headers["authorization"])
        self.assertEqual(len(server.requests), 1)
        done = self.run_info(url, AWS_SESSION_TOKEN=self.TOKEN, **keys)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(server.requests[-1].headers["x-amz-security-token"], self.TOKEN)
        lines = {name: value + "\n" for name, value in keys.items()}
        done = self.run_info(url, **lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_info(url, **{**keys, "AWS_SECRET_ACCESS_KEY": "hidden\nhidden"})
        self.assertIn("the secret key for S3 contains a line end", done.stderr)
        done = self.run_info(url, **{**keys, "AWS_SECRET_ACCESS_KEY": "hidden-wrong"})
        self.assertEqual(done.returncode, 3)
        self.assertIn("forbidden or absent", done.stderr)

    def test_profiles_and_nobody(self):
        server, url = self.serve_s3()
        (self.folder / ".aws").mkdir(exist_ok=True)
        (self.folder / ".aws" / "credentials").write_text(
            "[default]\naws_access_key_id=x\naws_secret_access_key=hidden\n"
            "[mine]\naws_access_key_id = %s\naws_secret_access_key = %s\n"
            % (self.ACCESS, self.SECRET))
        (self.folder / ".aws" / "config").write_text("[profile mine]\nregion = us-west-2\n"
                                                     "endpoint_url = %s\n" % server.url(""))
        done = self.run_info(url, AWS_PROFILE="mine")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/us-west-2/", server.requests[0].headers["authorization"])
        done = self.run_info(url, AWS_ENDPOINT_URL=server.url(""))
        self.assertEqual(done.returncode, 3)
        server.is_public = True
        (self.folder / ".aws" / "credentials").unlink()
        done = self.run_info(url, AWS_ENDPOINT_URL=server.url(""))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("authorization", server.requests[-1].headers)

    def test_one_key_alone_is_an_error(self):
        """No request is sent without a signature, or with the keys of the next source."""
        server, url = self.serve_s3()
        server.is_public = True
        where = {"AWS_ENDPOINT_URL": server.url("")}
        (self.folder / ".aws").mkdir(exist_ok=True)
        own = self.folder / ".aws" / "credentials"
        own.write_text("[default]\naws_access_key_id=x\naws_secret_access_key=hidden\n")
        for name, value in ("AWS_ACCESS_KEY_ID", self.ACCESS), ("AWS_SECRET_ACCESS_KEY", "hidden"):
            done = self.run_info(url, **where, **{name: value})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("only one of the two S3 keys is set in AWS_ACCESS_KEY_ID and",
                          done.stderr)
        for line in "aws_access_key_id=x", "aws_secret_access_key=hidden":
            own.write_text("[default]\n%s\n" % line)
            done = self.run_info(url, **where)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("only one of the two S3 keys is set in the profile", done.stderr)
        self.assertEqual(server.requests, [])

    def test_signed_requests_are_not_redirected(self):
        server, url = self.serve_s3()
        other = self.serve()
        server.script = lambda r: Reply(307, {"Location": other.url("/a.b2nd")})
        done = self.run_info(url, AWS_ENDPOINT_URL=server.url(""), AWS_ACCESS_KEY_ID=self.ACCESS,
                             AWS_SECRET_ACCESS_KEY=self.SECRET)
        self.assertEqual(done.returncode, 3)
        self.assertIn("signed requests follow no redirects", done.stderr)
        self.assertEqual(other.requests, [])

    # ---- The bucket in the host's name ---------------------------------------------------

    def reader_of(self, server, **variables):
        """A reader that has the keys; names below localhost are this machine."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        keys = {"AWS_ACCESS_KEY_ID": self.ACCESS, "AWS_SECRET_ACCESS_KEY": self.SECRET,
                "AWS_ENDPOINT_URL": server.url("").replace("127.0.0.1", "localhost")}
        with unittest.mock.patch.dict(os.environ, {**kept, "HOME": str(self.folder), **keys,
                                                   **variables}, clear=True):
            reader = Reader()
        self.addCleanup(reader.close)
        return reader

    def hosts(self, server):
        return {request.headers["host"] for request in server.requests}

    def test_the_bucket_is_in_the_hosts_name(self):
        server, url = self.serve_s3(prefix="")
        url = url.replace(" ", "_")  # words of the helper end at a blank
        server.objects = {path.replace("%20", "_"): body for path, body in server.objects.items()}
        reader = self.reader_of(server, AWS_SESSION_TOKEN=self.TOKEN)
        self.assertEqual(reader.say("open", url, "nocache", "addressing=2"), "ok")
        self.assertEqual(reader.say("read"), "ok " + self.hash)
        self.assertGreater(len(server.requests), 1)
        self.assertEqual(self.hosts(server), {"bucket.localhost:%d" % server.port})
        self.assertEqual({r.path for r in server.requests}, set(server.objects) - {"/a.b2nd"})
        self.assertTrue(all("x-amz-security-token" in r.headers for r in server.requests))

    def test_who_says_nothing_has_it_in_the_path(self):
        server, _ = self.serve_s3()
        server.objects = {"/bucket/a.b2nd": self.frame}
        reader = self.reader_of(server)
        for words in ((), ("addressing=1",)):
            self.assertEqual(reader.say("open", "s3://bucket/a.b2nd", *words), "ok")
        self.assertEqual(self.hosts(server), {"localhost:%d" % server.port})
        self.fails(reader.say("open", "s3://bucket/a.b2nd", "addressing=2"), "does not exist",
                   "CATERVA_ENOTFOUND")

    def test_a_wrong_key_in_the_hosts_name(self):
        server, _ = self.serve_s3(prefix="")
        reader = self.reader_of(server, AWS_SECRET_ACCESS_KEY="hidden-wrong")
        answer = reader.say("open", "s3://bucket/a.b2nd", "addressing=2")
        self.fails(answer, "forbidden or absent", "CATERVA_ENOTFOUND")
        self.assertNotIn("hidden", answer)

    @unittest.skipUnless(certificates.OPENSSL, "openssl is not installed")
    def test_over_https_the_certificate_is_of_all_buckets(self):
        authority = certificates.Authority(self.folder)
        server = self.serve(tls=authority.certify("s3", "DNS:*.store.localhost"))
        server.script = lambda r: None if r.headers.get("authorization") == signature(
            r, self.ACCESS, self.SECRET) else Reply(403)
        reader = self.reader_of(server, AWS_CA_BUNDLE=str(authority.file),
                                AWS_ENDPOINT_URL="https://store.localhost:%d" % server.port)
        self.assertEqual(reader.say("open", "s3://bucket/a.b2nd", "nocache", "addressing=2"), "ok")
        self.assertEqual(reader.say("read"), "ok " + self.hash)
        self.assertEqual(self.hosts(server), {"bucket.store.localhost:%d" % server.port})
        answer = reader.say("open", "s3://dotted.bucket/a.b2nd", "addressing=2")
        self.fails(answer, "the certificate of dotted.bucket.store.localhost is refused")


if __name__ == "__main__":
    unittest.main(verbosity=2)
