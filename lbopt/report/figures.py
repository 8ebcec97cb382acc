"""What all pictures share: size, colours, and a figure that belongs to no window."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Okabe and Ito's palette, told apart by colour-blind readers too; beyond eight lines the dash changes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", ":", "-.")


def new_figure(width: float = 8.0, height: float = 4.5) -> tuple[Figure, Axes]:
    """Return a figure with one set of axes, drawn without a display."""
    with rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
    axes.grid(visible=True, alpha=0.25)
    return figure, axes


def png_of(figure: Figure) -> bytes:
    """Return the figure as PNG, without the name of the program in it: equal data give equal bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=130, metadata={"Software": None})
    return stream.getvalue()


def svg_of(figure: Figure, name: str) -> bytes:
    """Return the figure as SVG, without date and version in it; `name` is what its inner names are made from."""
    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def line_style(index: int) -> dict[str, Any]:
    """Return colour and dash of line number `index`."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index // len(COLOURS) % len(DASHES)]}
