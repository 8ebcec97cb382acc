"""Faults on demand: what clients, other workers and metrics see of each of them."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from serving.fleet import ask, metrics_of, on_fleet, post, stream, text_of

from lbopt.exceptions import InputError
from lbopt.serving.mock.setting import make_fault, make_faults


async def inject(fleet, session, *lines):
    """Send faults to the admin."""
    async with session.post(fleet.addresses[-1].url + "/mock/faults", data="\n".join(lines)) as response:
        return response.status, await response.json()


def test_a_crash_resets_streams_refuses_connections_and_recovers_empty():
    async def use(fleet, session):
        both = [asyncio.create_task(stream(session, url, ask(100))) for url in fleet.urls]
        await asyncio.sleep(0.055)
        await inject(fleet, session, "crash:worker=0,for=2s")
        await asyncio.sleep(0.1)
        refused = await stream(session, fleet.urls[0], ask(3))
        dead, survivor = await asyncio.gather(*both)
        await asyncio.sleep(2)
        back = await stream(session, fleet.urls[0], ask(3))
        return dead, survivor, refused, back, fleet.state()

    dead, survivor, refused, back, state = on_fleet(use)
    assert (len(dead[0]), dead[1]) == (5, "ClientOSError") or (len(dead[0]), dead[1]) == (5, "ClientPayloadError")
    assert (len(survivor[0]), survivor[1]) == (100, "done")
    assert refused == ([], "ClientConnectorError")
    assert (len(back[0]), back[1]) == (3, "done")
    assert state["faults"] == ["0.055 s: crash:worker=0"]


def test_a_frozen_worker_holds_its_whole_group_at_the_barrier_and_answers_nothing():
    async def use(fleet, session):
        loop = asyncio.get_running_loop()
        both = [asyncio.create_task(stream(session, url, ask(10))) for url in fleet.urls[:2]]
        other = asyncio.create_task(stream(session, fleet.urls[2], ask(10)))
        asked = loop.time()
        await asyncio.sleep(0.025)
        async with session.get(fleet.urls[0] + "/health") as response:
            await response.read()
            waited = loop.time() - asked
        return [await task for task in (*both, other)], waited

    (first, second, other), waited = on_fleet(use, workers=4, groups=2, fault=("freeze:worker=0,at=15ms,for=1s",))
    assert [end for _, end in (first, second, other)] == ["done"] * 3
    assert [round(time, 6) for time, _ in first[0]][:4] == [0.01, 1.015, 1.025, 1.035]
    assert [time for time, _ in first[0]] == [time for time, _ in second[0]]
    assert round(other[0][-1][0], 6) == 0.1, "the other group goes on"
    assert round(waited, 6) == 1.015


def test_a_slow_worker_makes_the_steps_of_its_group_longer_for_a_while():
    async def use(fleet, session):
        return (await stream(session, fleet.urls[1], ask(6, "a b c d")))[0]

    law = "affine:fixed=0.01,per_token=0.001"
    plain = [time for time, _ in on_fleet(use, step_time=law)]
    slow = [time for time, _ in on_fleet(use, step_time=law, fault=("slow:worker=1,factor=3,at=0,for=30ms",))]
    gaps = [round((b - a) - (d - c), 9) for a, b, c, d in zip(slow, slow[1:], plain, plain[1:], strict=False)]
    assert gaps == [0.01, 0.0, 0.0, 0.0, 0.0], "the second step has 5 tokens at 2 ms more each"


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("reset", {"ClientOSError", "ClientPayloadError"}),
        ("half-close", {"ClientPayloadError"}),
        ("truncate", {"end"}),
    ],
)
def test_a_stream_breaks_after_so_many_events_and_the_next_one_is_whole(kind, ends):
    async def use(fleet, session):
        broken = await stream(session, fleet.urls[0], ask(10))
        whole = await stream(session, fleet.urls[0], ask(10))
        await asyncio.sleep(1)
        return broken, whole, await metrics_of(session, fleet.urls[0])

    (events, end), (rest, done), metrics = on_fleet(use, fault=(f"{kind}:worker=0,after=4",))
    assert end in ends
    assert len(events) <= 4 if kind == "reset" else len(events) == 4, "a reset may overtake what was sent before it"
    assert (len(rest), done) == (10, "done")
    assert metrics["vllm:num_requests_running", 0] == 0


def test_a_stalled_stream_stays_open_and_silent():
    async def use(fleet, session):
        seen = []

        async def read():
            async with session.post(fleet.urls[0] + "/v1/completions", json=ask(10, stream=True)) as response:
                while True:
                    seen.append(await response.content.readany())

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await read()
        await asyncio.sleep(1)
        return seen, fleet.state()["groups"][0]["workers"][0]["running"]

    seen, running = on_fleet(use, fault=("stall:worker=0,after=2",))
    assert len(seen) == 2
    assert running == 0


def test_a_reset_before_the_first_byte():
    async def use(fleet, session):
        return await stream(session, fleet.urls[0], ask(10)), await stream(session, fleet.urls[0], ask(2))

    (events, end), (_, done) = on_fleet(use, fault=("reset:worker=0,after=0",))
    assert (events, done) == ([], "done")
    assert end in ("ServerDisconnectedError", "ClientOSError")


def test_a_busy_endpoint_and_lost_metrics():
    async def use(fleet, session):
        url = fleet.urls[0]
        await asyncio.sleep(0.001)
        refused = await post(session, url, ask())
        found = []
        for _ in range(3):
            async with session.get(url + "/metrics") as response:
                found.append((response.status, "vllm:num_requests_running{" in await response.text()))
            await asyncio.sleep(1)
        await inject(fleet, session, "lost-metrics:worker=0,mode=hang")
        await asyncio.sleep(0.001)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30), session.get(url + "/metrics"):
                pass
        return refused, found, await post(session, url, ask())

    faults = ("busy:worker=0,for=1s", "lost-metrics:worker=0,for=1s", "lost-metrics:worker=0,at=1s,for=1s,mode=garbage")
    refused, found, served = on_fleet(use, fault=faults)
    assert refused[0] == 503 and served[0] == 200
    assert [status for status, _ in found] == [500, 200, 200]
    assert found[2][1]


def test_a_script_of_faults_and_what_is_wrong_with_one(tmp_path):
    script = tmp_path / "faults.txt"
    script.write_text("# first a crash\ncrash:worker=1,at=1s,for=1s\n\nslow:worker=0,factor=2,at=2s  # then this\n")

    async def use(fleet, session):
        await asyncio.sleep(5)
        wrong = [await inject(fleet, session, line) for line in ("crash:worker=9", "melt:worker=0", "slow:prefiller=0")]
        return fleet.state(), wrong

    state, wrong = on_fleet(use, fault=(f"@{script}",))
    assert state["faults"] == ["1.000 s: crash:worker=1", "2.000 s: slow:worker=0"]
    assert state["groups"][0]["workers"][0]["slow"] == 2.0
    assert [status for status, _ in wrong] == [400] * 3
    assert "the workers are 0 to 1" in wrong[0][1]["error"]
    for text, said in (
        ("crash", "meets nothing"),
        ("crash:worker=1,prefiller=1", "meets nothing"),
        ("melt:worker=1", "unknown fault 'melt'"),
        ("slow:worker=1,factor=0", "factor is 0"),
        ("slow:worker=1,factor=inf", "factor is inf"),
        ("slow:worker=1,factor=nan", "factor is nan"),
        ("reset:worker=1,after=-1", "after is -1"),
        ("lost-metrics:worker=1,mode=sad", "mode is 'sad'"),
        ("crash:worker=1,for=ever", "for is 'ever'"),
    ):
        with pytest.raises(InputError, match=said):
            make_fault(text)
    assert make_faults(["", "# nothing"]) == []


def test_two_hundred_faults_leave_no_request_without_an_end():
    """Whatever breaks, each of 300 streams ends, with its tokens or with an error; afterwards everything is free."""
    kinds = ("reset:worker={w},after=3", "half-close:worker={w},after=2", "truncate:worker={w},after=1")
    kinds += ("crash:worker={w},for=150ms", "freeze:worker={w},for=80ms", "slow:worker={w},factor=3,for=200ms")
    kinds += ("busy:worker={w},for=50ms", "stall:worker={w},after=5")
    faults = [f"{kinds[i % len(kinds)].format(w=i % 4)},at={i * 50}ms" for i in range(200)]

    async def use(fleet, session):
        async def one(number):
            await asyncio.sleep(number * 0.033)
            try:
                async with asyncio.timeout(20):
                    events, end = await stream(session, fleet.urls[number % 4], ask(30, f"prompt {number}"))
            except TimeoutError:
                return "timeout"
            return f"{end} {len(text_of(events).split())}"

        ends = await asyncio.gather(*(one(number) for number in range(300)))
        await asyncio.sleep(5)
        again = [await stream(session, url, ask(2)) for url in fleet.urls]
        return ends, again, fleet.state()

    ends, again, state = on_fleet(use, workers=4, slots=3, kv_capacity=20_000, fault=tuple(faults))
    served = sum(end == "done 30" for end in ends)
    assert len(ends) == 300 and 100 < served < 290
    assert len(state["faults"]) == 200
    assert len({end.split()[0] for end in ends}) >= 5
    for worker in state["groups"][0]["workers"]:
        assert (worker["running"], worker["waiting"], worker["blocks"]) == (0, 0, 0)
    assert any(end == "done" for _, end in again)


def test_an_answer_that_is_no_stream_is_reset_too():
    async def use(fleet, session):
        with pytest.raises(aiohttp.ClientError):
            await post(session, fleet.urls[0], ask(3))
        return await post(session, fleet.urls[0], ask(3))

    assert on_fleet(use, fault=("reset:worker=0,after=1",))[0] == 200
