"""The one door for files from outside: everything that lbopt did not make in this process is read through it.

It reads regular files up to a size, unpacks compressed ones within a limit that is checked while they unpack, bounds
the depth of nesting and the length of numbers, and says what is wrong with a file in one `InputError`. What the values
mean is for the readers, which call it.
"""

from lbopt.files.blocks import TextBlocks, gunzipped, without_blank_end
from lbopt.files.json_text import JsonFault, json_lines, json_value, parse_json, parse_toml, read_json, read_toml
from lbopt.files.regular import (
    LARGEST_DOCUMENT,
    called,
    check_name,
    exists,
    listed,
    opened,
    printable,
    read_bytes,
    repeated,
    shown,
    starts_with,
)
from lbopt.files.text import CsvTable, csv_records, csv_table, line_of, not_by_commas, read_text, text_bytes

__all__ = [
    "LARGEST_DOCUMENT",
    "CsvTable",
    "JsonFault",
    "TextBlocks",
    "called",
    "check_name",
    "csv_records",
    "csv_table",
    "exists",
    "gunzipped",
    "json_lines",
    "json_value",
    "line_of",
    "listed",
    "not_by_commas",
    "opened",
    "parse_json",
    "parse_toml",
    "printable",
    "read_bytes",
    "read_json",
    "read_text",
    "read_toml",
    "repeated",
    "shown",
    "starts_with",
    "text_bytes",
    "without_blank_end",
]
