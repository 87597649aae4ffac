"""Certificates for tests, made by the openssl program.

    authority = Authority(folder)     # issues certificates; authority.file is its own one
    pem, key = authority.certify("name", "DNS:localhost", days=2)
"""

import shutil
import subprocess

OPENSSL = shutil.which("openssl")
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _run(*words):
    subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True)


class Authority:
    def __init__(self, folder, name="authority"):
        self.folder, self.name = folder, name
        self.file, self._key = folder / (name + ".pem"), folder / (name + ".key")
        _run("req", "-x509", *KEY, "-keyout", self._key, "-out", self.file, "-subj", "/CN=" + name,
             "-days", "2")

    def certify(self, name, subject, days=2):
        """Makes the files of a certificate and its key. It is valid for `days`; with a negative
        number it has expired that many days ago."""
        pem, key, request, more = (self.folder / ("%s-%s.%s" % (self.name, name, end))
                                   for end in ("pem", "key", "csr", "ext"))
        more.write_text("subjectAltName=" + subject)
        _run("req", *KEY, "-keyout", key, "-out", request, "-subj", "/CN=" + name)
        _run("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key,
             "-CAcreateserial", "-days", days, "-extfile", more, "-out", pem)
        return pem, key
