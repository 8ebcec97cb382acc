"""Which format a file has, recognised by its first line alone; its name is not used."""

from __future__ import annotations

from lbopt.exceptions import InputError
from lbopt.files import not_by_commas, shown
from lbopt.instances.readers import azure, burstgpt
from lbopt.instances.readers.faults import RowFault
from lbopt.instances.readers.json_values import parse
from lbopt.instances.readers.layout import Columns, header_of

KNOWN = "Azure CSV, BurstGPT CSV, Mooncake JSON lines, lengths JSON"


def detect(data: bytes, source: str) -> str:
    """Return "azure", "burstgpt", "mooncake" or "lengths"."""
    start = data[:65536].lstrip()
    if start.startswith(b"{"):
        return _detect_json(data)
    if start.startswith(b"["):
        raise InputError(f"{source} is a JSON list; expected one of {KNOWN} (conversations must be tokenised first)")
    header = header_of(data, source)
    for name, columns in (("azure", azure.COLUMNS), ("burstgpt", burstgpt.COLUMNS)):
        if _has(header, columns):
            return name
    if wrong := not_by_commas(header):
        raise InputError(f"{source}, line 1: {wrong}")
    raise InputError(
        f"{source}, line 1: {shown(','.join(header))} is the header of no known trace; expected one of {KNOWN}, "
        "or name the columns that hold prompt and output tokens"
    )


def _detect_json(data: bytes) -> str:
    """A complete object with a length on the first line is Mooncake; anything else is one document."""
    first = data.lstrip().split(b"\n", 1)[0][: 2**22]
    try:
        record = parse(first)
    except RowFault:
        return "mooncake" if b'"data"' not in first and b'"input_length"' in first else "lengths"
    return "lengths" if "data" in record or not ({"timestamp", "input_length"} & set(record)) else "mooncake"


def _has(header: tuple[str, ...], columns: Columns) -> bool:
    """Tokens columns decide; a file without its time column then fails with a message that says so."""
    return columns.prompt in header and columns.output in header
