"""What a `Trace` shows: its requests, and how prompts and outputs are distributed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lbopt.model import Trace
from lbopt.report.figures import line_style
from lbopt.report.views.view import View


def requests(trace: Trace) -> pd.DataFrame:
    """Return one row per request in order of arrival: prompt and output tokens, arrival in seconds where known."""
    columns = {"prompt": trace.prompt, "output": trace.output}
    return pd.DataFrame(columns | ({} if trace.arrival is None else {"arrival": trace.arrival}))


def draw_lengths(trace: Trace, axes: Axes) -> None:
    """Draw the share of requests that are longer than so many tokens, for prompts and for outputs."""
    for index, (label, values) in enumerate((("prompt", trace.prompt), ("output", trace.output))):
        ascending = np.sort(values)
        longer = 1 - np.arange(ascending.size) / ascending.size
        axes.step(ascending, longer, where="post", label=label, **line_style(index))
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.set_xlabel("tokens")
    axes.set_ylabel("share of requests with at least so many")
    axes.set_title(f"{trace.name}: {len(trace):,} requests", fontsize=10)
    axes.legend(frameon=False)


VIEW: View[Trace] = View(tables={"requests": requests}, draw=draw_lengths)
