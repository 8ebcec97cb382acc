"""Lengths without times: ``{"data": [{"input_length": s, "output_length": o}, ...]}``.

The form in which the code of the BF-IO paper keeps its samples of BurstGPT and arXiv. Other fields are passed over.
"""

from __future__ import annotations

from array import array

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import listed, shown
from lbopt.instances.readers.contents import Contents
from lbopt.instances.readers.faults import RowFault
from lbopt.instances.readers.json_values import lengths, parse
from lbopt.instances.readers.rows import Rows


def read_lengths(contents: Contents, source: str, *, skip_malformed: bool) -> Rows:
    """Return the rows of a lengths file; `source` is its name in error messages, rows are counted from 0."""
    try:
        document = parse(b"".join(contents.blocks))
    except RowFault as fault:
        raise InputError(f"{source}: {fault}") from None
    records = document.get("data") if isinstance(document, dict) else None
    if not isinstance(records, list):
        found = f"the fields {listed(document)}" if isinstance(document, dict) else shown(document)
        raise InputError(f'{source} holds {found}; expected {{"data": [{{"input_length", "output_length"}}, ...]}}')
    prompt, output = array("q"), array("q")
    malformed = 0
    for index, record in enumerate(records):
        try:
            request, answer = lengths(record)
        except RowFault as fault:
            if not skip_malformed:
                raise InputError(f"{source}, data[{index}]: {fault}") from None
            malformed += 1
            continue
        prompt.append(request)
        output.append(answer)
    return Rows(
        prompt=np.array(prompt, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        arrival=None,
        malformed=malformed,
    )
