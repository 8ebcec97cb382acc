"""Where requests come from: trace files, public traces fetched by name, and seeded families fitted to them.

Importing this package is cheap; pandas, SciPy and pooch are imported where a file is read, a trace is
described or fetched.
"""

from lbopt.instances.describe import Spread, TraceDescription, describe
from lbopt.instances.families import generate
from lbopt.instances.readers import Columns, Reading, read_trace
from lbopt.instances.router_log import RouterLog, read_router_log
from lbopt.instances.sources import CATALOGUE, Fetched, PublicTrace, fetch, open_reading, open_trace

__all__ = [
    "CATALOGUE",
    "Columns",
    "Fetched",
    "PublicTrace",
    "Reading",
    "RouterLog",
    "Spread",
    "TraceDescription",
    "describe",
    "fetch",
    "generate",
    "open_reading",
    "open_trace",
    "read_router_log",
    "read_trace",
]


def __dir__() -> list[str]:
    return sorted(__all__)
