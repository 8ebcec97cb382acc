"""Columns of a Parquet file as Python values, read where the file is as large as it claims to be.

A file of a few bytes may claim a thousand million rows, since runs of equal values are stored as their number. Rows and
columns are counted before they are read, and texts are read as a dictionary, so that equal ones take their room once.
"""

from __future__ import annotations

import os
import re
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files.blocks import most_unpacked
from lbopt.files.regular import called, opened, repeated, shown

#: Bytes of a Parquet file, and of its columns before compression.
LARGEST_PARQUET = 8 * 2**30

#: Entries, rows times columns, that any file may have, and those that each of its bytes may stand for.
_HARMLESS_CELLS = 2_000_000
_CELLS_PER_BYTE = 8

#: Columns under which pandas keeps an index without a name.
_INDEX = re.compile(r"__index_level_\d+__")


def parquet_columns(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Return the columns of a Parquet file by name, each a list of Python values with None where nothing is.

    Raises
    ------
    InputError
        Where pyarrow is not installed; the file cannot be read, is damaged or has two columns of one name; or it would
        grow beyond `most_unpacked`.
    """
    name = called(path)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            f"{name} is a Parquet file, and pyarrow is not installed; pip install 'lbopt[parquet]', or write it as CSV"
        ) from None
    # Of Arrow's own errors some are no ValueError; a damaged file may also ask for memory that no machine has.
    damage = (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError, RuntimeError, TypeError)
    with opened(path, name, largest=LARGEST_PARQUET) as stream:
        size = os.fstat(stream.fileno()).st_size
        try:
            with parquet.ParquetFile(stream) as file:
                schema, about = file.schema_arrow, file.metadata
                _refuse_growth(name, size, about)
            texts = [field.name for field in schema if pyarrow.types.is_string(field.type)]
            stream.seek(0)
            with parquet.ParquetFile(stream, read_dictionary=texts) as file:
                columns = {one: _values(file, one) for one in _names(name, schema)}
        except InputError:
            raise
        except damage as error:
            raise InputError(f"{name} is no Parquet file that can be read: {_first_line(error)}") from None
    if any(len(values) != about.num_rows for values in columns.values()):
        raise InputError(f"{name} is a damaged Parquet file: its columns have not {about.num_rows:,} rows each")
    return columns


def _refuse_growth(name: str, size: int, about: Any) -> None:
    rows, columns = about.num_rows, about.num_columns
    if rows < 0 or rows * columns > max(_HARMLESS_CELLS, _CELLS_PER_BYTE * size):
        raise InputError(f"{name} has {size:,} bytes and claims {rows:,} rows of {columns:,} columns; that is no log")
    groups = (about.row_group(place) for place in range(about.num_row_groups))
    total = sum(group.total_byte_size for group in groups)
    if total > (most := most_unpacked(size, LARGEST_PARQUET)):
        raise InputError(f"{name} would unpack from {size:,} to {total:,} bytes; expected at most {most:,}")


def _names(name: str, schema: Any) -> list[str]:
    names = [one for one in schema.names if not _INDEX.fullmatch(one)]
    twice = repeated(names)
    if twice is not None:
        raise InputError(f"{name} has the column {shown(twice)} twice; every column needs a name of its own")
    return names


def _values(file: Any, column: str) -> list[Any]:
    values: list[Any] = []
    for chunk in file.read(columns=[column]).column(0).chunks:
        if hasattr(chunk, "dictionary"):
            chunk.validate(full=True)
            texts = chunk.dictionary.to_pylist()
            values += [None if code is None else texts[code] for code in chunk.indices.to_pylist()]
        else:
            values += chunk.to_pylist()
    return values


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
