"""tools/check_house.py finds each kind of violation, with its place."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_house  # noqa: E402
import house_code  # noqa: E402

CLEAN = {
    "src/base/status.h": "#include <caterva.h>\n#include <stdint.h>\n",
    "src/base/os_file.c": "#include <fcntl.h>\nif (close(fd)) return errno;\n",
    "src/format/header.h": '#include "base/status.h"\n',
    "src/store/file.c": '#include "base/status.h"\n/* never stderr */\n',
    "src/store/calls.c": "#include <string.h>\n"
                         "ops->read(s); f.close(); cv_file_read(f); sys_errno; fd_open(x); cv_free(slab->free);\n",
    "src/codec/codec.h": '#include "base/status.h"\n',
    "src/codec/decode.c": '#include "base/status.h"\n#include <blosc2.h>\n',
    "src/frame/open.c": '#include "format/header.h"\nsnprintf(a, 9, "no printf here");\n',
    "src/engine/plan/plan.h": '#include "frame/open.h"\n',
    "src/engine/read/read.h": '#include "engine/plan/plan.h"\n',
    "src/array/array.h": '#include "frame/open.h"\n#include "engine/read/read.h"\n',
    "src/frame/open.h": "\n",
    "src/array/array.c": '#include "base/status.h"\n',
    "src/array/wings.h": '#include "array/array.h"\n',
    "src/value/value.h": "#include <caterva_value.h>\n",
    "src/upkeep/upkeep.h": '#include "value/value.h"\n',
    "src/upkeep/repair.h": '#include "engine/read/read.h"\n',
    "src/tree/tree.h": '#include "upkeep/upkeep.h"\n#include "array/array.h"\n',
    "src/tree/zip.c": '#include "tree/tree.h"\n',
    "src/jobs/jobs.h": '#include "array/wings.h"\n',
    "src/wings.c": '#include "jobs/jobs.h"\n#include "tree/tree.h"\n'
                   '#include "array/wings.h"\n',
    "cli/cli.h": "#include <caterva.h>\n",
    "cli/main.c": '#include "cli.h"\n#include <png.h>\nprintf("data");\n',
    "cli/formats/npy.h": '#include "cli.h"\n',
    "cli/sources/source.h": '#include "formats/npy.h"\n',
    "examples/01/main.c": "#include <caterva.h>\n",
}

BREACHES = [
    ("src/format/x.c", '\n#include "codec/codec.h"\n', 2),
    ("src/store/x.c", '#include "format/header.h"\n', 1),
    ("src/base/x.c", '/* two\nlines */\n#include "frame/open.h"\n', 3),
    ("src/frame/x.c", "#include <blosc2.h>\n", 1),
    ("src/engine/plan/x.c", '#include "array/array.h"\n', 1),
    ("src/engine/plan/x.c", "#include <b2nd.h>\n", 1),
    ("src/engine/plan/x.c", '#include "engine/read/read.h"\n', 1),
    ("src/frame/x.c", '#include "value/value.h"\n', 1),
    ("src/array/x.c", '\n#include "upkeep/upkeep.h"\n', 2),
    ("src/array/x.c", '#include "tree/tree.h"\n', 1),
    ("src/tree/x.c", '#include "upkeep/repair.h"\n', 1),
    ("src/tree/x.c", '#include "jobs/jobs.h"\n', 1),
    ("src/jobs/x.c", '#include "tree/tree.h"\n', 1),
    ("src/upkeep/x.c", '#include "tree/tree.h"\n', 1),
    ("src/wings.c", '#include "upkeep/repair.h"\n', 1),
    ("src/wings.c", "#include <unistd.h>\n", 1),
    ("src/engine/x.c", "\n", 1),
    ("src/array/x.c", '#include "blosc2/codecs-registry.h"\n', 1),
    ("src/format/x.c", '#include "header.h"\n', 1),
    ("src/format/x.c", '#include "../base/status.h"\n', 1),
    ("src/codec/x.c", 'fprintf(stderr, "no");\n', 1),
    ("src/store/x.c", "\n\nconst char *home = getenv(name);\n", 3),
    ("src/store/x.c", "#include <unistd.h>\n", 1),
    ("src/frame/x.c", "#include <sys/stat.h>\n", 1),
    ("src/array/x.c", "#include <pthread.h>\n", 1),
    ("src/engine/plan/x.c", "#include <time.h>\n", 1),
    ("src/store/x.c", "\nif (fstat(fd, &st)) return 1;\n", 2),
    ("src/store/x.c", "return (int)pread(fd, dst, size, at);\n", 1),
    ("src/store/x.c", "FILE *file = fopen(path, mode);\n", 1),
    ("src/frame/x.c", "return errno;\n", 1),
    ("src/frame/x.c", "\n\nchar *copy = malloc(size);\n", 3),
    ("src/array/x.c", "if (done) free(copy);\n", 1),
    ("src/codec/x.c", "char *name = strdup(text);\n", 1),
    ("src/array/x.c", "pthread_mutex_t lock;\n", 1),
    ("src/odd/x.c", "\n", 1),
    ("src/x.c", "\n", 1),
    ("cli/x.c", '#include "base/status.h"\n', 1),
    ("cli/x.c", "#include <blosc2.h>\n", 1),
    ("cli/x.c", '#include "npy.h"\n', 1),
    ("cli/formats/x.c", '#include "npy.h"\n', 1),
    ("cli/formats/x.c", '\n#include "sources/source.h"\n', 2),
    ("cli/sources/x.c", '#include "../cli.h"\n', 1),
    ("cli/odd/x.c", "\n", 1),
    ("examples/01/x.c", '#include "../../src/base/status.h"\n', 1),
]


# Two files of a room and a caller: declared where they are defined, and used.
TIDY = {
    "src/store/list.h": "typedef struct cv_list {\n    int n;\n} cv_list;\n"
                        "int cv_list_size(const cv_list *list);\n",
    "src/store/list.c": '#include "store/list.h"\n\n'
                        "typedef struct part {\n    int n;\n} part;\n"
                        "static int twice(int n) { return 2 * n; }\n"
                        "int cv_list_size(const cv_list *list)\n{\n    return twice(list->n);\n}\n",
    "src/store/tree.h": '#include "store/list.h"\n\ntypedef struct cv_tree cv_tree;\n'
                        "int cv_tree_size(const cv_tree *tree);\n",
    "src/store/tree.c": '#include "store/tree.h"\n\n'
                        "typedef struct part {\n    char *name;\n} part;\n"
                        "struct cv_tree {\n    cv_list list;\n};\n"
                        "int cv_tree_size(const cv_tree *tree) { return cv_list_size(&tree->list); }\n",
    "src/array/array.c": '#include "store/tree.h"\n'
                         "int caterva_size(const cv_tree *tree)\n{\n"
                         "    return tree ? cv_tree_size(tree) : 0;\n}\n",
}

# The change, the file in which it is reported, and the message.
BREACHES_OF_FILES = [
    # cycles: through includes; through a call of what another header declares
    ({"src/store/list.c": '\n#include "store/tree.h"\n' + TIDY["src/store/list.c"]},
     ["src/store/list.c:2: needs and is needed in a circle: store/list, store/tree"]),
    ({"src/store/open.h": "void cv_open(void);\n",
      "src/store/open.c": '#include "store/open.h"\n#include "store/shut.h"\n'
                          "void cv_open(void) { cv_shut(); }\n",
      "src/store/shut.h": "void cv_shut(void);\n",
      "src/store/shut.c": '#include "store/shut.h"\n#include "store/base.h"\n'
                          "void cv_shut(void) { cv_base(); }\n",
      "src/store/base.h": "void cv_base(void);\n",
      "src/store/base.c": '#include "store/open.h"\nvoid cv_base(void) { cv_open(); }\n'},
     ["src/store/base.c:1: needs and is needed in a circle: "
      "store/base, store/open, store/shut"]),
    ({"src/store/list.h": TIDY["src/store/list.h"] + "int cv_tree_depth(void);\n",
      "src/store/tree.c": TIDY["src/store/tree.c"] + "int cv_tree_depth(void) { return 1; }\n",
      "src/store/list.c": TIDY["src/store/list.c"]
      + "static int depth(void) { return cv_tree_depth(); }\n"},
     ["src/store/list.c:1: needs and is needed in a circle: store/list, store/tree",
      "src/store/list.h:5: declares what src/store/tree.c implements"]),
    # levels within a room; other rooms are ignored
    ({"src/store/list.h": TIDY["src/store/list.h"] + '#include "store/h1.h"\n',
      **{"src/store/h%d.h" % i: '#include "store/h%d.h"\n' % (i + 1) if i < 5
         else '#include "base/b.h"\n' for i in range(1, 6)},
      "src/base/b.h": "\n"},
     ["src/store/tree.c:1: begins a chain of 8 includes in its room: src/store/tree.h "
      "src/store/list.h " + " ".join("src/store/h%d.h" % i for i in range(1, 6))]),
    # headers: of another file; of none
    ({"src/store/tree.h": TIDY["src/store/tree.h"] + "\nint cv_roots(void);\n",
      "src/store/roots.c": '#include "store/tree.h"\nint cv_roots(void) { return 0; }\n',
      "src/array/array.c": TIDY["src/array/array.c"] + "int caterva_n(void) { return cv_roots(); }\n"},
     ["src/store/tree.h:6: declares what src/store/roots.c implements"]),
    ({"src/store/tree.c": TIDY["src/store/tree.c"] + "\nint helper(void)\n{\n    return 1;\n}\n"},
     ["src/store/tree.c:11: helper is neither static nor declared in a header"]),
    # types
    ({"src/store/tree.c": "struct cv_list {\n    int m;\n};\n" + TIDY["src/store/tree.c"]},
     ["src/store/list.h:1: defines cv_list, as does src/store/tree.c",
      "src/store/tree.c:1: defines cv_list, as does src/store/list.h"]),
    ({"src/store/tree.h": TIDY["src/store/tree.h"] + "typedef enum part { LEAF } part;\n"},
     ["src/store/list.c:3: defines part, as does src/store/tree.c, src/store/tree.h",
      "src/store/tree.c:3: defines part, as does src/store/list.c, src/store/tree.h",
      "src/store/tree.h:5: defines part, as does src/store/list.c, src/store/tree.c"]),
    ({"src/array/tree.h": "int cv_tree(void);\n",
      "src/array/tree.c": '#include "array/tree.h"\nint cv_tree(void) { return 1; }\n',
      "src/array/array.c": TIDY["src/array/array.c"] + "int caterva_n(void) { return cv_tree(); }\n"},
     ["src/array/tree.h:1: names a function cv_tree, a type of src/store/tree.c"]),
    # leftovers: declared, inline, and used by its own file only
    ({"src/store/list.h": TIDY["src/store/list.h"] + "int cv_list_last(const cv_list *list);\n",
      "src/store/list.c": TIDY["src/store/list.c"]
      + "int cv_list_last(const cv_list *list) { return list->n ? cv_list_last(list) : 0; }\n"},
     ["src/store/list.h:5: no other file uses cv_list_last"]),
    ({"src/store/list.h": TIDY["src/store/list.h"]
      + "\nstatic inline int cv_list_first(void)\n{\n    return 0;\n}\n"},
     ["src/store/list.h:6: no other file uses cv_list_first"]),
]


def check(files, known=()):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return check_house.check(root, known)


class House(unittest.TestCase):
    def test_a_clean_tree_passes(self):
        self.assertEqual(check(CLEAN), ([], len(CLEAN)))

    def test_each_breach_is_caught_at_its_line(self):
        for name, text, line in BREACHES:
            with self.subTest(name=name, text=text):
                found, _ = check({**CLEAN, name: text})
                self.assertEqual([f.split(": ")[0] for f in found],
                                 ["%s:%d" % (name, line)])

    def test_tidy_files_pass(self):
        self.assertEqual(check(TIDY), ([], len(TIDY)))

    def test_each_breach_among_files_is_caught_at_its_line(self):
        for changes, sentences in BREACHES_OF_FILES:
            with self.subTest(sentences=sentences):
                found, _ = check({**TIDY, **changes})
                self.assertEqual(sorted(found), sentences)

    def test_one_header_may_stand_before_the_kinds_of_a_thing(self):
        changes, sentences = BREACHES_OF_FILES[4]
        with mock.patch.dict(check_house.KINDS, {"src/store/tree.h": {"src/store/roots.c"}}):
            self.assertEqual(check({**TIDY, **changes})[0], [])
        self.assertEqual(check({**TIDY, **changes})[0], sentences)

    def test_a_face_declares_what_its_room_implements(self):
        files = {**TIDY, "src/tree/tree.h": "int cv_leaf(void);\n",
                 "src/tree/leaf.h": '#include "tree/tree.h"\n',
                 "src/tree/leaf.c": '#include "tree/leaf.h"\nint cv_leaf(void) { return 1; }\n',
                 "src/tree/tree.c": '#include "tree/leaf.h"\nint caterva_leaf(void) '
                                    "{ return cv_leaf(); }\n"}
        self.assertEqual(check(files)[0], [])
        other = {**files, "src/jobs/part.c": '#include "tree/tree.h"\nint cv_part(void) '
                                             "{ return cv_leaf(); }\n",
                 "src/tree/tree.h": "int cv_leaf(void);\nint cv_part(void);\n"}
        self.assertIn("src/tree/tree.h:2: declares what src/jobs/part.c implements",
                      check(other)[0])

    def test_what_is_for_tests_is_used_by_tests(self):
        header = TIDY["src/store/list.h"] + "int cv_list_kind(void);\n"
        body = TIDY["src/store/list.c"] + "int cv_list_kind(void) { return 0; }\n"
        files = {**TIDY, "src/store/list.h": header, "src/store/list.c": body}
        tested = {**files, "tests/unit/test_list.c": "int main(void) { return cv_list_kind(); }\n"}
        used = {**tested, "src/array/kind.c": '#include "store/list.h"\n'
                                              "int caterva_kind(void) { return cv_list_kind(); }\n"}
        where = "src/store/list.h:5: "
        self.assertEqual(check(tested)[0], [where + "no other file uses cv_list_kind"])
        with mock.patch.object(check_house, "FOR_TESTS", {"cv_list_kind"}):
            self.assertEqual(check(tested)[0], [])
            self.assertEqual(check(files)[0], [where + "no test uses cv_list_kind"])
            self.assertEqual(check(used)[0],
                             [where + "cv_list_kind is said to be for tests, and is not"])

    def test_a_macro_may_put_a_name_together(self):
        files = {**TIDY, "src/store/list.h": TIDY["src/store/list.h"] + "int cv_list_u8(void);\n",
                 "src/store/list.c": TIDY["src/store/list.c"] + "int cv_list_u8(void) { return 0; }\n",
                 "src/store/kinds.c": '#include "store/list.h"\n#define GET(kind) cv_list_##kind()\n'
                                      "int caterva_kind(void) { return GET(u8); }\n"}
        self.assertEqual(check(files)[0], [])

    def test_known_breaches_are_breaches(self):
        breach = {"src/store/x.c": '#include "format/header.h"\n'}
        name = "src/store/x.c: includes format/header.h: store may not know format"
        self.assertEqual(check({**CLEAN, **breach}, {name})[0], [])
        self.assertEqual(check(CLEAN, {name})[0],
                         [name + ": is a breach no more: take it out of KNOWN"])


class Code(unittest.TestCase):
    """What the rules are checked on: the C sources as the tools parse them."""

    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "src" / "x.c"
            path.parent.mkdir()
            path.write_text(text)
            return house_code.read_tree(folder, "src/*.c")[0]

    def test_functions_are_found_with_their_lines(self):
        file = self.read(
            '#define PART static inline\n#define KERNEL(name) \\\n    PART void name(void) { }\n'
            "KERNEL(a)\nKERNEL(b)\n"
            "/* int no(void) { } */\nint one(void)\n{\n    if (1) { puts(\"{\"); }\n    return '}';\n}\n"
            "PART int two(int (*f)(void)) { return f(); }\n"
            "static const int table[] = {1, 2};\n__attribute__((cold)) int three(void)\n{\n}\n")
        self.assertEqual([(f.name, f.static, f.line, f.n_lines) for f in file.functions],
                         [("one", False, 7, 5), ("two", True, 12, 1), ("three", False, 14, 3)])

    def test_types_and_declarations_are_told_apart(self):
        file = self.read(
            "typedef struct a a;\nstruct b {\n    int (*call)(int);\n};\n"
            "typedef struct {\n    int n;\n} c;\ntypedef int (*d)(void);\ntypedef int e(int);\n"
            "enum { X = 1 };\nint f(a *, int (*g)(void));\nextern int h[3];\nint i = sizeof(int);\n"
            "typedef int j[4];\ntypedef enum k { Y } k;\n")
        self.assertEqual([name for name, _ in file.types], ["b", "c", "d", "e", "j", "k"])
        self.assertEqual(file.declared, [("f", 11)])


if __name__ == "__main__":
    unittest.main()
