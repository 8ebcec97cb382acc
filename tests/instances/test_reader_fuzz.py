"""Mutated files: a trace or an InputError, nothing else; and the fast reader never disagrees with the slow one."""

import gzip
import random

import numpy as np
import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.instances.readers import Columns, azure, burstgpt, fast_csv, read_trace
from lbopt.instances.readers.csv_rows import read_csv_by_row
from lbopt.instances.readers.fast_csv import read_clean_csv
from lbopt.instances.readers.layout import header_of, locate

TEXTS = {
    "azure 2023": texts.AZURE_2023,
    "azure 2024": texts.AZURE_2024,
    "burstgpt old": texts.BURSTGPT_OLD,
    "burstgpt new": texts.BURSTGPT_NEW,
    "mooncake": texts.MOONCAKE,
    "lengths": texts.LENGTHS,
    "user": texts.USER_CSV,
}
MARKS = [*"\0,;\t\n\r\"'-+.eE_ #\\[]{}", "\r\n", ",,", "\n\n", '""', "[]", "{}", "1,2"]
UNUSUAL = ["\ufeff", "é", "\x1a", "\x0b", "\x0c", "\x85", "\u2028", "\x1f\x8b", "٣"]
NUMBERS = ["0", "00", "-1", "-0", "0.5", "12.0", "1e3", "1e15", "1e400", "0x1", "1_0", "9223372036854775808", "9" * 20]
WORDS = ["NaN", "nan", "inf", "True", "null", "None", "NaT", "now", "today", "2023", "2023-13-01", "2024-02-29"]
PIECES = MARKS + UNUSUAL + NUMBERS + WORDS


def mutated(text: str, rng: random.Random) -> bytes:
    data = text
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        a = rng.randrange(len(data) + 1)
        b = min(len(data), a + rng.choice((0, 0, 1, 2, 3, 10)))
        kind = rng.randrange(8)
        if kind < 4:
            data = data[:a] + rng.choice(PIECES) + data[b:]
        elif kind == 4:
            data = data[:a] + data[b:]
        elif kind == 5:
            data = data[:a] if rng.random() < 0.5 else data[a:]
        elif kind == 6:  # a whole field
            fields = data.split(",")
            fields[rng.randrange(len(fields))] = rng.choice(PIECES)
            data = ",".join(fields)
        else:
            lines = data.splitlines(keepends=True)
            data = "".join(rng.sample(lines, len(lines)))
        data = data or "x"
    raw = data.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        place = rng.randrange(len(raw))
        raw = raw[:place] + bytes([rng.randrange(256)]) + raw[place + 1 :]
    if rng.random() < 0.05:
        raw = gzip.compress(raw)
        raw = raw[: rng.randrange(1, len(raw) + 1)]
    return raw


@pytest.mark.parametrize("key", TEXTS)
def test_mutated_files(tmp_path, key):
    rng = random.Random(f"fuzz {key}")
    path = tmp_path / "f"
    columns = Columns("num_prefill_tokens", "num_decode_tokens", "arrived_at") if key == "user" else None
    outcomes = {"trace": 0, "error": 0}
    for _ in range(400):
        raw = mutated(TEXTS[key], rng)
        path.write_bytes(raw)
        kept = []
        for skip in (False, True):
            try:
                kept.append(read_trace(path, columns=columns, skip_malformed=skip))
                outcomes["trace"] += 1
            except InputError as error:
                outcomes["error"] += 1
                assert str(path) in str(error), raw
                assert "\n" not in str(error), raw
                assert len(str(error)) < 1000, raw
                kept.append(None)
        if kept[0] is not None:  # a file without fault reads the same when faults may be skipped
            assert kept[1] is not None, raw
            assert kept[0].digest == kept[1].digest, raw
    assert min(outcomes.values()) > 50, outcomes


def slow(data, layout):
    """The rows as the slow reader has them, or None where it refuses the file."""
    try:
        return read_csv_by_row(data, layout, "f", skip_malformed=False)
    except InputError:
        return None


@pytest.mark.parametrize("key", ["azure 2023", "azure 2024", "burstgpt old", "burstgpt new"])
def test_fast_reader_accepts_only_what_the_slow_one_does(key):
    columns, clock = (azure.COLUMNS, "date-time") if "azure" in key else (burstgpt.COLUMNS, "seconds")
    rng = random.Random(f"twin {key}")
    accepted = 0
    for _ in range(1500):
        raw = mutated(TEXTS[key], rng)
        try:
            data = raw.decode().encode()
            layout = locate(header_of(data, "f"), columns, clock, "f")
        except (UnicodeDecodeError, InputError):
            continue
        if b"\0" in data:  # refused before either reader sees it
            continue
        fast = read_clean_csv(data, layout)
        if fast is None:
            continue
        accepted += 1
        twin = slow(data, layout)
        assert twin is not None, data
        assert twin.malformed == 0
        np.testing.assert_array_equal(fast.prompt, twin.prompt, err_msg=repr(data))
        np.testing.assert_array_equal(fast.output, twin.output, err_msg=repr(data))
        np.testing.assert_array_equal(fast.arrival, twin.arrival, err_msg=repr(data))
    assert accepted > 50


@pytest.mark.parametrize("key", ["azure 2023", "azure 2024", "burstgpt old", "burstgpt new"])
def test_fast_reader_takes_clean_files(key):
    columns, clock = (azure.COLUMNS, "date-time") if "azure" in key else (burstgpt.COLUMNS, "seconds")
    for text in (TEXTS[key], TEXTS[key].rstrip(), TEXTS[key].replace("\n", "\r\n")):
        data = text.encode()
        assert read_clean_csv(data, locate(header_of(data, "f"), columns, clock, "f")) is not None


def test_fast_reader_in_small_pieces(monkeypatch):
    """Neither the chunks of rows nor the blocks of bytes may show in what is read."""
    rows = "".join(f"{i},ChatGPT,{i * 7},{i + 1},0,API log\n" for i in range(57))
    data = (texts.BURSTGPT_OLD.split("\n")[0] + "\n" + rows).encode()
    layout = locate(header_of(data, "f"), burstgpt.COLUMNS, "seconds", "f")
    twin = slow(data, layout)
    for size in (1, 2, 5, 56, 57, 1000):
        monkeypatch.setattr(fast_csv, "_CHUNK_ROWS", size)
        monkeypatch.setattr(fast_csv, "_BLOCK_BYTES", 3 * size)
        fast = read_clean_csv(data, layout)
        np.testing.assert_array_equal(fast.prompt, twin.prompt)
        np.testing.assert_array_equal(fast.output, twin.output)
        np.testing.assert_array_equal(fast.arrival, twin.arrival)
        assert read_clean_csv(data.replace(b"40,ChatGPT,", b"40,"), layout) is None
