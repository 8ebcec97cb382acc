"""A small router's log, written with changes, and read or refused."""

import numpy as np
import pytest
from instances.logs import EPOCH, csv_text, requests

from lbopt.exceptions import InputError
from lbopt.instances.router_log import read_router_log

DATA = requests()


def write(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(tmp_path, table, **options):
    return read_router_log(write(tmp_path, csv_text(table)), **options)


def refused(tmp_path, table, **options):
    with pytest.raises(InputError) as error:
        read(tmp_path, table, **options)
    assert "r7" not in str(error.value)
    return str(error.value)


def iso(seconds, suffix="Z"):
    return [str(np.datetime64(EPOCH * 1000 + round(1000 * t), "ms")) + suffix for t in seconds]


def cells(values, changes):
    """Texts of a column with some cells replaced."""
    texts = [str(value) for value in values]
    for place, text in changes.items():
        texts[place] = text
    return texts
