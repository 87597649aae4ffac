"""Certificates for tests, made by the openssl program.

    authority = Authority(folder)     # issues certificates; authority.file is its own one
    pem, key = authority.certify("name", "DNS:localhost", days=2)
"""

import datetime
import shutil
import subprocess

OPENSSL = shutil.which("openssl")
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _run(*words):
    subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True)


def _validity(days):
    """OpenSSL 3.5 refuses negative days, and 3.3 has no other way."""
    told = subprocess.run([OPENSSL, "x509", "-help"], check=True, capture_output=True)
    if days >= 0 or b"-not_after" not in told.stdout + told.stderr:
        return "-days", days
    now = datetime.datetime.now(datetime.timezone.utc)
    ends = [now + datetime.timedelta(days=n) for n in (days - 1, days)]
    begin, end = (moment.strftime("%Y%m%d%H%M%SZ") for moment in ends)
    return "-not_before", begin, "-not_after", end


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
             "-CAcreateserial", *_validity(days), "-extfile", more, "-out", pem)
        return pem, key
