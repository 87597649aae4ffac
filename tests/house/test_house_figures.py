"""The figures of check_house follow their definitions, on a tree small enough to count by
hand."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import house_code  # noqa: E402
import house_figures  # noqa: E402

TREE = {
    "src/base/add.c": "int cv_add(int a)\n{\n    return a + 1;\n}\n",
    "src/store/low.c": "static int same(int a) { return a; }\n"
                       "int cv_low(int a)\n{\n    return same(cv_add(a));\n}\n",
    "src/frame/mid.c": "static int same(int a) { return cv_low(a); }\n"
                       "int cv_mid(int a)\n{\n    return same(a) + cv_low(a);\n}\n"
                       "int cv_alone(int a)\n{\n    return a;\n}\n",
    "src/frame/else.c": "int cv_else(int a)\n{\n    return a;\n}\n"
                        "int cv_local(int a)\n{\n    return a;\n}\n",
    "src/array/top.c": "int caterva_top(int a)\n{\n"
                       "    int cv_local = cv_mid(a);\n"
                       "    return cv_local + cv_low(a) + cv_alone(a) + t.cv_else + t->cv_else;\n}\n",
}


class Figures(unittest.TestCase):
    def read(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in TREE.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text)
            return house_code.read_tree(folder, "src/**/*.[ch]")

    def test_a_walk_reads_each_function_once(self):
        calls = house_figures.Calls(self.read())
        figures, files = house_figures.walk(calls, "caterva_top")
        # top; mid: cv_mid, same; low: cv_low, its own same; back to top; mid: cv_alone;
        # neither members called cv_else nor a variable called cv_local are calls
        self.assertEqual(figures, {"functions": 6, "files": 3, "stays": 5, "climbs": 1})
        self.assertEqual(files, ["src/array/top.c", "src/frame/mid.c", "src/store/low.c"])

    def test_functions_and_rooms(self):
        files = self.read()
        self.assertEqual(house_figures.of_functions(files),
                         "9 functions, median 4 lines, 90 % up to 5, longest 5")
        self.assertEqual(house_figures.of_rooms(files)["frame"], (2, 17))


if __name__ == "__main__":
    unittest.main()
