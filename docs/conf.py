"""Settings of the documentation; `make docs` builds it, warnings are errors, and nothing is fetched."""

import importlib.util
import os
import re
import shutil
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import gallery_data  # noqa: E402
import inventories  # noqa: E402
import sphinx.ext.autosummary as autosummary  # noqa: E402
from sphinx.pycode import ModuleAnalyzer  # noqa: E402
from sphinx.util.typing import stringify_annotation  # noqa: E402

project = "stickbreak"
author = "The stickbreak developers"
copyright = f"2026, {author}"
manifest = tomllib.loads((HERE.parent / "Cargo.toml").read_text(encoding="utf-8"))
release = version = manifest["workspace"]["package"]["version"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "class_links",
]
exclude_patterns = ["_build", "_templates", "gallery", "auto_gallery/*.ipynb", "auto_gallery/*.py"]
templates_path = ["_templates"]
# Docstrings put the names of arguments and classes in single backquotes.
default_role = "code"
# Words in quotes are mostly values of arguments: they can be copied as they are shown.
smartquotes = False

autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autosummary_generate = True
autosummary_ignore_module_all = False
maximum_signature_line_length = 80
python_use_unqualified_type_names = True
numpydoc_show_class_members = False
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
# MathJax comes from an installed package. This one file of it has everything: no fonts are loaded.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = MATHJAX.name
intersphinx_mapping = inventories.write(HERE / "_build" / "inventories")
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"stickbreak {release}"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

# Pages of the gallery whose data are not there are shown without being run; each names its data.
gallery_data.find()
os.environ.setdefault("TQDM_DISABLE", "1")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": gallery_data.runnable(HERE / "gallery"),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "remove_config_comments": True,
    "reference_url": {"stickbreak": None},
    "image_scrapers": ("matplotlib",),
    "write_computation_times": False,
}

# Made by stickbreak, not by users: their pages show no arguments.
RESULTS = {
    "Clusters",
    "Density",
    "Fit",
    "Hierarchy",
    "Join",
    "LabelShare",
    "MoveReport",
    "Record",
    "Support",
    "TopicFit",
    "Trace",
}
# What signatures have written out: aliases of NumPy, options of checks, and the default process of a mixture.
BUFFER = r"~?(?:[\w.]*\.)?_Buffer \| .*?(?=_Nested).*?"
NESTED = r"~?(?:[\w.]*\.)?_NestedSequence\[complex \| bytes \| str\]"
ARRAY = r"~?numpy\.ndarray\[tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[([^\]]+)\]\]"
ALIASES = (
    (re.compile(BUFFER + NESTED), "~numpy.typing.ArrayLike"),
    (re.compile(ARRAY), r"~numpy.typing.NDArray[\1]"),
    (re.compile(r"~?typing\.Unpack\[([^\]]+)\]"), r"\1"),
    (re.compile("<factory>"), "DirichletProcess()"),
    (re.compile(r"type\[[^|]*\| ~?numpy\.dtype\[.*?_DTypeDict \| str"), "~numpy.typing.DTypeLike"),
)


# Tables of summaries show no marks of references, and functions with overloads the signature that serves all.
extract_summary = autosummary.extract_summary
autosummary.extract_summary = lambda *given: re.sub(r"\s*\[\w+-\d+\]_", "", extract_summary(*given))
analyze = ModuleAnalyzer.analyze


def analyze_without_overloads(self):
    """Read a module, and forget its overloads."""
    analyze(self)
    self.overloads = {}


ModuleAnalyzer.analyze = analyze_without_overloads


def shorten(text):
    """Name aliases in a signature or a type."""
    for written, alias in ALIASES:
        text = text and written.sub(alias, text)
    return text


# Types of properties do not pass the hook for signatures.
for name, module in list(sys.modules.items()):
    if name.startswith("sphinx.ext.autodoc") and hasattr(module, "stringify_annotation"):
        module.stringify_annotation = lambda *given, **options: shorten(stringify_annotation(*given, **options))


def process_signature(app, what, name, object_, options, signature, returns):
    """Leave out the arguments of results and warnings, and shorten those of others."""
    last = name.rpartition(".")[2]
    if what == "class" and (last in RESULTS or last.endswith("Warning")):
        return "", None
    return shorten(signature), shorten(returns)


def copy_mathjax(app, error):
    """Put MathJax beside the pages."""
    if error is None and app.builder.format == "html":
        shutil.copy(MATHJAX, Path(app.outdir) / "_static" / MATHJAX.name)


def setup(app):
    """Register the hooks above."""
    app.connect("autodoc-process-signature", process_signature)
    app.connect("build-finished", copy_mathjax)
