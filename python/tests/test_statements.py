"""Each statement of the manual about an exception, a status or a limit has a test.

This file maps statements to tests: a test in another file, by its path from the root, or a
function of this file. A statement is a sentence or a row of a table. The test fails for a
statement without an entry, and for an entry whose words or whose test do not exist any more."""

# ruff: noqa: E501
from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import caterva
import numpy as np
import pytest
from support import run_program

ROOT = Path(__file__).resolve().parents[2]
NAMES = re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Warning)\b|\bCATERVA_E[A-Z]+\b")
LIMITS = re.compile(
    r"\bulimit\b|\b[Tt]he limit is\b|\b(?:at most|up to)\W{1,3}\d|\b\d[\d,]* \w+ at most|\b\w+ times at most"
)
PAGES = (
    *("README.md", "python/README.md"),
    *(
        f"docs/{name}.md"
        for name in (
            *("python", "python-recipes", "xarray", "trees", "many-writers", "reliability"),
            *("remote", "compared", "concepts", "first-steps", "cookbook", "format"),
            *("conventions", "partitions", "install", "limits", "c", "command-line"),
            "performance",
        )
    ),
)

# ---- Which test covers which statement ---------------------------------------------------

COVERED: dict[str, dict[str, str]] = {
    "docs/performance.md": {
        "at most 8 bytes of memory for each chunk": "tests/unit/frame/index_pages.c",
        "A file of at most 16 MiB": "tests/property/test_kept.c",
        "if the blocks take at most 16 MiB": "tests/reliability/test_remote_waves.py",
    },
    "docs/install.md": {
        "whose calls throw `CATERVA_EBUSY`": "tests/wasm/tool_read.mjs",
        "| `-DCATERVA_TREES=OFF`": "tests/house/test_wings.py",
        "A build with addresses of 32 bits": "tests/wasm/test_wasm.py",
    },
    "docs/limits.md": {
        "a second one gets `CATERVA_EBUSY`": "tests/property/test_overwrite.c",
        "Builds for 32-bit addresses write": "tests/wasm/test_wasm.py",
    },
    "docs/python.md": {
        "| a read, change or commit after": "python/tests/test_close.py::test_a_change_that_fails_half_way_is_not_read_before_the_rollback",
        "`refresh` raises `ValueError`": "python/tests/test_life.py::test_refresh_to_another_array",
        "it raises `FileNotFoundError`, and the array": "python/tests/test_life.py::test_refresh_to_nothing",
        "ValueError for another `shape`": "python/tests/test_life.py::test_mode_a_finds_what_was_meant",
        "raises `IndexError` or `ValueError` if": "test_a_shape_that_shrinks_meanwhile",
        "with `caterva.StoppedError`": "python/tests/test_async.py::test_what_a_fork_meets_ends_in_the_child",
        "a plain `IndexError`, `ValueError`": "test_the_table_of_exceptions",
        "Each `OSError` carries": "python/tests/test_paths.py::test_oserrors_carry_errno_and_filename",
        "| no file |": "test_the_table_of_exceptions",
        "| the file exists already |": "test_the_table_of_exceptions",
        "| another process writes |": "test_the_table_of_exceptions",
        "| permission is denied |": "python/tests/test_paths.py::test_what_is_denied_is_a_permission_error",
        "| the array was opened for reading only, or is behind a URL |": "test_the_table_of_exceptions",
        "| the file is damaged (": "test_the_table_of_exceptions",
        "| a wrong argument, also an unknown name": "test_the_table_of_exceptions",
        "| assigned or appended items, or `out`": "test_the_table_of_exceptions",
        "| the arrays of `concat` do not fit": "test_the_table_of_exceptions",
        "| the array of a view has another shape": "python/tests/test_life.py::test_views_of_another_shape_are_stale",
        "| a wrong index |": "test_the_table_of_exceptions",
        "| the library does not have the codec or filter that": "test_the_table_of_exceptions",
        "status 401 raises `PermissionError`": "python/tests/test_urls.py::test_credentials_that_are_wanted_are_a_permission",
        "403 raises `FileNotFoundError`": "python/tests/test_urls.py::test_credentials_that_are_wanted_are_a_permission",
        "`w[0] = 1e20` raises `OverflowError`": "test_floats_that_no_integer_holds",
        "you get a `ResourceWarning`": "python/tests/test_life.py::test_dropping_what_is_pending_is_told",
    },
    "docs/python-recipes.md": {
        "task raises `StaleError`": "python/tests/test_identity.py::test_threads_and_processes_give_one_sum_or_stale_error",
        "A stale array is a `RuntimeError` there": "python/tests/test_identity.py::test_distributed_workers_give_one_sum_or_stale_error",
    },
    "docs/xarray.md": {
        "reading it raises `StaleError`": "python/tests/test_identity.py::test_data_sets_of_two_states",
        "whatever `ulimit -n` is": "test_many_variables_need_few_descriptors",
        "the call raises `ValueError` and the tree keeps": "python/tests/test_xarray_appends.py::test_what_variables_cannot_hold_is_refused",
        "ends the save with its `ValueError`": "python/tests/test_xarray_appends.py::test_a_block_that_does_not_fit_leaves_the_last_state",
        "`ValueError` that names it": "python/tests/test_xarray_appends.py::test_an_append_has_all_variables_of_the_dimension",
        "eight times at most": "python/tests/test_xarray_appends.py::test_a_commit_while_a_data_set_is_opened",
        "a second one gets `BlockingIOError`": "python/tests/test_xarray.py::test_one_process_saves_at_a_time",
        "the save ends with `FileExistsError`": "python/tests/test_xarray.py::test_what_others_made_meanwhile_stays",
        "The Delayed raises `StaleError`": "python/tests/test_xarray_formats.py::test_later_is_too_late",
    },
    "docs/trees.md": {
        "is refused there with `CATERVA_EBUSY`": "python/tests/test_trees.py::test_what_is_pending_is_the_parents",
        "would overwrite (`CATERVA_EBUSY`)": "tests/property/test_tree_busy.c",
        "whatever `ulimit -n` is": "tests/property/test_tree_rest.c::test_many",
        "moving or deleting it returns `CATERVA_EBUSY`": "python/tests/test_trees_busy.py::test_an_array_with_an_open_job_is_not_deleted",
        "the archive is refused: `CATERVA_ECORRUPT`": "tests/property/test_trees.c::test_lies",
        "| a second writer |": "tests/property/test_tree_busy.c",
        "an archive whose end contradicts itself": "tests/property/test_trees.c::test_lies",
        "the last of several parts of an archive": "tests/property/test_trees.c::test_lies",
        "keys that differ only in case": "tests/property/test_tree_case.c::test_refused",
    },
    "docs/many-writers.md": {
        "268,435,451 chunks": "test_limits_of_the_format",
        "| several parts wrote the same items |": "python/tests/test_jobs.py::test_another_coordinator_sees_how_it_grows",
        "| a commit fails, or its answer is lost |": "python/tests/test_jobs.py::test_a_merge_that_failed_is_tried_again",
        "| two coordinators |": "test_the_table_of_exceptions",
        "at most 8 bytes for each chunk": "tests/unit/jobs/job_bases.c",
    },
    "docs/reliability.md": {
        "stops a commit while it encodes chunks": "python/tests/test_close.py::test_an_interrupted_close_is_repeated",
        "in Python `RollbackError`": "python/tests/test_close.py::test_a_change_that_fails_half_way_is_not_read_before_the_rollback",
        "| the interpreter ends: last line": "python/tests/test_close.py::test_what_a_daemon_thread_holds_is_lost_with_a_warning",
        "status `CATERVA_ESTOPPED`": "tests/property/test_call_stops.c",
        "for headers up to 512 bytes": "tests/fault/test_faults.c",
        "| commit is stopped:": "python/tests/test_close.py::test_an_interrupted_close_is_repeated",
        "| the last reference goes": "python/tests/test_close.py::test_collection_commits",
        "| an open file that was removed or replaced |": "python/tests/test_close.py::test_a_file_that_was_replaced_is_left_alone",
        "| a second writer; `compact`": "tests/property/test_overwrite.c",
        "of a directory that is read |": "tests/property/test_overwrite.c",
        "| after `fork` |": "python/tests/test_life.py::test_children_of_fork_read_and_leave_the_parents_alone",
        "the commit returns `CATERVA_EIO`": "python/tests/test_close.py::test_a_file_that_was_replaced_is_left_alone",
        "for that byte and gets `CATERVA_EBUSY`": "tests/property/test_tree_rest.c::test_busy",
        "is `CATERVA_EIO` when the handle is used next": "tests/property/test_tree_rest.c::test_changed",
    },
    "docs/remote.md": {
        "unpickling raises `StaleError`": "python/tests/test_urls.py::test_a_pickled_tree_refuses_another_object",
        "`caterva.ReadOnlyError` (`CATERVA_EREADONLY`)": "python/tests/test_urls.py::test_nothing_is_written_to_a_url",
        "chunk of at most 1 MiB, as it is stored": "tests/reliability/test_remote.py::test_a_small_chunk_is_read_whole",
        "Chunks that take at most 1 MiB together": "tests/reliability/test_remote.py::test_many_chunks_are_not_read_whole",
        "4 MiB together and at most 1 MiB of each": "tests/reliability/test_remote.py::test_a_directory_is_read_in_waves",
        "at most 64 MiB, they are one wave": "tests/reliability/test_remote_waves.py",
        "at most 8 MiB as it is stored, the layout": "tests/reliability/test_remote_parts.py",
        "up to 100 ranges (and 8 MiB) in each": "tests/unit/remote/multipart.c",
        "only gaps of up to 4 KiB": "tests/reliability/test_remote_parts.py",
        "at most 16 requests are in progress": "tests/reliability/test_remote_over.py",
        "at most 64 KiB there is opened by 1 request": "tests/reliability/test_remote.py::test_an_opening_is_one_request",
        "are sent in parts, as many at once": "tests/reliability/test_publish.py",
        "at most 16 requests at once": "bench/python/remote.py",
        "`caterva.ExistsError` is raised if another object": "python/tests/test_publish.py::test_nothing_is_replaced_unasked",
        "up to 100 requests are in progress on one connection": "tests/reliability/test_remote_tls.py",
        "at most 5 times": "tests/reliability/test_remote_faults.py::test_errors_that_stay_end_after_the_retries",
        "is obeyed up to 30 seconds": "tests/reliability/test_remote_faults.py::test_the_server_says_when",
    },
    "docs/compared.md": {
        "the child raises `StaleError`": "python/tests/test_identity.py::test_a_child_does_not_turn_to_another_state",
        "the second one gets `BlockingIOError` and writes": "python/tests/test_xarray.py::test_one_process_saves_at_a_time",
        "gave `PermissionError` or NaN": "python/tests/test_anchors_xarray.py::test_appends_to_a_part_of_a_chunk_5511",
        "each write their region or get `BlockingIOError`": "python/tests/test_anchors_xarray.py::test_regions_at_the_same_time_9072",
    },
    "docs/concepts.md": {
        "a second one gets `CATERVA_EBUSY`": "tests/property/test_overwrite.c",
        "at most 8 bytes for each chunk": "tests/unit/frame/index_pages.c",
        "A file of at most 16 MiB is kept whole": "tests/property/test_kept.c",
    },
    "docs/format.md": {
        "15 axes at most are written": "test_limits_of_the_format",
        "at most 16 keys of 31 bytes": "python/tests/test_arrays.py::test_attributes_are_blosc2s",
        "chunk at most 2^31 - 33 bytes": "test_limits_of_the_format",
        "at most 268 435 451 chunks": "test_limits_of_the_format",
    },
    "docs/partitions.md": {
        "**at most 32 KiB**": "test_limits_of_partitions",
        "**at most 4 MiB**": "test_limits_of_partitions",
        "**at most 8 MiB** is cut": "test_limits_of_partitions",
        "up to 2.3 times as large": "bench/sizes.py",
        "at most 2 % more than with those": "tests/compat/test_sizes.py",
        "decodes up to 256 KiB": "test_limits_of_partitions",
    },
}


def statements(page: str) -> list[str]:
    """Return the sentences and rows of a page that name an exception, a status or a limit."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    found: list[str] = []
    for part in re.split(r"\n\s*\n", text):
        if part.lstrip().startswith("|"):
            found += part.splitlines()
        else:
            found += re.split(r"(?<=[.:;])\s+(?=[A-Z`*-])", " ".join(part.split()))
    found = [" ".join(one.split()) for one in found]
    return [one for one in found if NAMES.search(one) or LIMITS.search(one)]


@pytest.mark.parametrize("page", PAGES)
def test_each_has_a_test(page: str) -> None:
    words = COVERED.get(page, {})
    found = statements(page)
    without = [one for one in found if not any(known in one for known in words)]
    assert not without, f"{page}: no test is named for {without}"
    gone = [known for known in words if not any(known in one for one in found)]
    assert not gone, f"{page} no longer says {gone}"


@pytest.mark.parametrize(
    "test", sorted({test for words in COVERED.values() for test in words.values()})
)
def test_the_test_is_there(test: str) -> None:
    path, _, name = test.rpartition("::")
    if not path and "/" in test:
        path, name = test, ""
    text = (ROOT / path if path else Path(__file__)).read_text(encoding="utf-8")
    assert not name or re.search(rf"\b(?:def|void) {name}\(", text), test


# ---- Tests for statements that no other file tests ------------------------------------------------


def test_the_table_of_exceptions() -> None:
    caterva.save("a.b2nd", np.arange(12, dtype="i8").reshape(3, 4))
    a = caterva.open("a.b2nd")
    Path("bad.b2nd").write_bytes(b"\0" * 3 + Path("a.b2nd").read_bytes()[3:])
    with pytest.raises(FileNotFoundError):
        caterva.open("none.b2nd")
    with pytest.raises(FileExistsError):
        caterva.create(3, path="a.b2nd")
    with caterva.open("a.b2nd", "r+"):
        with pytest.raises(BlockingIOError) as busy:  # also by a second coordinator of a job
            caterva.open("a.b2nd", "r+")
        assert busy.value.code == caterva.Status.EBUSY
    for act in (lambda: a.__setitem__(0, 1), lambda: caterva.create(3, path="http://x/a.b2nd")):
        with pytest.raises(caterva.ReadOnlyError) as read_only:
            act()
        assert isinstance(read_only.value, ValueError)
    with pytest.raises(caterva.CorruptError) as damaged:
        caterva.open("bad.b2nd")
    assert isinstance(damaged.value, OSError)
    for wrong in (
        lambda: caterva.open("a.b2nd", "q"),  # type: ignore[call-overload]
        lambda: caterva.create(-1),
        lambda: caterva.zeros(3, levl=1),  # type: ignore[call-arg]
        lambda: a.read(dtype="i1", casting="safe"),
        lambda: caterva.zeros(3, codec="none-such"),
        lambda: caterva.zeros(3, filters=["none-such"]),
    ):
        with pytest.raises((ValueError, TypeError)):
            wrong()
    with pytest.raises(IndexError):
        a[3]
    with pytest.raises(IndexError):
        a[0, 0, 0]
    w = caterva.asarray(np.arange(12).reshape(3, 4))
    for misfit in (
        lambda: w.__setitem__(np.s_[:2], np.zeros((3, 3))),
        lambda: w.append(np.zeros((2, 3))),
        lambda: w.read(np.s_[:2], out=np.zeros((3, 3))),
    ):
        with pytest.raises(ValueError) as plain:
            misfit()
        assert type(plain.value) is ValueError
    w.close()
    with pytest.raises(ValueError):
        w[0]
    with pytest.raises(caterva.InvalidError) as shape:
        caterva.concat([a, caterva.zeros((3, 5), "i8")])
    assert shape.value.code == caterva.Status.ESHAPE
    with pytest.raises(NotImplementedError):
        caterva.zeros(3, codec=200)


def test_floats_that_no_integer_holds() -> None:
    w = caterva.asarray(np.arange(3, dtype="i4"))
    with pytest.raises(ValueError):
        w[0] = float("nan")
    with pytest.raises(OverflowError):
        w[0] = 1e20
    w[:] = np.array([np.nan, 1e20, -1e20])
    assert w[:].tolist() == [0, 2**31 - 1, -(2**31)]
    with pytest.raises(ValueError):
        w[:] = [np.nan, 1.0, 2.0]
    floats = caterva.asarray([np.nan, 1e20, -1e20])
    for found in (floats.read(dtype="i4", casting="unsafe"), floats.astype("i4")[:]):
        assert found.tolist() == [0, 2**31 - 1, -(2**31)]


def test_a_shape_that_shrinks_meanwhile() -> None:
    a = caterva.asarray(np.arange(4000))
    ends = threading.Event()

    def change() -> None:
        while not ends.is_set():
            a.resize(10)
            a.resize(4000)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(300):
            try:
                assert len(a[...]) in (10, 4000)
                a[-1]
            except (IndexError, ValueError):
                pass
    finally:
        ends.set()
        changing.join()


def test_many_variables_need_few_descriptors() -> None:
    pytest.importorskip("xarray")
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 256:
        pytest.skip("the limit is lower")
    run_program(
        "import resource, numpy as np, xarray as xr, caterva.xarray\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
        "ds = xr.Dataset({f'v{i}': ('x', np.arange(5.0) + i) for i in range(300)})\n"
        "for path in ('u.b2d', 'u.b2z'):\n"
        "    ds.to_caterva(path)\n"
        "    with xr.open_dataset(path) as found:\n"
        "        assert found.equals(ds)\n",
        os.getcwd(),
    )


def test_limits_of_the_format() -> None:
    assert caterva.zeros((1,) * 15, "u1").ndim == 15
    with pytest.raises((ValueError, NotImplementedError)):
        caterva.zeros((1,) * 16, "u1")
    most = 268_435_451
    assert caterva.zeros(most, "u1", chunks=1, blocks=1).info.n_chunks == most
    with pytest.raises((ValueError, NotImplementedError)):
        caterva.zeros(most + 1, "u1", chunks=1, blocks=1)
    chunk, block = 2**31 - 33, 536_866_816  # whole blocks
    caterva.zeros(2**33, "u1", chunks=3 * block, blocks=block)
    caterva.zeros(2**33, "u1", chunks=chunk, blocks=1)
    for chunks, blocks in ((chunk + 1, 1), (3 * block + 3, block + 1)):
        with pytest.raises(ValueError, match="the format allows"):
            caterva.zeros(2**33, "u1", chunks=chunks, blocks=blocks)


@pytest.mark.parametrize("dtype", ("u1", "i2", "f4", "f8", "c16"))
def test_limits_of_partitions(dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    for shape in ((10**8,), (3000, 5000), (400, 500, 600), (30, 40, 50, 60), (7, 10**7)):
        chunks, blocks = caterva.choose_partition(shape, dtype)
        decoded = [int(np.prod(lengths)) * size for lengths in (chunks, blocks)]
        if np.prod(shape) * size > 8 << 20:
            assert decoded[0] <= 4 << 20 and decoded[1] <= 32 << 10, (shape, chunks, blocks)
    for shape in ((500_000 // size,), (300, 1500 // size), (20, 30, 400 // size)):
        _, blocks = caterva.choose_partition(shape, dtype)
        assert int(np.prod(blocks)) * size <= 256 << 10, (shape, blocks)
