"""How Sphinx builds the site; tools/site_pages.py puts its pages together, scripts/docs runs both."""

import re
from pathlib import Path

HEADER = Path(__file__).resolve().parents[1] / "include/caterva.h"

project = "Caterva"
author = "the Caterva developers"
release = re.search(r'VERSION_STRING "(.*)"', HEADER.read_text(encoding="utf-8")).group(1)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # shells in shells; `bytes`
default_role = "py:obj"
highlight_language = "text"
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "Caterva %s" % release
html_copy_source = False
html_show_sphinx = False
html_static_path = []
html_theme_options = {"navigation_with_keys": True}
