"""Sphinx configuration of the manual. Nothing is fetched from a network while it is built."""

from __future__ import annotations

import shutil
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

import lbopt

HERE = Path(__file__).resolve().parent

# The notebooks live in examples/ with their outputs; the manual shows copies of them and executes nothing.
copies = HERE / "examples"
shutil.rmtree(copies, ignore_errors=True)
copies.mkdir()
for notebook in sorted((HERE.parent / "examples").glob("*.ipynb")):
    shutil.copy(notebook, copies)

project = "lbopt"
author = "The lbopt authors"
copyright = "The lbopt authors"
version = release = lbopt.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints", "results/house.md", "results/checking.md"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 3

nb_execution_mode = "off"

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False

html_theme = "furo"
html_math_renderer = "mathml"  # browsers read it as it is; MathJax would be fetched when a page is opened
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_title = f"lbopt {release}"
html_show_sphinx = False
html_copy_source = False


def _math(translator, node):
    translator.body.append(convert(node.astext(), display="block" if isinstance(node, nodes.math_block) else "inline"))
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_math, None), (_math, None))
