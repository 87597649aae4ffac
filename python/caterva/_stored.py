"""How an array is stored: its chunks and blocks one by one, whether they are whole; upkeep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _boxes, _caterva, _indexing, _options
from ._info import BlockInfo, ChunkInfo, Report, Space, make_report
from ._plans import AnyArray
from ._readable import Readable


class Stored(_caterva.Array, Readable):
    """How an array is stored."""

    __slots__ = ()

    # ---- Chunks ---------------------------------------------------------------------------

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of the chunks."""
        chunks: tuple[int, ...] = self._describe()["chunks"]
        return chunks

    @property
    def blocks(self) -> tuple[int, ...]:
        """Shape of the blocks that chunks are made of."""
        blocks: tuple[int, ...] = self._describe()["blocks"]
        return blocks

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return int(self._describe()["n_chunks"])

    def iter_chunks(self, sel: Any = ...) -> Iterator[tuple[slice, ...]]:
        """Go over the chunks that a box touches: the slices of what each holds of it.

        The box is slices without steps, and ints, which stand for slices of one item.

        Examples
        --------
        >>> import caterva, numpy as np
        >>> a = caterva.zeros((4, 6), chunks=(2, 4))
        >>> [tuple(p.shape) for p in map(a.__getitem__, a.iter_chunks(np.s_[1:, :5]))]
        [(1, 4), (1, 1), (2, 4), (2, 1)]
        """
        return _boxes.iter_boxes(sel, self.shape, self.chunks)

    def chunk(self, number: int) -> ChunkInfo:
        """Where chunk `number` (in C order) is and how it is stored, as of the last commit."""
        return ChunkInfo(number, *self._chunk_info(number))

    def block(self, chunk: int, block: int) -> BlockInfo:
        """Where a block of a chunk is, as of the last commit."""
        return BlockInfo(chunk, block, *self._block_info(chunk, block))

    def chunk_infos(self) -> Iterator[ChunkInfo]:
        """All chunks, as `chunk` describes them."""
        return map(self.chunk, range(self.n_chunks))

    def read_chunk(self, number: int) -> bytes:
        """A chunk as it is stored: a Blosc2 chunk."""
        return self._chunk_read(number)

    def write_chunk(self, number: int, chunk: bytes) -> None:
        """Make a Blosc2 chunk chunk `number` of the array; it is decoded once before.

        Examples
        --------
        >>> import caterva
        >>> a, b = caterva.full(9, 5), caterva.zeros(9, int)
        >>> b.write_chunk(0, a.read_chunk(0))
        >>> b[-1]
        np.int64(5)
        """
        self._chunk_write(number, chunk)

    def prefetch(self, sel: Any = ...) -> None:
        """Have the smallest box around a selection decoded into the cache, in background."""
        self._prefetch(*_boxes.box_around(sel, self.shape))

    @property
    def cache(self) -> dict[str, int]:
        """Counts of the cache that this array uses."""
        return self._cache_counts()

    # ---- Upkeep ---------------------------------------------------------------------------

    def space(self) -> Space:
        """How chunks are stored, and how many bytes of the file are dead: looks at each chunk.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros((4, 6), chunks=(2, 6))
        >>> a[0] = range(6)
        >>> a.commit()
        >>> s = a.space()
        >>> s.stored_chunks, s.special_chunks, s.dead_bytes
        (1, 1, 0)
        """
        return Space(*self._measure())

    def verify(self, *, quick: bool = False, progress: _options.Listener = None) -> Report:
        """Check structure and checksums, and decode every block.

        Parameters
        ----------
        quick
            Look at the structure only.
        progress
            Hears of chunks done.

        Returns
        -------
        Report
            True when nothing is damaged.

        Examples
        --------
        >>> import caterva
        >>> a = caterva.zeros(3)
        >>> a.commit()
        >>> bool(a.verify())
        True
        """
        return make_report(*self._verify(quick, _options.progress_of(progress)))

    def read_around_damage(
        self, sel: Any = ..., *, fill_value: Any = None
    ) -> tuple[AnyArray, Report]:
        """Read a box although chunks are damaged: these become the fill, and are reported.

        The box is slices without steps; an axis with an int stays, with one item.

        A chunk is damaged when its bytes were read and are wrong, or when its file is missing
        from a directory that is there. A chunk that cannot be read (no permission, an object
        that is gone, a connection that breaks) raises the error, because it may be sound.
        """
        start, stop = _boxes.box_of(sel, self.shape)
        out = np.empty([b - a for a, b in zip(start, stop, strict=True)], self.dtype)
        fill = None
        if fill_value is not None:
            fill = _indexing.as_source(fill_value, self.dtype, (), True).tobytes()
        damages = self._read_skipping(start, stop, out, fill)
        return out, make_report(0, len({d[0] for d in damages}), 0, damages)

    def compact(self, *, progress: _options.Listener = None) -> None:
        """Rewrite the file without its dead space. The array is reopened for it."""
        self._upkeep(0, _options.progress_of(progress))

    def seal(self, *, progress: _options.Listener = None) -> None:
        """Give checksums to chunks that have none. The array is reopened for it."""
        self._upkeep(1, _options.progress_of(progress))
