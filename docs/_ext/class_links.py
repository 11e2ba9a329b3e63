"""Links the names of classes on the pages of the reference: in types of parameters and in words of code.

Docstrings put names in single backquotes and types after colons, without markup for links, so that they can be read
in a terminal. This extension finds the names of public classes, and of their members, and links them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

import stickbreak
import stickbreak.sklearn
import stickbreak.testing

# Words of types that name classes of other projects.
OTHERS = {
    "array_like": "numpy.typing.ArrayLike",
    "ndarray": "numpy.ndarray",
    "dtype": "numpy.typing.DTypeLike",
} | {
    name: name
    for name in (
        "matplotlib.axes.Axes",
        "numpy.random.Generator",
        "numpy.random.RandomState",
        "pandas.DataFrame",
        "scipy.sparse.csr_array",
        "sklearn.exceptions.ConvergenceWarning",
    )
}
WORD = re.compile(r"[A-Za-z_][\w.]*\w")
MODULES = (stickbreak, stickbreak.sklearn, stickbreak.testing)


def classes(page: str) -> dict[str, str]:
    """Return the full name of every class by the name that a page uses for it."""
    known: dict[str, str] = {}
    for module in MODULES:
        own = page.removeprefix("api/").rpartition(".")[0] == module.__name__
        for name in module.__all__:
            if name[0].isupper() and (own or name not in known):
                known[name] = f"{module.__name__}.{name}"
    return known


def target(word: str, known: dict[str, str]) -> str | None:
    """Return what a word of code names, if that is a class or a member of one, or has its full name."""
    if word.startswith("stickbreak."):
        return word
    name, dot, member = word.removesuffix("()").partition(".")
    return known[name] + dot + member if name in known else None


def reference(page: str, name: str, shown: nodes.Node) -> nodes.Node:
    """Return a link to a name, around what is shown."""
    return addnodes.pending_xref(
        "", shown, refdoc=page, refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=False
    )


def linked(page: str, text: str, known: dict[str, str]) -> Iterator[nodes.Node]:
    """Yield a type with links in place of its names."""
    end = 0
    for match in WORD.finditer(text):
        name = OTHERS.get(match[0]) or target(match[0], known)
        if name is not None:
            yield nodes.Text(text[end : match.start()])
            yield reference(page, name, nodes.inline("", match[0]))
            end = match.end()
    yield nodes.Text(text[end:])


def link(app: Sphinx, tree: nodes.document) -> None:
    """Link the names on a page of the reference."""
    page = app.env.docname
    if not page.startswith("api/"):
        return
    known = {name: full for name, full in classes(page).items() if full != page.removeprefix("api/")}
    for code in list(tree.findall(nodes.literal)):
        name = target(code.astext(), known)
        if name is not None and not isinstance(code.parent, addnodes.pending_xref):
            code.replace_self(reference(page, name, code.deepcopy()))
    for kind in (nodes.classifier, nodes.term):
        for words in list(tree.findall(kind)):
            for text in [child for child in words.children if isinstance(child, nodes.Text)]:
                words.replace(text, list(linked(page, text.astext(), known)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the links."""
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True}
