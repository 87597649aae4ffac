"""Paths, URLs and names for display."""

from __future__ import annotations

import re
from collections.abc import Iterable


def shown(place: str) -> str:
    """Return a path, or a URL without user and query, which may be secrets."""
    scheme, found, rest = place.partition("://")
    if not found or scheme.lower() == "s3":
        return place
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" in host:
        rest = rest[host.rindex("@") + 1 :]
    elif "@" in rest and not re.fullmatch(r"\[.*\](:\d*)?|[^:]*(:\d*)?", host):
        rest = rest[rest.rindex("@") + 1 :]  # after a password with characters not escaped
    bare = re.split("[?#]", rest, maxsplit=1)[0]
    key = rest.find("::/", len(bare))
    return f"{scheme}://{bare}{rest[key:] if key >= 0 else ''}"


def names_shown(names: Iterable[str]) -> str:
    """Join names of attributes in a line; bytes that are not UTF-8 appear as ``\\xNN``."""
    line = ", ".join(names).encode("utf-8", "surrogateescape")
    return line.decode("utf-8", "backslashreplace")
