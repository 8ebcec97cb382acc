"""The same code on a wall clock and real sockets: the fleet, the load generator, the command line, real clients."""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import aiohttp
import pytest
from serving.fleet import TEN_MS, ask, post, stream, text_of

from lbopt.serving.load.config import LoadConfig
from lbopt.serving.load.generator import run_load
from lbopt.serving.mock.fleet import mock_fleet

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
LBOPT = [sys.executable, "-m", "lbopt"]


def on_wall(use, **setting):
    """Run `use(fleet, session)` beside a fleet on loopback, for at most 30 s."""

    async def main():
        async with (
            asyncio.timeout(30),
            mock_fleet(**{"step_time": TEN_MS, "workers": 2, "slots": 4} | setting) as fleet,
            aiohttp.ClientSession() as session,
        ):
            return await use(fleet, session)

    return asyncio.run(main())


@pytest.mark.alone
def test_steps_follow_each_other_without_drift():
    """50 steps of 10 ms take 0.5 s, although each of them begins when a loop gets round to it."""

    async def use(fleet, session):
        begin = asyncio.get_running_loop().time()
        events, end = await stream(session, fleet.urls[0], ask(50))
        return events[-1][0] - begin, end, fleet.groups[0].seconds

    seconds, end, counted = on_wall(use)
    assert end == "done"
    assert counted == pytest.approx(0.5)
    assert 0.5 <= seconds < 0.75, "10 ms for the last one and what a busy machine is late by"


@pytest.mark.more
@pytest.mark.alone
def test_a_request_that_follows_at_once_joins_the_next_step_where_steps_settle():
    """With one slot and `settle`, a request that is sent when the slot becomes free runs in the very next step."""

    async def use(fleet, session):
        for _ in range(6):
            await stream(session, fleet.urls[0], ask(3))
        return fleet.groups[0].steps, fleet.groups[0].seconds

    steps, seconds = on_wall(use, workers=1, slots=1, step_time="affine:fixed=0.05,per_token=0", settle="40ms")
    assert (steps, round(seconds, 9)) == (18, 0.9)


def test_faults_on_real_sockets():
    async def use(fleet, session):
        admin = fleet.addresses[-1].url + "/mock/faults"
        async with session.post(admin, data="reset:worker=0,after=2\nhalf-close:worker=1,after=2") as response:
            assert await response.json() == {"planned": 2}
        await asyncio.sleep(0.05)
        broken = [await stream(session, url, ask(20)) for url in fleet.urls]
        async with session.post(admin, data="crash:worker=0,for=300ms") as response:
            await response.read()
        await asyncio.sleep(0.1)
        refused = await stream(session, fleet.urls[0], ask(2))
        await asyncio.sleep(0.5)
        return broken, refused, await stream(session, fleet.urls[0], ask(2))

    broken, refused, back = on_wall(use)
    assert broken[0][1] in ("ClientOSError", "ClientPayloadError") and broken[1][1] == "ClientPayloadError"
    assert len(broken[1][0]) == 2
    assert refused == ([], "ClientConnectorError")
    assert (len(back[0]), back[1]) == (2, "done")


def test_events_cut_in_pieces_and_joined_arrive_whole():
    async def use(fleet, session):
        return text_of((await stream(session, fleet.urls[0], ask(12)))[0])

    assert on_wall(use) == on_wall(use, wire="joined") == on_wall(use, wire="split")


@pytest.mark.alone
def test_load_over_real_sockets_measures_the_steps():
    """TPOT is the step of 10 ms; the lag is that of this machine."""

    async def use(fleet, session):
        config = LoadConfig(urls=tuple(fleet.urls), trace="burstgpt-like", requests=30, rate=60, seed=1, timeout="20s")
        return await run_load(config)

    run = on_wall(use, slots=64, step_time="affine:fixed=0.005,per_token=0")
    assert len(run.served) == 30
    assert run.tpot.mean() == pytest.approx(0.005, rel=0.2)
    assert run.lag.size > 30 and run.cpu_seconds > 0


def test_a_port_that_is_taken_is_one_sentence():
    from lbopt.exceptions import InputError

    async def use(fleet, session):
        port = fleet.decode_endpoints[0].port
        with pytest.raises(InputError, match="cannot listen at "):
            async with mock_fleet(workers=1, port=port):
                pass
        return await post(session, fleet.urls[0], ask(2))

    assert on_wall(use)[0] == 200


@pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="the package openai is not installed")
def test_the_openai_package_streams_chats_and_cancels():
    import openai

    async def use(fleet, session):
        client = openai.AsyncOpenAI(base_url=fleet.urls[0] + "/v1", api_key="none")
        made = await client.completions.create(
            model="deepseek-v3", prompt="one two", max_tokens=4, extra_body={"ignore_eos": True}, logprobs=1
        )
        chat = await client.chat.completions.create(
            model="deepseek-v3",
            messages=[{"role": "user", "content": "one two"}],
            max_tokens=4,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
        chunks = [chunk async for chunk in chat]
        endless = await client.completions.create(
            model="deepseek-v3", prompt="a", max_tokens=10_000, stream=True, extra_body={"ignore_eos": True}
        )
        async for _ in endless:
            break
        await endless.close()
        await asyncio.sleep(0.2)
        running = fleet.state()["groups"][0]["workers"][0]["running"]
        models = [model.id async for model in client.models.list()]
        await client.close()
        return made, chunks, running, models

    made, chunks, running, models = on_wall(use)
    assert len(made.choices[0].text.split()) == 4 and made.usage.completion_tokens == 4
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert len(text.split()) == 4 and chunks[-1].usage.total_tokens == 6
    assert running == 0
    assert models == ["deepseek-v3"]


def run_mock(*words):
    """Start `lbopt mock`; return the process and its decode addresses."""
    process = subprocess.Popen(
        [*LBOPT, "mock", *words], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    found = {"decode": [], "prefill": [], "admin": []}
    guard = threading.Timer(60, process.kill)  # ends the loop below, whatever happens
    guard.daemon = True
    guard.start()
    for line in process.stdout:
        if match := re.match(r"(decode|prefill|admin)\b.*?(http://\S+)", line):
            found[match[1]].append(match[2])
        if found["admin"]:
            return process, found
    raise AssertionError(process.stderr.read())


@pytest.mark.alone
def test_the_two_commands_and_ctrl_c(tmp_path):
    """A mock in one process, load in another; Ctrl-C ends either with what it has."""
    words = ("--workers", "2", "--slots", "16", "--step-time", TEN_MS, "--for", "50s", "--out", str(tmp_path / "steps"))
    process, addresses = run_mock(*words)
    try:
        load = [*LBOPT, "load", *addresses["decode"], "--requests", "12", "--rate", "40", "--out"]
        done = subprocess.run(
            [*load, str(tmp_path / "all")], env=ENVIRONMENT, capture_output=True, text=True, timeout=40, check=True
        )
        assert re.search(r"requests served +12 of 12 sent", done.stdout)
        if shutil.which("curl"):
            body = json.dumps(ask(3))
            url = addresses["decode"][0] + "/v1/completions"
            answer = subprocess.run(
                ["curl", "-sS", url, "-d", body], capture_output=True, check=True, timeout=20
            ).stdout
            assert json.loads(answer)["usage"]["completion_tokens"] == 3
        slow = subprocess.Popen(
            [
                *LBOPT,
                "load",
                *addresses["decode"],
                "--requests",
                "500",
                "--rate",
                "10",
                "--out",
                str(tmp_path / "part"),
            ],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(4)
        slow.send_signal(signal.SIGINT)
        out, err = slow.communicate(timeout=20)
        assert slow.returncode == 130, err
        assert "interrupted: tables and report cover" in err and "not waited for" in out
        part = json.loads((tmp_path / "part" / "run.json").read_text())
        assert part["figures"]["interrupted"] and 0 < part["figures"]["requests"]["sent"] < 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0, err
    finally:
        process.kill()
        process.communicate()
    with (tmp_path / "all" / "requests.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 and all(row["error"] == "" for row in rows)
    with (tmp_path / "steps" / "steps.csv").open() as file:
        steps = list(csv.DictReader(file))
    assert {float(step["seconds"]) for step in steps} == {0.01}
    assert sum(int(row["tokens"]) for row in rows) < sum(int(s["running_0"]) + int(s["running_1"]) for s in steps)


def test_without_the_extra_the_mock_says_what_to_install(type_in, monkeypatch):
    monkeypatch.setattr("lbopt.serving.process.find_spec", lambda name: None)
    code, out, heard = type_in("mock", "--workers", "2")
    assert (code, out) == (2, "")
    assert heard.strip() == (
        'error: `lbopt mock` needs aiohttp, msgspec, prometheus-client, which are absent: pip install "lbopt[serve]"'
    )


def test_the_packages_of_the_extra_are_imported_in_the_serving_room_alone_and_on_use():
    """Verbs load, and the load generator runs, without aiohttp."""
    code = (
        "import sys\nfrom lbopt.cli import VERBS\nfrom lbopt.cli.lazy import load\n"
        "for name, verb in VERBS.items():\n    load(name, verb.where)\n"
        "import lbopt.serving.load.generator, lbopt.serving.load.result\n"
        "print([name for name in ('aiohttp', 'msgspec', 'prometheus_client', 'uvloop') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
    importing = re.compile(r"^\s*(?:import|from) (?:aiohttp|msgspec|prometheus_client|uvloop)\b", re.MULTILINE)
    files = [path for path in (ROOT / "lbopt").rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert files and all("serving" in path.parts for path in files)


def test_wrong_words_are_one_sentence(type_in, tmp_path):
    for words, said in (
        (("mock", "--workers", "8", "--groups", "3"), "do not form 3 groups"),
        (("mock", "--fault", "crash:worker=99"), "the workers are 0 to 7"),
        (("mock", "--for", "soon"), "for is 'soon'"),
        (("load", "127.0.0.1"), "expected http://host:port"),
        (("load", "http://127.0.0.1:1", "-n", "3"), "cannot be reached"),
        (("load", "http://127.0.0.1:1", "--trace", "azur-like"), "azure-like"),
    ):
        code, _, heard = type_in(*words)
        assert code == 2, heard
        assert said in heard
        assert heard.count("\n") <= 2
