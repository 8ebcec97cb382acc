"""The record: decisions and outcomes joined, censored ones marked, and read by the rest of lbopt."""

from __future__ import annotations

import asyncio
import csv
import json
import time
from contextlib import contextmanager

import numpy as np
import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run, stream
from typer.testing import CliRunner

from lbopt.exceptions import InputError
from lbopt.instances import read_router_log
from lbopt.serving.record.seal import seal
from lbopt.serving.record.writer import CURRENT, DecisionRecord
from lbopt.studies.gap.decisions import read_states


def served(folder, count=40, **options):
    """Serve some requests with a record."""

    async def check():
        engines = [Engine(tokens=12, delay=0.002) for _ in range(2)]
        rng = np.random.default_rng(0)
        async with fleet(engines, slots=3, record=str(folder), **options) as (router, client, base):
            sizes = rng.integers(1, 900, count).tolist()
            await asyncio.gather(*(stream(client, base, prompt=[1] * size, max_tokens=3 + size % 9) for size in sizes))
            lost = asyncio.create_task(stream(client, base))
            await becomes(lambda: any(t.produced for t in router.fleet.live.values()))
            lost.cancel()
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_sealed_record_is_read_by_audit_and_gap(tmp_path):
    """Every request has a row with its times, and every decision a step problem with what was chosen."""
    served(tmp_path)
    sealed = seal(str(tmp_path), str(tmp_path / "out"))
    assert sealed.endings == {"finished": 40, "cancelled": 1}
    assert sealed.requests == 41
    log = read_router_log(tmp_path / "out" / "requests.csv")
    assert len(log.worker) == 41
    assert len(log.workers) == 2
    assert (log.start >= log.arrival).all()
    assert log.output.max() <= 12
    states = read_states(tmp_path / "out" / "steps.jsonl")
    assert len(states) == sealed.steps > 10
    assert all(state.behaviour == "auto" and state.chosen is not None for state in states)
    assert max(state.problem.num_requests for state in states) > 10
    assert json.loads((tmp_path / "out" / "sealed.json").read_text())["requests"] == 41


def test_what_has_no_ending_is_censored(tmp_path):
    """A record that was cut by a kill: placed requests without an outcome still count, a cut line is left out."""
    served(tmp_path)
    path = tmp_path / CURRENT
    rows = [
        line for line in path.read_text().splitlines() if '"kind":"outcome"' not in line or '"request":1' not in line
    ]
    path.write_text("\n".join(rows) + '\n{"kind":"outc')
    sealed = seal(str(tmp_path))
    assert sealed.endings["censored"] == 11  # 1 and 10 to 19
    assert sealed.left_out["lines that cannot be read"] == 1
    with (tmp_path / "requests.csv").open() as stream_:
        running = [row for row in csv.DictReader(stream_) if row["status"] == "running"]
    assert len(running) == 11
    assert all(row["finish"] == row["output_tokens"] == "" for row in running)


def test_files_are_set_aside_and_the_oldest_forgotten(tmp_path):
    """Each begins with a head, so that it can be read alone."""
    record = DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan(), rotate_at=2000, kept=3)
    for number in range(200):
        record._append([outcome(number)])
    names = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    assert len(names) == 4
    assert names[-1] == CURRENT
    with pytest.raises(InputError, match="another router writes to it"):
        DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan())
    asyncio.run(record.close())
    asyncio.run(DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan()).close())
    assert not list(tmp_path.glob("*lock*"))
    for path in tmp_path.iterdir():
        assert json.loads(path.read_text().split("\n", 1)[0])["format"] == "lbopt-decisions"
        assert path.stat().st_size < 2500
        assert path.stat().st_mode & 0o077 == 0, "nobody else may read it"


class Plan:
    groups = ()


def outcome(number):
    return {"kind": "outcome", "request": number, "ending": "finished", "pad": "x" * 50}


@contextmanager
def room(path, more):
    """A disk on which a file may grow by so many bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def numbers(folder):
    """Whole rows of outcomes in all files, and the lines that are none."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return [row["request"] for row in rows if row["kind"] == "outcome"], len(lines) - len(rows)


@pytest.mark.parametrize("more", [0, 1, 60, 99, 250, 10_000])
def test_rows_that_a_full_disk_loses_are_counted_and_no_others(tmp_path, more):
    """Some of them were written before it was full; the next row begins a line of its own."""

    async def check():
        record = DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan())
        with room(tmp_path / CURRENT, more):
            record._rows = [outcome(number) for number in range(10)]
            await record._write_waiting()
        held, cut = numbers(tmp_path)
        assert held == list(range(10 - record.lost))
        assert cut == (0 < more < 10_000)
        record._note(outcome(10))
        await record.close()
        assert numbers(tmp_path) == ([*held, 10], cut)

    asyncio.run(check())


def test_a_file_that_cannot_be_set_aside_goes_on(tmp_path, caplog, monkeypatch):
    """Its rows are in it, so none is lost."""
    (tmp_path / "decisions-000001.jsonl").write_text("")
    (tmp_path / "decisions-000002.jsonl").mkdir()  # no file can take its place

    async def check():
        record = DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan(), rotate_at=500)
        for number in range(30):
            if number == 20:
                (tmp_path / "decisions-000002.jsonl").rmdir()
            record._note(outcome(number))
            await record._write_waiting()
        await record.close()
        assert record.lost == 0

    monkeypatch.setattr("lbopt.serving.record.writer._ASIDE", "decisions-000001.jsonl")
    asyncio.run(check())
    assert sorted(numbers(tmp_path)[0]) == list(range(30))
    assert "cannot be set aside" in caplog.text


def test_a_line_that_a_kill_has_cut_spoils_no_head(tmp_path):
    """The next life begins on a line of its own, so its requests are not taken for those of the last."""
    for cut in ("", '{"kind":"outc'):
        record = DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan())
        record._append([outcome(1)])
        record._lock.release()
        with (tmp_path / CURRENT).open("a") as stream:
            stream.write(cut)
    asyncio.run(DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan()).close())
    sealed = seal(str(tmp_path))
    assert sealed.endings == {"finished": 2}
    assert sealed.left_out == {"lines that cannot be read": 1, "requests that were never placed": 2}


def test_no_row_is_lost_or_written_twice_by_an_end_while_rows_are_written(tmp_path):
    """Two threads that set the file aside at once took each other's rows for lost."""

    async def check():
        record = DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan(), rotate_at=1)
        write, threads = record._write, []

        def slowly(rows):
            threads.append(len(rows))
            time.sleep(0.1)
            found = write(rows)
            threads.append(-len(rows))
            return found

        record._write = slowly
        record._note(outcome(0))
        while not threads:
            await asyncio.sleep(0.01)
        record._note(outcome(1))
        await record.close()
        assert threads == [1, -1, 1, -1]
        assert record.lost == 0

    asyncio.run(check())
    assert numbers(tmp_path) == ([0, 1], 0)


def test_what_is_no_record_is_refused(tmp_path):
    """An empty folder, another format; garbage between good rows is counted."""
    with pytest.raises(InputError, match="holds no decisions"):
        seal(str(tmp_path))
    path = tmp_path / CURRENT
    path.write_text('{"kind":"head","format":"other","version":1}\n')
    with pytest.raises(InputError, match="begins with format 'other'"):
        seal(str(tmp_path))
    head = '{"kind":"head","format":"lbopt-decisions","version":1,"began":1}\n'
    path.write_text(head + '[]\n{"kind":"decision"}\n{"kind":"decision","chosen":[9],"requests":[1]}\nnull\n')
    sealed = seal(str(tmp_path))
    assert sealed.left_out == {"lines of another kind": 2, "decisions that cannot be read": 2}


HEAD = {"kind": "head", "format": "lbopt-decisions", "version": 1, "began": 1, "prefixes": {"bytes": 512}}
DECISION = {"kind": "decision", "at": 5.5, "group": "g", "rule": "r", "step": 3, "workers": ["a", "b"]}
DECISION |= {"loads": [7, 8], "free": [1, 1], "running": [0, 0], "requests": [1, 2], "sizes": [5, 6]}
DECISION |= {"waited": [0, 0], "chosen": [0, -1]}
OUTCOME = {"kind": "outcome", "request": 1, "ending": "finished", "prompt": 5, "output": 9, "prompt_bytes": 2000}
OUTCOME |= {"arrival": 5.0, "pooled": 5.1, "start": 5.5, "first": None, "finish": 6.0, "prefix": ["a", "b"]}
HOSTILE = [
    10**20,
    10**390,
    -1,
    1.5,
    1e300,
    True,
    "x",
    "\x1b[2J",
    None,
    [1],
    {"a": 1},
    [10**30, 0],
    ["1", 2],
    [[1], [2]],
]


@pytest.mark.some(1)
@pytest.mark.parametrize("row", [DECISION, OUTCOME], ids=["decision", "outcome"])
def test_a_hostile_value_in_any_place_is_left_out_or_harmless(row, tmp_path):
    """Huge numbers, ids of mixed kinds, values inside values: one counted reason, and files that lbopt reads."""
    for name, value in [(name, value) for name in row if name != "kind" for value in HOSTILE]:
        rows = [HEAD, row | {name: value}, DECISION, OUTCOME, OUTCOME | {"request": 2}]
        (tmp_path / CURRENT).write_text("".join(json.dumps(line) + "\n" for line in rows))
        sealed = seal(str(tmp_path))
        reasons = {f"{row['kind']}s that cannot be read", "lines that cannot be read"}
        assert set(sealed.left_out) <= reasons | {"requests that were never placed"}
        assert set(sealed.endings) <= {"finished", "censored"}
        states = read_states(tmp_path / "steps.jsonl")
        log = read_router_log(tmp_path / "requests.csv")
        assert max(log.prompt.max(), *(state.problem.work.max() for state in states)) <= 2**40
        assert log.finish.max() <= 1e12


def test_the_shadow_is_recorded_and_not_taken_for_the_router(tmp_path):
    """Its decisions are step problems of its own rule; no request counts twice."""
    served(tmp_path, shadow="jsq", policy="br-0")
    sealed = seal(str(tmp_path))
    assert sum(sealed.endings.values()) == 41
    behaviours = {state.behaviour for state in read_states(tmp_path / "steps.jsonl")}
    assert "br-0" in behaviours


def test_the_verb_seals(tmp_path):
    """`lbopt export` says what it found."""
    from lbopt.cli import app

    served(tmp_path, count=5)
    done = CliRunner().invoke(app, ["export", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "6 requests (1 cancelled, 5 finished)" in done.output
