"""Many writers of one array: jobs, the parts that workers write, and their merge."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, Unpack

import numpy as np

from . import _caterva, _options
from ._array import Array
from ._errors import NotFoundError, Status, refusal
from ._options import Handle, Path
from ._places import place_of, whole

Overlap: TypeAlias = Literal["error", "last"]
Tokens: TypeAlias = "bytes | Iterable[Tokens | None]"

OVERLAPS: tuple[Overlap, ...] = ("error", "last")
TOKEN = ".token-"  # prefix of files with tokens; no part has such a name


@dataclass(frozen=True)
class Merged:
    """Result of a merge.

    Attributes
    ----------
    parts : int
        Parts with items, each counted once.
    chunks : int
        Chunks that these parts wrote.
    moved_chunks, spliced_chunks : int
        Of these, moved as stored, and assembled from compressed blocks. The others were
        encoded.
    decoded_blocks : int
        Blocks that were decoded to assemble chunks.
    merged_before : int
        Chunks whose items the array already held.
    """

    parts: int = 0
    chunks: int = 0
    moved_chunks: int = 0
    spliced_chunks: int = 0
    decoded_blocks: int = 0
    merged_before: int = 0


def flat_tokens(tokens: Tokens | None) -> Iterator[bytes]:
    """Flatten nested lists of tokens, as task graphs return them; None entries are skipped."""
    if tokens is None:
        return
    if isinstance(tokens, bytes | bytearray | memoryview):
        yield bytes(tokens)
    elif isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise TypeError(f"a token is bytes, not {tokens!r}")
    else:
        for inner in tokens:
            yield from flat_tokens(inner)


def merge(
    array: Array,
    tokens: Tokens,
    overlap: Overlap,
    keep: bool,
    unchecked: bool,
    progress: _options.Listener,
) -> Merged:
    """Implements `Array.merge`."""
    how = _options.number_of(overlap, OVERLAPS, "overlap")
    flat = tuple(flat_tokens(tokens))
    if not flat:
        return Merged()
    report = array.progress if progress is None else _options.progress_of(progress)
    return Merged(*array._merge(flat, how, unchecked, keep, report))


# ---- Parts ------------------------------------------------------------------------------


class Part(Array):
    """The share of an array that one worker writes; created by `Job.part`.

    An array for writing with the array's shape, whose items read as zeros until this object
    writes them. `finish` completes it, as does the end of a ``with`` block; a part that is
    closed before is dropped. Only items can be written: resizing, setting attributes,
    committing, compacting and sealing raise UnsupportedError.

    Examples
    --------
    >>> import caterva
    >>> with caterva.zeros((4, 6), "i2", "parted.b2nd", overwrite=True) as a, a.job() as job:
    ...     with job.part() as part:
    ...         part[1:3, ::2] = 7
    ...     merged = job.merge(part.token)
    >>> caterva.open("parted.b2nd")[1]
    array([7, 0, 7, 0, 7, 0], dtype=int16)
    """

    __slots__ = ("_token",)
    _token: bytes

    @property
    def token(self) -> bytes:
        """The result of `finish`; ValueError before."""
        try:
            return self._token
        except AttributeError:
            raise ValueError("the part is not finished") from None

    def finish(self) -> bytes:
        """Encode pending changes, make them durable, and release the part.

        Returns
        -------
        bytes
            The token, for `Job.merge`: less than 1 KiB and 24 bytes for each chunk. Calling
            `finish` again returns the same token.

        Examples
        --------
        >>> import caterva
        >>> with caterva.zeros(9, path="tokens.b2nd", overwrite=True) as a, a.job() as job:
        ...     part = job.part()
        ...     part[2:5] = 1
        ...     token = part.finish()
        ...     merged = job.merge([token])
        >>> int(caterva.open("tokens.b2nd").sum())
        3
        """
        if not hasattr(self, "_token"):
            self._token = self._part_finish()
        return self._token

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and not self.closed:
            self.finish()
        self._close(False)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a part belongs to the process that opened it: pickle the job and the token"
        )


# ---- Jobs --------------------------------------------------------------------------------


class Job:
    """A job, by which many workers write one array at the same time; created by `Array.job`.

    Jobs pickle: send one to the workers. Each worker makes parts, writes them, and returns
    their tokens. The end of a ``with`` block merges what `target` wrote, unless it is merged
    already, and commits what was merged; if nothing was merged, it deletes the job. If the
    block raises, nothing is committed; the parts stay if `merge` was called, and are deleted
    otherwise.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def work(job, rows):
    ...     with job.part() as part:
    ...         part[rows] = np.arange(rows.start, rows.stop)[:, None]
    ...     return part.token
    >>> with caterva.zeros((9, 4), "i4", "job.b2nd", overwrite=True) as a, a.job() as job:
    ...     with ThreadPoolExecutor() as pool:
    ...         tokens = list(pool.map(work, [job] * 2, [slice(0, 5), slice(5, 9)]))
    ...     merged = job.merge(tokens)
    >>> caterva.open("job.b2nd")[:, 3]
    array([0, 1, 2, 3, 4, 5, 6, 7, 8], dtype=int32)
    """

    __slots__ = (
        "_array", "_path", "_content", "_folder", "_merged", "_tried", "_kept", "_targeted",
        "_done",
    )  # fmt: skip

    def __init__(self, path: Path, content: bytes, folder: Path | None = None) -> None:
        self._array: Array | None = None
        self._path = place_of(path)
        self._content = bytes(content)
        self._folder = None if folder is None else os.fsdecode(folder)
        self._merged = self._tried = self._kept = self._targeted = False
        self._done: set[bytes] = set()  # tokens of the target that are merged

    @classmethod
    def _begin(cls, array: Array, shape: Sequence[int] | None) -> Self:
        lengths = None if shape is None else _options.shape_of(shape)
        content = array._job_begin(lengths)
        job = cls(array._place or "", content)
        job._array = array
        assert job.folder  # look it up now: there are no parts yet to be listed with it
        return job

    def __repr__(self) -> str:
        return f"<caterva.Job {os.path.basename(self.folder)} of {self._path!r}>"

    def __bytes__(self) -> bytes:
        return self._content

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, self._content, self.folder)

    @property
    def path(self) -> str:
        """Path of the array."""
        return self._path

    @property
    def folder(self) -> str:
        """Directory of the job's parts."""
        if self._folder is None:
            for entry in _caterva.jobs_list(self._path):
                if entry[2] == self._content and not entry[-1]:
                    self._folder = whole(entry[1])
        if self._folder is None:
            message = f"there is no job at {self._path}: it was merged or deleted"
            raise refusal(Status.ENOTFOUND, message, self._path)
        return self._folder

    def part(self, **options: Unpack[Handle]) -> Part:
        """Create a new part for this worker to write.

        Parameters
        ----------
        threads, durability, dirty_budget, cache_bytes, read_ahead, progress
            As in `open`.

        Returns
        -------
        Part

        Raises
        ------
        FileNotFoundError
            If the job was merged and committed, or deleted.
        """
        given = dict(options)
        progress = _options.progress_of(given.pop("progress", None))  # type: ignore[arg-type]
        words = _options.open_options(True, given)
        return _caterva.part_open(Part, self._path, self._content, words, progress)

    @property
    def target(self) -> Target:
        """Target for ``dask.array.store(x, job.target, lock=False)``: each assignment makes a
        part. `merge` merges them, or the end of the ``with`` block.

        Examples
        --------
        >>> import caterva
        >>> with caterva.zeros(6, "i2", "target.b2nd", overwrite=True) as a:
        ...     with a.job() as job:
        ...         job.target[1:3] = 8
        >>> caterva.open("target.b2nd")[:]
        array([0, 8, 8, 0, 0, 0], dtype=int16)
        """
        if self._array is None:
            raise ValueError("only the job that Array.job returned has a target, which pickles")
        self._targeted = True
        return Target(self, self._array.shape, self._array.dtype, self._array.chunks)

    def merge(
        self,
        tokens: Tokens | None = None,
        *,
        overlap: Overlap = "error",
        keep: bool = False,
        unchecked: bool = False,
        progress: _options.Listener = None,
    ) -> Merged:
        """Merge finished parts into the array. The result is pending until its commit.

        Parameters
        ----------
        tokens
            Tokens of parts, in any nesting of lists; None entries are skipped. Parts that
            `target` wrote and that are not merged yet come before them. Parts that share
            chunks must be merged in one call. None: all parts that `target` wrote.

        The other parameters are those of `Array.merge`.

        Returns
        -------
        Merged
        """
        if self._array is None:
            raise ValueError("only the job that Array.job returned can merge: use Array.merge")
        self._tried = True
        of_target = self._target_tokens() if tokens is None else self._left_tokens()
        given = [*of_target, *flat_tokens(tokens)]
        merged = self._array.merge(
            given, overlap=overlap, keep=keep, unchecked=unchecked, progress=progress
        )
        self._done.update(of_target)
        self._merged = self._merged or bool(given)
        self._kept = keep
        return merged

    def delete(self, *, progress: _options.Listener = None) -> None:
        """Delete the job with all its parts. Its tokens are then useless.

        Parameters
        ----------
        progress
            Function ``(done, total)``, called with bytes, or ``"tqdm"``; a part counts 4 KiB.
            Returning a true value stops the deletion. While ``done`` is 0 this leaves the job
            unchanged; later the job has ended (`JobInfo.has_ended`), and deleting it again
            deletes the rest.

        Examples
        --------
        >>> import caterva
        >>> with caterva.zeros(6, path="dropped.b2nd", overwrite=True) as a:
        ...     a.job().delete()
        >>> caterva.jobs("dropped.b2nd")
        []
        """
        _caterva.job_delete(self._path, self._content, _options.progress_of(progress))

    def _target_tokens(self) -> list[bytes]:
        tokens = []
        for name in sorted(os.listdir(self.folder)):
            if name.startswith(TOKEN):
                with open(os.path.join(self.folder, name), "rb") as file:
                    tokens.append(file.read())
        return tokens

    def _left_tokens(self) -> list[bytes]:
        """Return the target's tokens that are not merged."""
        if not self._targeted or not os.path.isdir(self.folder):
            return []
        return [token for token in self._target_tokens() if token not in self._done]

    # ---- As a context manager ----------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._abandon(error)
            return
        try:
            self._merge_left()
        except BaseException as failed:
            self._abandon(failed)
            raise
        self._end()

    def _merge_left(self) -> None:
        self._tried = True
        if not self._left_tokens():
            return
        if self._array is None or self._array.closed:
            raise ValueError("the array is closed, but what the target wrote is not merged")
        self.merge([], keep=self._kept)

    def _end(self) -> None:
        array = self._array
        if array is None or array.closed:
            return
        if self._merged:
            array.commit()
        elif not self._kept:
            with contextlib.suppress(NotFoundError):
                self.delete()

    def _abandon(self, error: BaseException) -> None:
        array = self._array
        if not self._tried:
            with contextlib.suppress(Exception):
                self.delete()
            return
        if array is not None and not array.closed:
            with contextlib.suppress(Exception):
                array.rollback()
        if self._folder is not None and os.path.isdir(self._folder):
            error.add_note(
                f"the parts stay in {self._folder}: merge them again, or delete them"
            )


class Target:
    """Accepts assignments in any process, and makes a part of each; see `Job.target`."""

    def __init__(
        self, job: Job, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: tuple[int, ...]
    ) -> None:
        self._job = job
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.chunks = chunks

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._job.part() as part:
            part[key] = value
        # A repeated task replaces its token: only the last one counts.
        place = os.path.join(self._job.folder, TOKEN + _name_of(key))
        temporary = os.path.join(self._job.folder, f".tmp-{uuid.uuid4().hex}")
        with open(temporary, "xb") as file:
            file.write(part.token)
        os.replace(temporary, place)


def _name_of(key: Any) -> str:
    """Return a name for an index that is the same in every process."""
    hashed = hashlib.sha256()
    for axis in key if isinstance(key, tuple) else (key,):
        if isinstance(axis, slice):
            numbers = [
                None if n is None else int(n) for n in (axis.start, axis.stop, axis.step)
            ]
            text = repr(numbers).encode()
        elif axis is None or axis is ...:
            text = repr(axis).encode()
        else:
            items = np.asarray(axis)
            text = f"{items.dtype.str}{items.shape}".encode() + items.tobytes()
        hashed.update(len(text).to_bytes(8, "little") + text)
    return hashed.hexdigest()


# ---- The jobs at a path --------------------------------------------------------------------


@dataclass(frozen=True)
class JobInfo:
    """A job that was begun and is neither merged and committed nor deleted completely.

    Attributes
    ----------
    job : Job
        To send to workers or delete. `Array.merge` merges its parts.
    id, folder, host, process
        Name and directory of the job; machine and process that began the job.
    began : datetime.datetime
        By the clock of that machine.
    commit_number : int
        Commit of the array on which the job is based.
    is_live : bool
        True if the handle that began the job is open.
    n_parts, part_bytes : int
        Finished parts, including those of repeated tasks.
    has_ended : bool
        True if it was merged or deleted but parts could not be deleted, for example those of
        other users; `job.delete` tries again.
    """

    job: Job
    id: str
    folder: str
    host: str
    process: int
    began: datetime.datetime
    commit_number: int
    is_live: bool
    n_parts: int
    part_bytes: int
    has_ended: bool


def jobs(path: Path, *, progress: _options.Listener = None) -> list[JobInfo]:
    """List the jobs of the array at `path`, the oldest first.

    Parameters
    ----------
    progress
        Function ``(done, total)``, called with bytes, or ``"tqdm"``; a part counts 4 KiB.
        Returning a true value stops the call.

    Examples
    --------
    >>> import caterva
    >>> with caterva.zeros(6, path="jobs.b2nd", overwrite=True) as a:
    ...     job = a.job()
    ...     with job.part() as part:
    ...         part[2:4] = 1
    >>> [(found.n_parts, found.is_live) for found in caterva.jobs("jobs.b2nd")]
    [(1, False)]
    >>> caterva.jobs("jobs.b2nd")[0].job.delete()
    """
    place = place_of(path)
    found = []
    for entry in _caterva.jobs_list(place, _options.progress_of(progress)):
        name, folder, content, host, process, ns, commit, is_live, n, size, has_ended = entry
        began = datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC)
        folder = whole(folder)
        job = Job(place, content, folder)
        found.append(
            JobInfo(
                job, name, folder, host, process, began, commit, is_live, n, size, has_ended
            )
        )
    return found
