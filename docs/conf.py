"""Sphinx makes the site from these pages: `make docs`.

The pages are plain Markdown, which a view of the repository shows too. A line
`<!-- made from code: NAME -->` stands for a text that `made.py` beside this file makes.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from made import TEXTS  # noqa: E402

from svcd.cli.command import version as svcd_version  # noqa: E402

project = "svcd"
author = "The svcd developers"
project_copyright = author
version = release = svcd_version()

extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["examples"]
nitpicky = True
highlight_language = "none"  # of blocks without a language: commands, and what programs print

html_theme = "furo"
html_title = f"svcd {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

_MARK = re.compile(r"^<!-- made from code: (\w+) -->\n.+$", re.MULTILINE)
"""A mark, and the line below it for readers of the file itself."""


def _fill(_app: Sphinx, _page: str, content: list[str]) -> None:
    content[0] = _MARK.sub(lambda mark: TEXTS[mark[1]](), content[0])


def setup(app: Sphinx) -> None:
    """Fill the marks of each page before Sphinx reads it."""
    app.connect("source-read", _fill)
