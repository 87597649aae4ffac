"""Finished files, put behind URLs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _caterva, _options
from ._options import Path
from ._places import place_of, whole
from ._remote import Remote, remote_of


class Published(NamedTuple):
    """What `publish` did."""

    bytes: int
    """Of the object."""
    parts: int
    """That it was sent in; 0: in one request."""
    parts_kept: int
    """Of these: were there, from the upload that was resumed."""
    requests: int
    """Attempts at requests."""
    retried: int
    """Attempts after the first one of a request."""
    verified: bool
    """Its end, with the seal, was read back."""
    was_there: bool = False
    """The same bytes were at the URL already: nothing was sent."""


def publish(
    path: Path,
    url: str,
    *,
    replace: bool = False,
    if_match: str | None = None,
    part_bytes: int = 0,
    resume: Path | None = None,
    abandon: bool = False,
    read_url: str | None = None,
    remote: Remote | Mapping[str, Any] | None = None,
    progress: _options.Listener = None,
) -> Published:
    """Put a finished file behind a URL: a sealed array in one file, or a ``.b2z``.

    The object appears whole. Nothing is replaced unless you say so, and an upload that fails
    or is interrupted leaves nothing behind. Publishing the same bytes again succeeds and sends
    nothing: ``was_there`` is True then.

    Parameters
    ----------
    path
        What is published; what is not finished is refused by a sentence that says what to do
        first: `seal`, a copy in one file, `Tree.pack`.
    url
        ``s3://bucket/key``, or ``http://`` and ``https://`` where the server takes PUT.
    replace
        What stands at the URL may be replaced.
    if_match
        Its ETag, with quotes: only this version is replaced.
    part_bytes
        ``s3://``: what is larger is sent in parts of so many bytes, 5 MiB to 5 GiB; 0 is 8 MiB.
    resume
        A small file that remembers an upload in parts: where it is, the upload goes on with
        the parts that are not there yet.
    abandon
        Abort the upload that `resume` remembers, and publish nothing.
    read_url
        Where the object is read, when `url` is presigned for writing only.
    remote
        How the server is spoken to: a `Remote`, or a dict of its words.
    progress
        Function ``(done, total)`` that hears of it in bytes, or ``"tqdm"``; what it raises
        stops the upload.

    Returns
    -------
    Published

    Examples
    --------
    >>> import caterva
    >>> caterva.save("ready.b2nd", range(9), overwrite=True)
    >>> done = caterva.publish("ready.b2nd", "s3://bucket/ready.b2nd")  # doctest: +SKIP
    >>> done.bytes, done.requests, done.verified, done.was_there  # doctest: +SKIP
    (473, 3, True, False)
    """
    words: dict[str, Any] = {
        "replace": _options.flag_of(replace, "replace"),
        "abandon": _options.flag_of(abandon, "abandon"),
        "part_bytes": _options._int_of(part_bytes, "part_bytes"),
    }
    for name, text in (("url", url), ("if_match", if_match), ("read_url", read_url)):
        if text is not None and (not isinstance(text, str) or "\0" in text):
            raise TypeError(f"{name} is no text")  # which may be a secret
    if if_match is not None:
        words["if_match"] = if_match
    if read_url is not None:
        words["read_url"] = read_url
    if resume is not None:
        words["resume"] = os.fsencode(whole(_options.url_of(resume)))
    heard = _options.progress_of(progress)
    return Published(*_caterva.publish(place_of(path), url, words, heard, remote_of(remote)))
