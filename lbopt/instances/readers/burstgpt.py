"""BurstGPT traces: ``Timestamp,[Session ID,Elapsed time,]Model,Request tokens,Response tokens,Total tokens,Log Type``.

Timestamp is in seconds, whole or not, from the start of the trace. A row with 0 response tokens is a failed request.
Source: github.com/HPMLL/BurstGPT (CC BY 4.0).
"""

from __future__ import annotations

from lbopt.instances.readers.contents import Contents
from lbopt.instances.readers.csv_rows import read_csv
from lbopt.instances.readers.layout import Columns, header_of, locate
from lbopt.instances.readers.rows import Rows

COLUMNS = Columns(prompt="Request tokens", output="Response tokens", arrival="Timestamp")


def read_burstgpt(contents: Contents, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows of a BurstGPT file, old columns or new; `source` is its name in error messages."""
    layout = locate(header_of(contents.head, source), COLUMNS, "seconds", source)
    return read_csv(contents.blocks, layout, source, skip_malformed=skip_malformed)
