"""Settings of the documentation; `make docs` builds it, warnings are errors, and nothing is fetched."""

import tomllib
from pathlib import Path

project = "stickbreak"
author = "The stickbreak developers"
copyright = f"2026, {author}"
manifest = tomllib.loads((Path(__file__).parent.parent / "Cargo.toml").read_text(encoding="utf-8"))
release = version = manifest["workspace"]["package"]["version"]

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
# Docstrings put the names of arguments and classes in single backquotes.
default_role = "code"

autodoc_default_options = {"members": True, "member-order": "bysource"}
# The docstrings say the types.
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_enable_extensions = ["deflist", "dollarmath"]

html_theme = "furo"
html_title = f"stickbreak {release}"
html_show_sphinx = False
