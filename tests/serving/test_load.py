"""The load generator: event parser, prompts, times, figures, errors by kind, and runs that repeat byte by byte."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.serving.load.client import BAD_ANSWER, TRUNCATED, Outcome, Reader, Response
from lbopt.serving.load.config import Bodies, LoadConfig
from lbopt.serving.load.generator import LoadRun, run_load
from lbopt.serving.load.result import LARGEST_LAG, LoadResult, load_table, percentile
from lbopt.serving.mock.fleet import mock_fleet
from lbopt.serving.mock.protocol import read_ask
from lbopt.serving.scrape import stream_events
from tools.virtual_clock import run_virtual


@given(st.lists(st.text("ab:\r\n", min_size=0, max_size=6), max_size=20))
def test_events_have_one_data_line_or_several_after_any_end_of_lines_and_comments_have_none(texts):
    blocks, expected = [], []
    for number, text in enumerate(texts):
        lines = text.replace("\r", "").split("\n")
        blocks.append("".join(f": remark\ndata: {line}\n" for line in lines) + "\n")
        expected.append("\n".join(lines))
        if number % 2:
            blocks[-1] = blocks[-1].replace("\n", "\r\n")
    stream = "".join(blocks).encode()
    assert [data.decode() for _, data in stream_events(stream)] == expected


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_an_event_has_the_time_of_the_piece_that_ends_it(cuts):
    stream = b"".join(
        b'data: {"choices":[{"text":"%d"}]}%b' % (number, (b"\n\n", b"\r\n\r\n")[number % 2]) for number in range(4)
    )
    ends = [*np.minimum(np.cumsum(cuts), len(stream)).tolist(), len(stream)]
    reader, outcome, response = Reader(0.0), Outcome(0, "http://x", 0.0), Response(200, "text/event-stream")
    response.pieces = [
        (float(place), stream[begin:end]) for place, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))
    ]
    reader.put(outcome, response)
    reader.finish()
    of_event = [next(place for place, end in enumerate(ends) if end >= at) for at, _ in stream_events(stream)]
    assert (outcome.first, outcome.last, outcome.tokens) == (of_event[0], of_event[-1], 4)
    assert outcome.error == TRUNCATED  # no [DONE] has come


def test_a_line_end_that_may_be_half_of_one_ends_no_event():
    assert list(stream_events(b"data: a\r\n\r")) == []
    assert [data for _, data in stream_events(b"data: a\r\n\r\ndata:b\n\n")] == [b"a", b"b"]


@pytest.mark.parametrize("count", [10**30, -1, "7", 1.5, None, [1]])
def test_an_answer_that_counts_what_cannot_be_is_a_bad_one(count):
    """So is one that is nested beyond Python's stack: the others are read all the same."""
    for body in (
        b'data: {"usage": %b}\n\n' % json.dumps({"completion_tokens": count, "prompt_tokens": 3}).encode(),
        b"data: " + b"[" * 100_000 + b"\n\n",
    ):
        reader, outcome, response = Reader(0.0), Outcome(0, "http://x", 0.0), Response()
        response.status, response.content_type = 200, "text/event-stream"
        response.pieces = [(1.0, body)]
        reader.put(outcome, response)
        reader.finish()
        assert outcome.error == BAD_ANSWER


def test_prompts_have_the_traces_lengths_and_differ():
    trace = Trace(prompt=[1, 40, 40, 3000, 0], output=[3, 1, 2, 7, 1])
    asks = []
    for chat in (False, True):
        bodies = Bodies(trace, LoadConfig(urls=("http://x",), seed=5, chat=chat), "some model")
        asks.append([read_ask(bodies.of(i), chat, "", 10_000) for i in range(5)])
        assert bodies.of(3) == Bodies(trace, LoadConfig(urls=("http://x",), seed=5, chat=chat), "some model").of(3)
    for found in asks:
        assert [one.prompt_tokens for one in found] == [1, 40, 40, 3000, 1]
        assert [one.limit for one in found] == [3, 1, 2, 7, 1]
        assert all(one.ignore_end and one.stream and one.usage_always and one.model == "some model" for one in found)
        assert len({one.digest for one in found}) == 5


def test_times_keep_their_pattern_at_any_rate():
    trace = Trace(prompt=[1] * 5, output=[1] * 5, arrival=[0, 1, 1, 5, 10])
    assert LoadConfig(urls=("http://x",)).times(trace).tolist() == [0, 1, 1, 5, 10]
    assert LoadConfig(urls=("http://x",), rate=4).times(trace).tolist() == [0, 0.1, 0.1, 0.5, 1.0]
    timeless = Trace(prompt=[1] * 4000, output=[1] * 4000)
    times = LoadConfig(urls=("http://x",), rate=8, seed=2).times(timeless)
    assert times[0] == 0 and abs(times[-1] - 500) < 25
    with pytest.raises(InputError, match="give --rate"):
        LoadConfig(urls=("http://x",)).times(timeless)
    with pytest.raises(InputError, match="all at once"):
        LoadConfig(urls=("http://x",), rate=8).times(Trace(prompt=[1, 1], output=[1, 1], arrival=[0, 0]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"urls": ()}, "nowhere to send"),
        ({"urls": ("localhost:80",)}, "the server has the address 'localhost:80'"),
        ({"rate": 0.0}, "rate is 0"),
        ({"requests": 0}, "expected at least 1"),
        ({"timeout": "0s"}, "more than 0 seconds"),
        ({"named": ("a",)}, "column .a. is not understood"),
    ],
)
def test_a_configuration_that_cannot_run_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        LoadConfig(**{"urls": ("http://x",)} | options)


def result_of(outcomes, delays=(), **options):
    config = LoadConfig(urls=("http://x",), **options)
    return LoadResult(config, "made up", len(outcomes), tuple(outcomes), tuple(delays), 10.0, 1.0, False)


def test_figures_of_outcomes_that_are_known():
    """Three streams by hand: TTFT from the intended time, TPOT over the tokens after the first, errors left out."""
    outcomes = [
        Outcome(0, "u", 0.0, 0.001, 0.5, 2.5, 2.6, 7, 5, 5),
        Outcome(1, "u", 1.0, 1.002, 1.2, 1.2, 1.3, 7, 1, 1),
        Outcome(2, "u", 2.0, 2.0, 3.0, 4.0, 4.0, 7, 3, 2),
        Outcome(3, "u", 3.0, 3.0, None, None, 3.5, None, 0, 0, "connect"),
        Outcome(4, "u", 4.0, 4.0, None, None, 4.5, None, 0, 0, "status-503"),
        Outcome(5, "u", 4.0, 4.0, None, None, 4.6, None, 0, 0, "status-503"),
        Outcome(6, "u", 5.0, 5.0, None, None, 5.1, None, 0, 0, "unfinished"),
    ]
    run = result_of(outcomes)
    np.testing.assert_allclose(run.ttft, [0.5, 0.2, 1.0])
    np.testing.assert_allclose(run.tpot, [0.5, 0.5])
    np.testing.assert_allclose(run.e2e, [2.6, 0.3, 2.0])
    assert run.errors == {"status-503": 2, "connect": 1}
    assert run.unfinished == 1
    # until 5.0 s all 5 and 1 and 3 tokens have come: the last request was to be sent then
    assert run.tokens_per_second.value == 9 / 5.0
    assert run.tokens_per_second.interval is None
    assert run.whole_run_tokens_per_second == 9 / 4.0
    figures = run.figures()
    assert figures["requests"] == {
        "planned": 7,
        "sent": 7,
        "served": 3,
        "unfinished": 1,
        "errors": {"status-503": 2, "connect": 1},
    }
    assert figures["ttft_seconds"]["p50"] == {"value": 0.5, "interval": None}
    shown = {row[0]: row[1] for row in load_table({"one": run}).rows}
    assert shown["errors"] == "2 status-503, 1 connect, 1 not waited for"


def test_the_warm_up_loads_the_server_and_is_not_measured():
    """From 1.5 s to 5 s: the stream of 0.5 to 2.5 s brings its last 2.5 tokens, that of 3 to 4 s all 3."""
    outcomes = [
        Outcome(0, "u", 0.0, 0.0, 0.5, 2.5, 2.6, 7, 5, 5),
        Outcome(1, "u", 2.0, 2.0, 3.0, 4.0, 4.0, 7, 3, 3),
        Outcome(2, "u", 5.0, 5.0, 6.0, 7.0, 7.0, 7, 3, 3),
    ]
    run = result_of(outcomes, warm_up="1500ms")
    np.testing.assert_allclose(run.ttft, [1.0, 1.0])
    assert len(run.served) == 3 and len(run.measured) == 2
    assert run.tokens_per_second.value == pytest.approx(5.5 / 3.5)
    assert run.whole_run_tokens_per_second == 11 / 7


def test_a_late_generator_makes_a_comparison_void():
    punctual = [Outcome(i, "u", float(i), i + 0.001, i + 1.0, i + 2.0, i + 2.0, 1, 2, 2) for i in range(200)]
    late = [Outcome(i, "u", float(i), i + 0.02 * (i % 20 == 0), i + 1.0, i + 2.0, i + 2.0, 1, 2, 2) for i in range(200)]
    assert result_of(punctual).comparable
    assert not result_of(late).comparable
    assert not result_of(punctual, delays=[10 * LARGEST_LAG] * 50).comparable
    caption = load_table({"a": result_of(punctual), "b": result_of(late)}).caption
    assert "not to be compared" in caption and caption.endswith("under b")
    assert "not to be compared" not in load_table({"a": result_of(punctual)}).caption


def test_intervals_by_batches_cover_the_percentile():
    """Over 300 draws of 4,000 independent values the intervals of P50 and P95 hold the true one in 89 to 99 %."""
    rng, held = np.random.default_rng(0), {50: 0, 95: 0}
    for _ in range(300):
        values = rng.exponential(1.0, 4000)
        for level in held:
            low, high = percentile(values, level).interval
            held[level] += low <= -np.log(1 - level / 100) <= high
    assert all(0.89 <= count / 300 <= 0.99 for count in held.values())
    assert percentile(rng.exponential(1.0, 400), 99).interval is None


def virtual_run(requests=60, rate=20.0, slots=8, workers=4, watched=None, **options):
    async def main():
        async with mock_fleet(workers=workers, slots=slots, **options.pop("fleet", {})) as fleet:
            config = LoadConfig(urls=tuple(fleet.urls), requests=requests, rate=rate, seed=3, **options)
            return await run_load(config), fleet.state()

    return run_virtual(main(), watched)


def test_two_runs_are_the_same_bytes_at_the_same_times():
    """Everything that went over the wire, with its times; another seed is another run."""
    digests, results = [], []
    for seed_of_lengths in (200, 200, 100):
        sha, count = hashlib.sha256(), [0]

        def watch(when, address, by_client, data, sha=sha, count=count):
            sha.update(repr((when, address, by_client)).encode() + data)
            count[0] += 1

        options = {"ignore_eos": False, "fleet": {"lengths": f"geometric:mean={seed_of_lengths}"}}
        run, state = virtual_run(watched=watch, **options)
        digests.append((sha.hexdigest(), count[0]))
        results.append((run.outcomes, state))
    assert digests[0] == digests[1] != digests[2]
    assert results[0] == results[1] != results[2]
    assert digests[0][1] > 1000


RECORDED = """
import hashlib, sys
from lbopt.serving.load.config import LoadConfig
from lbopt.serving.load.generator import run_load
from lbopt.serving.mock.fleet import mock_fleet
from tools.virtual_clock import run_virtual
sha = hashlib.sha256()
async def main():
    faults = ("crash:worker=1,at=1s,for=1s", "freeze:worker=2,at=2s,for=1s", "reset:worker=3,after=2")
    async with mock_fleet(workers=4, slots=8, fault=faults) as fleet:
        return await run_load(LoadConfig(urls=tuple(fleet.urls), requests=60, rate=20, seed=5, timeout="100s"))
result = run_virtual(main(), lambda *delivery: sha.update(repr(delivery).encode()))
print(sha.hexdigest(), result.errors)
"""


@pytest.mark.more
def test_a_run_does_not_depend_on_its_process():
    """Faults included, two processes with other hashes of texts record the same bytes at the same times."""
    root = str(Path(__file__).resolve().parents[2])
    found = []
    for seed in "01":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        words = [sys.executable, "-c", RECORDED]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
        found.append(done.stdout)
    assert found[0] == found[1]
    assert "reset" in found[0] and "connect" in found[0]


@pytest.mark.more
def test_an_hour_of_eight_workers_is_not_waited_for():
    run, state = virtual_run(requests=300, rate=300 / 3600, workers=8, slots=72, fleet={"chunk_tokens": 16})
    assert run.seconds > 3500
    assert len(run.served) == 300
    assert state["groups"][0]["steps"] > 40_000


def test_chats_and_answers_without_streams_are_measured_too():
    chat, _ = virtual_run(requests=20, chat=True)
    plain, _ = virtual_run(requests=20)
    whole, _ = virtual_run(requests=20, stream=False)
    assert len(chat.served) == len(whole.served) == 20
    assert np.array_equal(chat.e2e, plain.e2e) and np.array_equal(whole.e2e, plain.e2e)
    assert whole.ttft.size == 0
    assert sum(one.tokens for one in chat.served) == sum(one.tokens for one in whole.served)


@pytest.mark.parametrize("continuous", [True, False])
def test_tokens_are_counted_right_where_events_carry_several(continuous):
    run, state = virtual_run(requests=20, continuous_usage=continuous, fleet={"chunk_tokens": 8})
    made = sum(worker["made_tokens"] for worker in state["groups"][0]["workers"])
    assert sum(one.tokens for one in run.served) == made
    assert sum(one.events for one in run.served) < made / 4


def test_latency_counts_from_the_intended_time_where_the_server_stalls():
    """A fleet that is frozen for 5 s: requests that fall into it show the rest of the stall."""
    plain, _ = virtual_run(requests=100, rate=20, slots=64)
    stalled, _ = virtual_run(requests=100, rate=20, slots=64, fleet={"fault": ("freeze:worker=0,at=1s,for=5s",)})
    assert len(stalled.served) == 100
    waiting = [one.intended for one in stalled.served if 1.5 < one.intended < 4]
    late = [one.first - one.intended for one in stalled.served if 1.5 < one.intended < 4]
    assert len(waiting) > 20
    assert all(first > 6 - when for first, when in zip(late, waiting, strict=True))
    assert plain.ttft.max() < 1


def test_errors_are_told_apart_by_kind():
    faults = ("crash:worker=0,at=1s,for=2s", "busy:worker=1,at=1s,for=1s", "truncate:worker=2,after=2,count=5")
    faults += ("reset:worker=3,after=2,count=4", "stall:worker=2,at=3s,after=1,count=2")
    run, _ = virtual_run(requests=200, rate=40, slots=64, timeout="300s", fleet={"fault": faults})
    errors = dict(run.errors)
    assert errors["status-503"] > 2 and errors["connect"] > 5 and errors["timeout"] == 2
    assert errors["truncated"] == 5 and errors["reset"] > 4
    assert set(errors) == {"status-503", "connect", "timeout", "truncated", "reset"}
    assert len(run.served) + sum(errors.values()) == 200
    pre_empted, _ = virtual_run(
        requests=60, workers=1, slots=32, fleet={"kv_capacity": 14_000, "preempt": "stop", "watermark": 0.0}
    )
    assert pre_empted.errors["recomputed"] > 0


def test_a_run_that_is_stopped_returns_what_was_measured():
    async def main():
        async with mock_fleet(workers=2, slots=8) as fleet:
            run = LoadRun(LoadConfig(urls=tuple(fleet.urls), requests=100, rate=10, seed=1))
            asyncio.get_running_loop().call_later(5.0, run.stop)
            result = await run.run()
            await asyncio.sleep(1)
            return result, fleet.state()

    result, state = run_virtual(main())
    assert result.interrupted
    assert 40 < len(result.outcomes) < 60
    assert len(result.served) + result.unfinished == len(result.outcomes)
    assert len(result.served) > 3 and not result.errors
    assert [worker["running"] for worker in state["groups"][0]["workers"]] == [0, 0]


def test_a_server_that_is_not_there_or_lists_no_model():
    async def nobody():
        await run_load(LoadConfig(urls=("http://127.0.0.1:1",), requests=3))

    with pytest.raises(InputError, match="cannot be reached"):
        run_virtual(nobody())

    async def admin():
        async with mock_fleet(workers=1) as fleet:
            await run_load(LoadConfig(urls=(fleet.addresses[-1].url,), requests=3))

    with pytest.raises(InputError, match="status 404; give --model"):
        run_virtual(admin())
