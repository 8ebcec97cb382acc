"""No row is lost in silence: of a file with one damaged row, all rows are there or counted, or the file is refused."""

import json
import random

import pytest

from lbopt.exceptions import LbOptError
from lbopt.hardware.fit.read_rows import read_rows
from lbopt.instances.readers import Columns, read_trace
from lbopt.instances.router_log import read_router_log
from lbopt.policies.replay import load_replay
from lbopt.studies.gap.decisions import read_states
from tests.fuzz.formats import problem, spans
from tests.fuzz.mutators import NUMBERS, UNUSUAL, WORDS, changed_json
from tests.instances import logs, texts

ROWS = 40
COPIES = 150
PIECES = [*NUMBERS, *WORDS, *UNUSUAL, "", " ", "-", ",", '"', "'", ";", "x"]


def of_trace(path, **options):
    trace = read_trace(path, **options)
    return len(trace) + sum(trace.left_out.values())


def of_log(path):
    log = read_router_log(path)
    return log.ids.size + sum(log.left_out.values())


def repeated(text, count=ROWS):
    header, *rows = text.splitlines()
    return [header, *(rows[i % len(rows)] for i in range(count))]


def router_lines(count=ROWS):
    return logs.csv_text(logs.plain(logs.requests(count=count))).splitlines()


TEXT = {
    "azure": (lambda: repeated(texts.AZURE_2023), of_trace, {}),
    "azure, skipping": (lambda: repeated(texts.AZURE_2024), of_trace, {"skip_malformed": True}),
    "burstgpt": (lambda: repeated(texts.BURSTGPT_NEW), of_trace, {}),
    "burstgpt, skipping": (lambda: repeated(texts.BURSTGPT_OLD), of_trace, {"skip_malformed": True}),
    "own columns, skipping": (
        lambda: repeated("a,p,o,t\n1,5,6,0.5\n2,7,8,1.5\n"),
        of_trace,
        {"columns": Columns("p", "o", "t"), "skip_malformed": True},
    ),
    "replay": (lambda: repeated("worker,start_step\n0,0\n1,3\n"), lambda path: load_replay(path).worker.size, {}),
    "measurements": (
        lambda: ["spread_tokens,tpot_ms", *(f"{100 * i},{20 + i}" for i in range(ROWS))],
        lambda path: sum(one.y.size for one in read_rows(str(path)).groups),
        {},
    ),
    "router log": (router_lines, of_log, {}),
}


def damaged_line(line, rng):
    """A row with one or two pieces put in place of others; never a blank line, which is no row."""
    for _ in range(rng.choice((1, 1, 2))):
        a = rng.randrange(len(line) + 1)
        b = min(len(line), a + rng.choice((0, 1, 2, 5)))
        line = line[:a] + rng.choice(PIECES) + line[b:]
    return line if line.strip() else "x" + line


@pytest.mark.parametrize("key", TEXT)
def test_one_damaged_line(tmp_path, key):
    lines, count, options = TEXT[key]
    good = lines()
    rng = random.Random(f"rows {key}")
    path = tmp_path / "f.csv"
    whole = 0
    for _ in range(COPIES):
        place = rng.randrange(1, len(good))
        damaged = [*good[:place], damaged_line(good[place], rng), *good[place + 1 :]]
        path.unlink(missing_ok=True)
        path.write_text("\n".join(damaged) + "\n", encoding="utf-8", newline="")
        try:
            found = count(path, **options)
        except LbOptError:
            continue
        assert found == ROWS, damaged[place]
        whole += 1
    assert whole > 5


def state_lines():
    one = {"problem": problem().to_dict(), "step": 1}
    return [json.loads(json.dumps(one | {"step": i})) for i in range(ROWS)]


def mooncake_lines():
    rows = [json.loads(line) for line in texts.MOONCAKE.splitlines()]
    return [{**rows[i % len(rows)]} for i in range(ROWS)]


def router_records():
    return [json.loads(line) for line in logs.json_lines(logs.plain(logs.requests(count=ROWS))).splitlines()]


RECORDS = {
    "states": (state_lines, lambda path: len(read_states(path)), {}),
    "mooncake": (mooncake_lines, of_trace, {"unit": "ms"}),
    "mooncake, skipping": (mooncake_lines, of_trace, {"skip_malformed": True, "unit": "ms"}),
    "router log": (router_records, of_log, {}),
}


@pytest.mark.parametrize("key", RECORDS)
def test_one_damaged_record(tmp_path, key):
    records, count, options = RECORDS[key]
    good = records()
    rng = random.Random(f"records {key}")
    path = tmp_path / "f.jsonl"
    whole = 0
    for _ in range(COPIES):
        place = rng.randrange(len(good))
        damaged = [*good[:place], changed_json(good[place], rng), *good[place + 1 :]]
        path.unlink(missing_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in damaged))
        try:
            found = count(path, **options)
        except LbOptError:
            continue
        assert found == ROWS, damaged[place]
        whole += 1
    assert whole > 5


def test_one_damaged_span(tmp_path):
    """A span that is lost from its list is refused, or counted with the spans and groups that say no tokens."""
    good = json.loads(spans(logs.requests(count=ROWS)))
    rng = random.Random("spans")
    path = tmp_path / "f.json"
    whole = 0
    for _ in range(COPIES):
        damaged = json.loads(json.dumps(good))
        group = rng.choice(damaged["resourceSpans"])
        listed = group["scopeSpans"][0]["spans"]
        place = rng.randrange(len(listed))
        listed[place] = rng.choice((changed_json(listed[place], rng), None, 7, [], "x"))
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(damaged))
        try:
            found = of_log(path)
        except LbOptError:
            continue
        assert found == ROWS, listed[place]
        whole += 1
    assert whole > 5
