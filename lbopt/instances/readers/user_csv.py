"""Any CSV file whose columns the user names.

Arrival is optional, in seconds or as date-times; the first row decides.
"""

from __future__ import annotations

from lbopt.instances.readers.contents import Contents
from lbopt.instances.readers.csv_rows import read_csv
from lbopt.instances.readers.layout import Clock, Columns, header_of, locate
from lbopt.instances.readers.rows import Rows


def read_user_csv(contents: Contents, source: str, *, columns: Columns, skip_malformed: bool) -> Rows:
    """Return the rows of a CSV file.

    Parameters
    ----------
    contents
        The file.
    source
        Name of the file in error messages.
    columns
        Names of the columns of prompt, output and arrival.
    skip_malformed
        Whether malformed rows are left out and counted.
    """
    clock: Clock = "seconds" if columns.arrival is None else "auto"
    layout = locate(header_of(contents.head, source), columns, clock, source)
    return read_csv(contents.blocks, layout, source, skip_malformed=skip_malformed)
