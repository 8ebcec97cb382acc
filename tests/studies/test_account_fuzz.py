"""Damaged run.json files of every study: a configuration, or one sentence; never another error, never much work."""

import json
import random
from pathlib import Path

import pytest

from lbopt.exceptions import LbOptError
from lbopt.report.cost_sources import read_cost_source
from lbopt.report.folder import check_target
from lbopt.report.study_report import read_account

STORED = sorted((Path(__file__).resolve().parents[1] / "stored" / "runs").glob("*.json"))

#: What may stand in place of a value.
ODD = (
    *(None, True, False, 0, 1, -1, 2, 7.5, -0.5, 1e308, 10**30, 2**63, "", "x", "0", "jsq", "br-0:", ":", "/dev/zero"),
    *("/", "a\tb", "é", "mine.py:f", "replay:", "..", "x" * 5000, [], {}, [[]], [None], {"": {}}, ["x", 1], [1, 2, 3]),
)


def places(data, path=()):
    """Every place inside a document."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(draw, data):
    """Change one place: another value, gone, of another name, or a value from elsewhere in the document."""
    data = json.loads(json.dumps(data))
    *outer, last = draw.choice([place for place in places(data) if place[0] not in ("files", "platform")])
    inner = data
    for key in outer:
        inner = inner[key]
    how = draw.random()
    if how < 0.65:
        inner[last] = draw.choice(ODD)
    elif how < 0.75:
        del inner[last]
    elif how < 0.85 and isinstance(inner, dict):
        inner[draw.choice(("x", "", "format", "seed"))] = inner.pop(last)
    else:
        *outer, other = draw.choice(list(places(data)))
        value = data
        for key in (*outer, other):
            value = value[key]
        inner[last] = json.loads(json.dumps(value))
    return data


def garbled(draw, text):
    """Damage bytes."""
    content = bytearray(text.encode())
    for _ in range(draw.choice((1, 1, 3))):
        at = draw.randrange(len(content))
        how = draw.randrange(4)
        if how == 0:
            content[at] ^= 1 << draw.randrange(8)
        elif how == 1:
            del content[at : at + draw.choice((1, 10, 1000))]
        elif how == 2:
            content[at:at] = draw.choice((b"\0", b"\x1b[2J", b"[" * 5000, b"9" * 5000, b"\xff\xfe", b"NaN", b'"', b"{"))
        else:
            del content[at:]
        if not content:
            content = bytearray(b" ")
    return bytes(content)


def mutant(draw, text):
    if draw.random() < 0.3:
        return garbled(draw, text)
    data = json.loads(text)
    for _ in range(draw.choice((1, 1, 2, 4))):
        data = changed(draw, data)
    return json.dumps(data).encode()


def attack(folder, path, count, seed):
    draw, text, read = random.Random(f"{seed} {path.stem}"), path.read_text(), 0
    study = read_format(text)
    for _ in range(count):
        (folder / "run.json").write_bytes(mutant(draw, text))
        try:
            found, account = read_account(folder)
            found.config_of(account, "run.json")
            read += 1
        except LbOptError as error:
            told(error)
        if path.stem in ("gap", "gap-ahead", "simulation"):
            try:
                read_cost_source(folder, None)
            except LbOptError as error:
                told(error)
        try:
            check_target(folder, study)
        except LbOptError as error:
            told(error)
    return read


def read_format(text):
    return json.loads(text)["format"]


def told(error):
    assert str(error).isprintable()
    assert 0 < len(str(error)) <= 500


@pytest.mark.some(8)
@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_damaged_accounts(path, tmp_path):
    assert attack(tmp_path, path, 60, seed=30) < 60


@pytest.mark.slow
@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_many_damaged_accounts(path, tmp_path):
    """Some minutes in all."""
    assert attack(tmp_path, path, 2_000, seed=31) < 2_000
