"""The fast reader of CSV never disagrees with the slow one, on mutated files least of all."""

import random

import numpy as np
import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.instances.readers.fast_csv import read_clean_csv
from lbopt.instances.readers.formats import TABLE, header_of, locate
from lbopt.instances.readers.rows import by_row, csv_rows
from tests.fuzz.mutators import mutated_text

TEXTS = {
    "azure 2023": texts.AZURE_2023,
    "azure 2024": texts.AZURE_2024,
    "burstgpt old": texts.BURSTGPT_OLD,
    "burstgpt new": texts.BURSTGPT_NEW,
}


def laid_out(data, key):
    """The layout of a file of one of the formats."""
    return locate(header_of(data, "f"), TABLE[key.split()[0]].columns, TABLE[key.split()[0]].clock, "f")


def slow(data, key):
    """The rows as the slow reader has them, or None where it refuses the file."""
    try:
        layout = laid_out(data, key)
        rows = csv_rows([data], layout, "f")
        return by_row(rows, layout.places, TABLE[key.split()[0]], "f", skip_malformed=False)
    except InputError:
        return None


@pytest.mark.some(2)
@pytest.mark.parametrize("key", ["azure 2023", "azure 2024", "burstgpt old", "burstgpt new"])
def test_fast_reader_accepts_only_what_the_slow_one_does(key):
    rng = random.Random(f"twin {key}")
    accepted = 0
    for _ in range(1500):
        raw = mutated_text(TEXTS[key], rng)
        try:
            data = raw.decode().encode()
            layout = laid_out(data, key)
        except (UnicodeDecodeError, InputError):
            continue
        if b"\0" in data:  # refused before either reader sees it
            continue
        fast = read_clean_csv([data], layout)
        if fast is None:
            continue
        accepted += 1
        twin = slow(data, key)
        assert twin is not None, data
        assert twin.malformed == 0
        np.testing.assert_array_equal(fast.prompt, twin.prompt, err_msg=repr(data))
        np.testing.assert_array_equal(fast.output, twin.output, err_msg=repr(data))
        np.testing.assert_array_equal(fast.arrival, twin.arrival, err_msg=repr(data))
    assert accepted > 50


@pytest.mark.parametrize("key", ["azure 2023", "azure 2024", "burstgpt old", "burstgpt new"])
def test_fast_reader_takes_clean_files(key):
    for text in (TEXTS[key], TEXTS[key].rstrip(), TEXTS[key].replace("\n", "\r\n")):
        data = text.encode()
        assert read_clean_csv([data], laid_out(data, key)) is not None


def test_fast_reader_in_small_pieces():
    """Where the file is cut into blocks must not show in what is read."""
    lines = [f"{i},ChatGPT,{i * 7},{i + 1},0,API log\n" for i in range(57)]
    lines = [texts.BURSTGPT_OLD.split("\n")[0] + "\n", *lines, "\n", "  \n"]
    data = "".join(lines).encode()
    layout = laid_out(data, "burstgpt")
    twin = slow(data, "burstgpt")
    for size in (1, 2, 5, 56, 57, 1000):
        blocks = ["".join(lines[first : first + size]).encode() for first in range(0, len(lines), size)]
        fast = read_clean_csv(blocks, layout)
        np.testing.assert_array_equal(fast.prompt, twin.prompt)
        np.testing.assert_array_equal(fast.output, twin.output)
        np.testing.assert_array_equal(fast.arrival, twin.arrival)
        broken = [block.replace(b"40,ChatGPT,", b"40,") for block in blocks]
        assert read_clean_csv(broken, layout) is None
        marked = [block.replace(b"40,ChatGPT", b"\xef\xbb\xbf40,ChatGPT") for block in blocks]
        assert read_clean_csv(marked, layout) is None
