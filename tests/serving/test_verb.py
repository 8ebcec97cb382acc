"""`lbopt serve` as a process: it listens, serves, ends on SIGTERM, and says in one sentence what is wrong."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from serving.engines import Engine, run, stream
from typer.testing import CliRunner

from lbopt.cli import app
from lbopt.serving.router.dispatcher import needs_compiler, rule_for
from lbopt.serving.router.fleet_file import GroupPlan, WorkerAddress
from lbopt.serving.router.options import RouterOptions

ROOT = Path(__file__).resolve().parents[2]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "dumb", **more}


def test_the_verb_serves_and_ends_on_sigterm(tmp_path):
    """It says where it listens, streams that run end first, and the exit code is 0."""

    async def check():
        engine = await Engine(tokens=40, delay=0.01).start()
        file = tmp_path / "fleet.toml"
        file.write_text(f'[[group]]\nmodel = "m"\nslots = 2\nworkers = ["{engine.url}"]\n')
        words = ["serve", "--fleet", str(file), "--port", "0", "--policy", "jsq-load", "--shadow", "round-robin"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lbopt", *words, "--set", "poll_seconds=0.1"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        try:
            first = (await process.stderr.readline()).decode()
            base = re.search(r"http://127\.0\.0\.1:\d+", first)[0]
            async with aiohttp.ClientSession() as client:
                for _ in range(500):
                    async with client.get(base + "/ready") as answer:
                        if answer.status == 200:
                            break
                    await asyncio.sleep(0.02)
                status = Path(f"/proc/{process.pid}/status")
                if status.exists():  # Linux; it imports neither Numba nor SciPy, and takes some 75 MiB
                    assert int(status.read_text().partition("VmRSS:")[2].split()[0]) < 110 * 1024
                task = asyncio.create_task(stream(client, base))
                while not engine.running:
                    await asyncio.sleep(0.01)
                process.send_signal(signal.SIGTERM)
                assert (await task)[1].endswith(b"[DONE]\n\n")
            output, _ = await process.communicate()
            assert process.returncode == 0
            assert "round-robin" in output.decode()
        finally:
            if process.returncode is None:
                process.kill()
            await engine.stop()

    run(check())


def test_rules_are_compiled_where_python_would_be_slow():
    """Few workers, decided on arrival by a rule that could be compiled, do without Numba."""

    def compiled(policy="auto", workers=16, **options):
        group = GroupPlan("g", "m", 8, tuple(WorkerAddress(str(n), "") for n in range(workers)))
        return needs_compiler([rule_for(policy, group, None)], [group], RouterOptions(**options))

    assert not compiled() and not compiled("jsq") and not compiled("br-0", 2)
    assert compiled(workers=17)
    assert compiled("bf-io")
    assert compiled(decide="step")
    assert compiled(max_waiting=5000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no fleet is named"),
        (["--fleet", "nowhere.toml"], "nowhere.toml"),
        (["--fleet", "{fleet}", "--policy", "nonsense"], "nonsense"),
        (["--fleet", "{fleet}", "--policy", "eldr"], "eldr:table=FILE"),
        (["--fleet", "{fleet}", "--policy", "domain"], "labels of requests"),
        (["--fleet", "{fleet}", "--policy", "eldr:table=no.npz"], "no.npz"),
        (["--fleet", "{fleet}", "--policy", "br-0:age_bound=3x"], "whole run"),
        (["--fleet", "{fleet}", "--policy", "br-h"], "--train-on"),
        (["--fleet", "{fleet}", "--set", "nonsense=1"], "nonsense"),
        (["--fleet", "{fleet}", "--tls-key", "key.pem"], "--tls-cert"),
        (["--fleet", "{fleet}", "--host", "203.0.113.7", "--port", "1"], "cannot listen"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_sentence(words, said, tmp_path, monkeypatch):
    """Before anything listens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", os.environ.get("NUMBA_DISABLE_JIT", "0"))  # the verb may switch it
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[group]]\nmodel = "m"\nslots = 2\nworkers = ["http://127.0.0.1:1"]\n')
    done = CliRunner().invoke(app, ["serve", *(word.format(fleet=fleet) for word in words)])
    assert done.exit_code != 0
    assert said in str(done.exception)
    assert type(done.exception).__name__ == "InputError"


def test_without_the_extra_the_verb_says_what_to_install():
    """Everything else works without it; `import lbopt` and other verbs never load it."""
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('aiohttp', 'msgspec', 'prometheus_client', 'uvloop')))\n"
        "import lbopt, lbopt.serving.rule, lbopt.serving.state, lbopt.serving.record\n"
        "sys.argv = ['lbopt', *sys.argv[1:]]\n"
        "from lbopt.__main__ import main\nmain()\n"
    )

    def call(*words):
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=False)

    done = call("serve", "--fleet", "x.toml")
    assert done.returncode == 2
    assert 'pip install "lbopt[serve]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert call("policies").returncode == 0
    assert call("serve", "--help").returncode == 0
