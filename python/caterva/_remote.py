"""Options for reading URLs, and counts of what was transferred."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from . import _caterva, _options
from ._places import whole
from ._shown import shown

Credentials: TypeAlias = Literal["find", "given", "environment", "profile", "none"]
Headers: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]

CREDENTIALS: tuple[Credentials, ...] = ("find", "given", "environment", "profile", "none")
_MOST_SECONDS = 86400
_SECRETS = ("access_key", "secret_key", "session_token", "headers")


class Transfers(NamedTuple):
    """What reading a URL has cost so far."""

    requests: int
    """Attempts at requests."""
    bytes: int
    """Bytes of response bodies."""
    round_trips: int
    """Waits for a group of concurrent requests."""
    joined: int
    """Ranges that shared a request with another."""
    retried: int
    """Attempts after the first one of a request."""
    cached: int
    """Bytes read from the cache folder instead."""


class Transfer(NamedTuple):
    """A completed request."""

    method: str
    url: str
    """URL without its query."""
    first: int | None
    """Position in the object; None if its last `size` bytes were requested."""
    size: int
    received: int
    seconds: float
    status: int
    """HTTP status; 0 without a response."""
    attempt: int
    ranges: int
    """Ranges of the reader that were joined in this request."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Options for reading URLs: ``caterva.open(url, remote=Remote(...))``, or a dict of them.

    Parameters
    ----------
    connections
        Concurrent requests, 1 to 256.
    connect_timeout, stall_timeout
        Seconds to connect; seconds for which a transfer may stay below 256 bytes per second.
    retries
        Retries after a temporary failure of a request, 0 to 20.
    over_read_percent
        Percentage of bytes that may be read beyond those needed, if that saves requests and
        time.
    credentials
        For ``s3://``. ``"find"``: those given here, else those of the environment, else the
        profile in ``~/.aws``, else none. ``"given"``, ``"environment"``, ``"profile"``: only
        that source. ``"none"``: unsigned requests for public objects.
    access_key, secret_key, session_token
        For ``s3://``.
    profile, region, endpoint
        For ``s3://``; None takes them from the environment or the profile. `endpoint` is
        ``"https://host[:port]"`` of a service other than Amazon's.
    path_style
        True: ``endpoint/bucket/key``. False: ``bucket.endpoint/key``. None: True if there is an
        endpoint, else False.
    headers
        More headers, for the URL's own server only: a mapping, or, for tokens that expire, a
        function that returns one. The function is called before each attempt, on a thread of
        the library, and must not use the library. If it raises, or returns an invalid header,
        no request is sent and the read fails; ``sys.unraisablehook`` reports the exception.
    on_request
        Function that is called with a `Transfer` after each attempt, on the same thread.
    cache, cache_bytes
        Folder that caches what was read, for other arrays and processes of this user, and its
        maximum size in bytes; 0 is 1 GiB. Objects with neither a strong ETag nor a seal are
        not cached.
    ca_file
        CA certificates for https, in a PEM file. None: ``AWS_CA_BUNDLE`` (``s3://`` only),
        ``CURL_CA_BUNDLE``, ``SSL_CERT_FILE``, else the system's.
    pickle_secrets
        Include `access_key`, `secret_key`, `session_token` and `headers` in pickles. Otherwise
        they are left out, and the unpickled object finds credentials as ``"find"`` does.

    Examples
    --------
    >>> import caterva
    >>> caterva.Remote(endpoint="https://store.example", secret_key="a secret", retries=2)
    Remote(retries=2, secret_key=..., endpoint='https://store.example')
    """

    connections: int = 16
    connect_timeout: float = 10.0
    stall_timeout: float = 30.0
    retries: int = 5
    over_read_percent: int = 100
    credentials: Credentials = "find"
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    profile: str | None = None
    region: str | None = None
    endpoint: str | None = None
    path_style: bool | None = None
    headers: Headers | None = None
    on_request: Callable[[Transfer], object] | None = field(default=None, compare=False)
    cache: _options.Path | None = None
    cache_bytes: int = 0
    ca_file: _options.Path | None = None
    pickle_secrets: bool = False

    def __post_init__(self) -> None:
        _options.number_of(self.credentials, CREDENTIALS, "credentials")
        for name in ("headers", "on_request"):
            value = getattr(self, name)
            fits = value is None or callable(value)
            if not (fits or (name == "headers" and isinstance(value, Mapping))):
                kind = type(value).__name__  # the value may be a secret
                raise TypeError(f"{name} is a function, not {kind}")

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={'...' if f.name in _SECRETS else _shown(getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return f"Remote({', '.join(shown)})"

    def __copy__(self) -> Remote:
        """Return a complete copy: only pickles leave out secrets."""
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Remote:
        return replace(self)

    def __hash__(self) -> int:
        words = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        if isinstance(self.headers, Mapping):
            words["headers"] = frozenset(self.headers.items())
        return hash(tuple(words.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self if self.pickle_secrets else self._without_secrets()
        words = {f.name: getattr(kept, f.name) for f in fields(kept)}
        return _from_pickle, (words | {"on_request": None},)

    def _without_secrets(self) -> Remote:
        given = self.credentials == "given"
        nothing: dict[str, Any] = dict.fromkeys(_SECRETS)
        return replace(self, **nothing, credentials="find" if given else self.credentials)

    def _native(self) -> _caterva.Remote:
        """Convert to the library's options, where 0 is the default and -1 means none."""
        addressing = 0 if self.path_style is None else 1 if self.path_style else 2
        words: dict[str, Any] = {
            "connections": _number(self.connections, "connections", 1),
            "connect_timeout_ms": _milliseconds(self.connect_timeout, "connect_timeout"),
            "stall_timeout_ms": _milliseconds(self.stall_timeout, "stall_timeout"),
            "retries": _number(self.retries, "retries", 0) or -1,
            "over_read_percent": _number(self.over_read_percent, "over_read_percent", 0) or -1,
            "credentials": CREDENTIALS.index(self.credentials),
            "addressing": addressing,
            "cache_bytes": _number(self.cache_bytes, "cache_bytes", 0),
        }
        if self.cache is not None:
            if not os.fspath(self.cache):
                raise ValueError("remote option cache is empty: give a path, or None")
            words["cache_folder"] = os.fsencode(whole(_options.url_of(self.cache)))
        if self.ca_file is not None:
            words["ca_file"] = os.fsencode(_options.url_of(self.ca_file))
        for name in (*_SECRETS[:3], "profile", "region", "endpoint"):
            if getattr(self, name) is not None:
                words[name] = _text(getattr(self, name), name)
        fixed: tuple[str, ...] = ()
        supply = None
        if callable(self.headers):
            supply = _header_supplier(self.headers)
        elif self.headers is not None:
            fixed = _lines(self.headers)
        return _caterva.remote(self, words, fixed, supply, _request_hook(self.on_request))


def as_remote(remote: Remote | Mapping[str, Any] | None) -> Remote | None:
    """Return the `remote` argument of `open` as a Remote."""
    if isinstance(remote, Mapping):
        if unknown := remote.keys() - {f.name for f in fields(Remote)}:
            raise TypeError(f"there is no remote option {', '.join(sorted(unknown))}")
        remote = Remote(**remote)
    if remote is None or isinstance(remote, Remote):
        return remote
    raise TypeError(f"remote is a caterva.Remote or a dict of its fields, not {remote!r}")


def remote_of(remote: Remote | Mapping[str, Any] | None) -> _caterva.Remote | None:
    """Return the `remote` argument of `open` for the extension."""
    words = as_remote(remote)
    return None if words is None else words._native()


def _shown(value: Any) -> str:
    return repr(shown(value) if isinstance(value, str) else value)


def _from_pickle(words: dict[str, Any]) -> Remote:
    return Remote(**words)


# ---- Conversion to the library's options ---------------------------------------------------


def _number(value: Any, what: str, least: int) -> int:
    number = _options._int_of(value, what)
    if number < least:
        raise ValueError(f"remote option {what} is {number}, but must be at least {least}")
    return number


def _milliseconds(seconds: float, what: str) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise TypeError(f"remote option {what} is seconds, not {seconds!r}")
    if not 0 < seconds <= _MOST_SECONDS:  # False for NaN, too
        raise ValueError(
            f"remote option {what} is {seconds!r}: seconds, more than 0 and at most a day"
        )
    return max(1, round(seconds * 1000))


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"remote option {what} is not a str")  # its value may be a secret
    return value


def _lines(headers: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{_text(k, 'headers')}: {_text(v, 'headers')}" for k, v in headers.items())


def _header_supplier(headers: Callable[[], Mapping[str, str]]) -> Callable[[], tuple[str, ...]]:
    return lambda: _lines(headers())


def _request_hook(
    on_request: Callable[[Transfer], object] | None,
) -> Callable[[tuple[Any, ...]], object] | None:
    return None if on_request is None else lambda parts: on_request(Transfer(*parts))
