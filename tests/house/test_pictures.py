"""The pictures of the manual are those that docs/pictures.py draws from the published results."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.dom import minidom

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"


class Pictures(unittest.TestCase):
    def test_they_are_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "docs/pictures.py", folder], check=True)
            drawn = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        kept = {path.name: path.read_bytes() for path in PICTURES.iterdir()}
        self.assertGreater(len(drawn), 4)
        self.assertEqual(drawn.keys(), kept.keys())
        for name in drawn:
            self.assertEqual(drawn[name], kept[name], "run docs/pictures.py: " + name)

    def test_texts_end_inside(self):
        """Words of a wide font, 0.52 em for each letter in the mean, stay on the paper."""
        for path in PICTURES.iterdir():
            svg = minidom.parse(str(path)).documentElement
            for text in svg.getElementsByTagName("text"):
                words, size = text.firstChild.data, float(text.getAttribute("font-size"))
                width = 0.52 * size * len(words)
                anchor = {"start": 0, "middle": 0.5, "end": 1}[text.getAttribute("text-anchor")]
                left = float(text.getAttribute("x")) - anchor * width
                self.assertTrue(0 < left and left + width < float(svg.getAttribute("width")),
                                "%s: %s" % (path.name, words))


if __name__ == "__main__":
    unittest.main()
