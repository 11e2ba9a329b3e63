"""Writes formulas as MathML when the site is built, so that pages need no script and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LOGGER = logging.getLogger(__name__)


def mathml(formula: str, display: str, node: nodes.Node) -> str:
    """Return a formula as MathML; warn and return it as code if it cannot be read."""
    try:
        return convert(formula.strip(), display=display)
    except Exception as error:
        LOGGER.warning("formula cannot be converted: %s: %s", error, formula, location=node)
        return f"<code>{nodes.unescape(formula)}</code>"


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    self.body.append(mathml(node.astext(), "inline", node))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is wider than the page."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block", node)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the writers."""
    app.registry.add_html_math_renderer("mathml", (visit_math, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
