"""Uploading finished files to URLs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _caterva, _options
from ._options import Path
from ._places import place_of, whole
from ._remote import Remote, remote_of


class Published(NamedTuple):
    """Result of `publish`."""

    bytes: int
    """Size of the object."""
    parts: int
    """Upload parts; 0 if it was sent in one request."""
    parts_kept: int
    """Parts that the resumed upload had already sent."""
    requests: int
    """Attempts at requests."""
    retried: int
    """Attempts after the first one of a request."""
    verified: bool
    """True if the end of the object, with the seal, was read back."""
    was_there: bool = False
    """True if the URL already had the same bytes: nothing was sent."""


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
    zarr: bool = False,
    remote: Remote | Mapping[str, Any] | None = None,
    progress: _options.Listener = None,
) -> Published:
    """Upload a finished file to a URL: a sealed array in one file, or a ``.b2z``.

    The object appears when it is complete. Nothing is replaced unless `replace` is set, and an
    upload that fails or is interrupted leaves nothing behind. Publishing the same bytes again
    succeeds without sending them; ``was_there`` is True then.

    Each file of a Zarr array or group becomes an object below `url`, the metadata of the root
    last; `if_match`, `resume` and `read_url` are not for these.

    Parameters
    ----------
    path
        The file. Others are refused with a message that names the step to do first: `seal`, a
        copy in one file, or `Tree.pack`.
    url
        ``s3://bucket/key``, or ``http://`` or ``https://`` if the server accepts PUT.
    replace
        Replace an object that exists at the URL.
    if_match
        ETag of the object, with quotes: replace only this version.
    part_bytes
        For ``s3://``: size in bytes of the parts in which larger files are sent, 5 MiB to
        5 GiB; 0 is 8 MiB.
    resume
        For ``s3://``: path of a small file that records an upload in parts. If it exists, only
        the missing parts are sent.
    abandon
        Abort the upload that `resume` records, and publish nothing.
    read_url
        URL from which the object can be read, if `url` is presigned for writing only.
    zarr
        Publish a copy of the array or tree that is a Zarr array or group. It is beside `path`
        meanwhile.
    remote
        How the server is accessed: a `Remote`, or a dict of its fields.
    progress
        Function ``(done, total)``, called with bytes sent, or ``"tqdm"``. An exception of the
        function stops the upload.

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
        "zarr": _options.flag_of(zarr, "zarr"),
        "part_bytes": _options._int_of(part_bytes, "part_bytes"),
    }
    for name, text in (("url", url), ("if_match", if_match), ("read_url", read_url)):
        if text is not None and (not isinstance(text, str) or "\0" in text):
            raise TypeError(f"{name} is not a str")  # its value may be a secret
    if if_match is not None:
        words["if_match"] = if_match
    if read_url is not None:
        words["read_url"] = read_url
    if resume is not None:
        words["resume"] = os.fsencode(whole(_options.url_of(resume)))
    report = _options.progress_of(progress)
    return Published(*_caterva.publish(place_of(path), url, words, report, remote_of(remote)))
