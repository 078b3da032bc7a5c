"""Settings of Sphinx for these pages: `make docs` writes site/, which needs no network and opens from a folder."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "src")]

from dynid.version import __version__  # noqa: E402

project = "dynid"
author = "The dynid authors"
version = release = __version__

# mathml, commands and api are files of the folder extensions.
extensions = ["myst_parser", "sphinx_copybutton", "mathml", "commands", "api"]
exclude_patterns = ["notebooks/*", "example/*"]
nitpicky = True
# Annotations in signatures name types of other packages, which these pages do not describe.
nitpick_ignore_regex = [(r"py:.*", r".*")]
show_warning_types = True

myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 4  # links to headings, by the same names as on GitHub
highlight_language = "none"

html_theme = "furo"
html_title = f"dynid {__version__}"
html_static_path = ["static"]
html_css_files = ["dynid.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses for files
maximum_signature_line_length = 88
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
