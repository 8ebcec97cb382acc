"""Azure LLM inference traces: ``TIMESTAMP,ContextTokens,GeneratedTokens``.

The files of 2023 have times without a zone and seven digits of a second; those of 2024 end in ``+00:00``.
Source: github.com/Azure/AzurePublicDataset (CC BY).
"""

from __future__ import annotations

from lbopt.instances.readers.contents import Contents
from lbopt.instances.readers.csv_rows import read_csv
from lbopt.instances.readers.layout import Columns, header_of, locate
from lbopt.instances.readers.rows import Rows

COLUMNS = Columns(prompt="ContextTokens", output="GeneratedTokens", arrival="TIMESTAMP")


def read_azure(contents: Contents, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows of an Azure file; `source` is its name in error messages."""
    layout = locate(header_of(contents.head, source), COLUMNS, "date-time", source)
    return read_csv(contents.blocks, layout, source, skip_malformed=skip_malformed)
