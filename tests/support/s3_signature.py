"""Computes the AWS Signature Version 4 of requests that a scripted server received."""

import hashlib
import hmac
import re


def signature(request, access, secret):
    """Returns the Authorization field that the request should have, from its signed fields."""
    given = request.headers["authorization"]
    names = re.search("SignedHeaders=([^,]*)", given).group(1).split(";")
    day, region = re.search("Credential=[^/]*/([0-9]*)/([^/]*)/s3/", given).groups()
    assert "host" in names and names == sorted(names)
    assert {n for n in request.headers if n.startswith("x-amz-")} <= set(names)
    path, _, query = request.path.partition("?")
    query = "&".join(sorted(query.split("&")))
    canonical = "\n".join([request.method, path, query,
                           *("%s:%s" % (n, request.headers[n]) for n in names), "",
                           ";".join(names), request.headers["x-amz-content-sha256"]])
    scope = "%s/%s/s3/aws4_request" % (day, region)
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s" % (
        access, scope, ";".join(names), hmac.new(key, text.encode(), "sha256").hexdigest())


def is_right(request, access, secret):
    """Returns whether signature and body of the request are valid."""
    wanted = request.headers["x-amz-content-sha256"]
    return signature(request, access, secret) == request.headers["authorization"] and \
        hashlib.sha256(request.body).hexdigest() == wanted
