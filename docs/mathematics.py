"""Formulas as SVG, drawn when the pages are built: they need neither a network nor fonts of the reader's machine."""

from __future__ import annotations

from html import escape
from typing import Any
from xml.etree import ElementTree

import ziamath
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

SIZE = 16  # pixels per em, so that formulas grow with the text around them


def drawn(latex: str, node: nodes.Element, inline: bool) -> str:
    """One formula; one that cannot be drawn is a warning, and so an error of `make docs`."""
    try:
        formula = ziamath.Latex(latex.replace("{aligned}", "{align*}"), size=SIZE, color="currentColor", inline=inline)
        svg = formula.svgxml()
        below = formula.getyofst()
    except Exception as error:
        logger.warning("cannot draw %s: %r", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"
    for side in ("width", "height"):
        svg.set(side, f"{float(svg.get(side, '0')) / SIZE:.3f}em")
    svg.set("role", "img")
    svg.set("aria-label", latex)
    svg.set("style", f"vertical-align: {below / SIZE:.3f}em" if inline else "max-width: 100%")
    return ElementTree.tostring(svg, encoding="unicode")


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Within a line."""
    translator.body.append(drawn(node.astext(), node, inline=True))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """On lines of its own, with its number if it has one."""
    number = get_node_equation_number(translator, node) if node["number"] else None
    translator.body.append(translator.starttag(node, "div", CLASS="math formula"))
    translator.body.append(drawn(node.astext(), node, inline=False))
    if number:
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    ziamath.config.svg2 = False  # glyphs in place: those of two formulas on a page cannot get mixed up
    ziamath.config.precision = 2
    app.add_html_math_renderer("svg", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
