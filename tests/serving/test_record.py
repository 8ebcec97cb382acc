"""The record: decisions and outcomes joined, censored ones marked, and read by the rest of lbopt."""

from __future__ import annotations

import asyncio
import csv
import json

import numpy as np
import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run, stream
from typer.testing import CliRunner

from lbopt.exceptions import InputError
from lbopt.instances import read_router_log
from lbopt.serving.record.seal import seal
from lbopt.serving.record.writer import CURRENT, DecisionRecord
from lbopt.studies.gap.states import read_states


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
    assert sealed.left_out["lines that are cut"] == 1
    with (tmp_path / "requests.csv").open() as stream_:
        running = [row for row in csv.DictReader(stream_) if row["status"] == "running"]
    assert len(running) == 11
    assert all(row["finish"] == row["output_tokens"] == "" for row in running)


def test_files_are_set_aside_and_the_oldest_forgotten(tmp_path):
    """Each begins with a head, so that it can be read alone."""

    class Plan:
        groups = ()

    record = DecisionRecord(str(tmp_path), {"lbopt": "x"}, Plan(), rotate_at=2000, kept=3)
    for number in range(200):
        record._append([{"kind": "outcome", "request": number, "ending": "finished", "pad": "x" * 50}])
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


def test_the_shadow_is_recorded_and_not_taken_for_the_router(tmp_path):
    """Its decisions are step problems of its own rule; no request counts twice."""
    served(tmp_path, shadow="jsq", policy="br-0")
    sealed = seal(str(tmp_path))
    assert sum(sealed.endings.values()) == 41
    behaviours = {state.behaviour for state in read_states(tmp_path / "steps.jsonl")}
    assert "br-0" in behaviours


def test_the_verb_seals(tmp_path):
    """`lbopt serve seal` says what it found."""
    from lbopt.cli import app

    served(tmp_path, count=5)
    done = CliRunner().invoke(app, ["serve", "seal", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "6 requests (1 cancelled, 5 finished)" in done.output
