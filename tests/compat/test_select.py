"""Selections read and written, compared with NumPy.

usage: test_select.py [CASES [SEED]]

Random arrays of 0 to 6 axes with odd partitions, and for each some random selections of every
kind: boxes, slices with steps of either sign, lists with repeats and negative indices, points,
masks of an axis and of the array. The buffers are in C order or strided: transposed, backwards,
with gaps, broadcast. The results of the helper tool_select must be NumPy's bytes, and bytes
that a read must not change are checked too."""

import sys
import time

from tool_selections import Buffer, Refused, Tool, assign, np, random_array, random_selection, \
    random_source, selected

CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
SEED = int(sys.argv[2], 0) if len(sys.argv) > 2 else time.time_ns() % 2**32
CASES_PER_ARRAY = 20


def check_read(rng, tool, a, words, index, shape):
    answer = tool.ask("shape", *words).decode().split()
    assert tuple(map(int, answer)) == shape, (answer, shape)
    buffer = Buffer(rng, shape, a.dtype)
    memory = tool.ask("read", *words, *buffer.words)
    buffer.view[...] = selected(a, index, shape)
    assert memory == buffer.memory.tobytes(), f"read differs, buffer {buffer.words}"


def check_write(rng, tool, a, words, index, shape):
    buffer = random_source(rng, shape, a.dtype)
    tool.ask("write", *words, *buffer.words, data=buffer.memory.tobytes())
    assign(a, index, shape, buffer.view)
    assert tool.ask("whole") == a.tobytes(), f"after a write, buffer {buffer.words}"


def main():
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    tool = Tool()
    done = 0
    while done < CASES:
        tool.said.clear()
        a, geometry = random_array(rng, tool)
        for _ in range(CASES_PER_ARRAY):
            words, index, shape = random_selection(rng, a)
            try:
                check = check_write if rng.random() < 0.35 else check_read
                check(rng, tool, a, words, index, shape)
            except (AssertionError, Refused) as wrong:
                sys.exit(f"case {done}: shape, chunks, blocks, item size {geometry}\n"
                         f"{' '.join(map(str, words))[:2000]}\n{wrong}")
            done += 1
    tool.close()
    print(f"{done} selections, all as NumPy's")


if __name__ == "__main__":
    main()
