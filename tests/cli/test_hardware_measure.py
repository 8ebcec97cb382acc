"""`lbopt measure` as a terminal sees it."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
import tomllib

import pytest
from cli.terminal import environment
from hardware.fake_backend import FakeBackend, linear

SMALL = ("--backend", "numpy", "--attention", "qwen3-30b-a3b", "--least", 16, "--most", 256, "--points", 6)
# no more repetitions than it needs for one word: nothing is asserted about how long anything takes
QUICK = ("--target", 0.99, "--no-read", "-G", 2)


@pytest.fixture
def measure(type_in):
    return lambda *words: type_in("measure", *words)


@pytest.fixture
def fake(monkeypatch):
    """The command on a device whose law is known, with the device's own clock."""

    def install(backend):
        from lbopt.hardware import measure as room

        run = room.measure
        monkeypatch.setattr(room, "make_backend", lambda *_: backend)
        monkeypatch.setattr(room, "measure", lambda config, chosen, bar: run(config, chosen, bar, now=backend.now))

    return install


def test_from_end_to_end_on_this_processor(measure, here):
    code, shown, heard = measure(*SMALL, *QUICK, "--budget", 100, "-o", "out", "--name", "mine")
    assert code in (0, 1), heard  # a busy machine may show no slope, and says so
    assert "Attention in decode, one layer: numpy on cpu, float32" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert {"samples.csv", "measure.png", "measure.svg"} <= set(run["files"])
    assert ("card.toml" in run["files"]) == (code == 0)
    with (here / "out" / "samples.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["attention"] for row in rows} == {"qwen3-30b-a3b"}
    assert all(float(row["seconds_per_call"]) > 0 for row in rows)


@pytest.mark.more
def test_a_card_of_a_known_device(measure, fake, here):
    fake(FakeBackend(linear, noise=0.01))
    code, shown, heard = measure("--budget", 20, "--card", "my.toml")
    assert code == 0, heard
    for words in (
        "Is it linear in resident tokens?",
        "A barrier of 8 workers",
        "GB/s, plain read",
        "card: my.toml",
    ):
        assert words in shown
    card = tomllib.loads((here / "my.toml").read_text())
    assert card["origin"] == "measurement"
    assert [path.name for path in here.iterdir()] == ["my.toml"]
    code, shown, _ = measure("--budget", 20)  # named by its device
    assert (code, "card: fake-1.toml" in shown) == (0, True)
    code, _, _ = measure("--budget", 20, "--card", "my.toml", "-o", "out")  # a measured card may be replaced
    assert code == 0
    assert (here / "my.toml").read_text() == (here / "out" / "card.toml").read_text()


@pytest.mark.more
def test_a_forecast_comes_before_the_measurement_and_stands_beside_it(measure, fake, here):
    backend = FakeBackend(linear, noise=0.01)
    fake(backend)
    code, shown, heard = measure("--against", "h100", "--forecast-only")
    assert (code, backend.calls) == (0, 0), heard
    assert "Forecast by card h100" in shown
    assert list(here.iterdir()) == []
    code, shown, heard = measure("--against", "h100", "--budget", 20, "-o", "out")
    assert code == 0, heard
    assert shown.index("Forecast by card h100") < shown.index("Attention in decode") < shown.index("Card h100 against")
    with (here / "out" / "forecast.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["kind"] for row in rows} == {"attention", "read"}  # a host times no products unless it is told to


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--forecast-only",), "--forecast-only has no card to forecast by; name one with --against"),
        (("--against", "h1000"), "unknown device 'h1000': did you mean h100"),
        (("--model", "llama-3-70"), "unknown model 'llama-3-70': did you mean llama-3-70b"),
        (("--power-seconds", "-1"), "power_seconds is -1.0; expected seconds above 0"),
    ],
)
def test_wrong_words_are_one_sentence(measure, fake, here, words, said):
    fake(FakeBackend(linear))
    code, _, heard = measure(*words, "--products", "--budget", 20)
    assert code == 2
    assert said in heard
    assert list(here.iterdir()) == []


@pytest.mark.more
def test_no_slope_is_said_and_the_samples_are_kept(measure, fake, here):
    fake(FakeBackend(lambda batch, tokens: 1e-3, noise=0.2))
    code, _, heard = measure("--budget", 20, "-o", "out")
    assert code == 1
    assert "no card is written: the time per token cannot be distinguished from zero" in heard
    assert not (here / "out" / "card.toml").exists()
    assert (here / "out" / "samples.csv").exists()


@pytest.mark.more
def test_an_interrupted_measurement_leaves_what_it_has(measure, fake, here):
    fake(FakeBackend(linear, noise=0.01, interrupt_after=60_000))
    code, shown, heard = measure("--budget", 20, "--target", 1e-4, "-o", "out")
    assert code == 130
    assert "interrupted: tables and report cover what was done until then" in heard
    assert "deepseek-v3" in shown
    assert json.loads((here / "out" / "run.json").read_text())["interrupted"] is True
    assert tomllib.loads((here / "out" / "card.toml").read_text())["account"]["interrupted"] is True


@pytest.mark.more
def test_ctrl_c_in_a_real_process(tmp_path):
    """It leaves a file when it has begun to compute; what comes then is 130 and no traceback."""
    (tmp_path / "watched.py").write_text(
        "from pathlib import Path\n"
        "from lbopt.hardware.measure.numpy_backend import NumpyBackend\n"
        "clock = NumpyBackend.clock\n"
        "def watched(self, work):\n"
        "    seconds = clock(self, work)\n"
        "    with Path('there').open('a') as stream: stream.write('.')\n"
        "    return seconds\n"
        "NumpyBackend.clock = watched\n"
        "from lbopt.__main__ import main\n"
        "main()\n"
    )
    words = ("measure", *SMALL, "--no-read", "--target", 1e-6, "--budget", 500, "-o", "out")
    process = subprocess.Popen(
        [sys.executable, "watched.py", *map(str, words)],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        limit = time.monotonic() + 200
        while not (tmp_path / "there").exists() or (tmp_path / "there").stat().st_size < 400:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < limit
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert (tmp_path / "out" / "samples.csv").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--backend", "numpi"), "unknown backend 'numpi': did you mean numpy?"),
        (("--backend", "numpy", "--device", "cdua"), "unknown device 'cdua': known: cpu"),
        (("--backend", "numpy", "--dtype", "float16"), "dtype 'float16' is not one of backend numpy"),
        (("--attention", "deepseek"), "unknown attention 'deepseek': did you mean deepseek-v3"),
        (("--most", -1), "most is -1; expected a positive number of resident tokens"),
        (("--least", 0), "least is 0; expected a positive number of resident tokens"),
        (("-b", 0), "batch is 0; expected at least one request"),
        (("--budget", 0), "budget is 0.0; expected seconds above 0"),
        (("--backend", "numpy", "--no-read", "--budget", 1e-6), "the budget is too small"),
        (("--backend", "numpy", "--most", 10**12), "give a smaller --most"),
        (("--card", "missing/card.toml"), "card 'missing/card.toml' cannot be written: its folder does not exist"),
        (("--card", "card.json"), "card 'card.json' does not end in .toml"),
        (
            ("--name", "My Card"),
            "name 'My Card' is not one for a card; expected lower-case letters, digits and -: my-card",
        ),
        (("-o", "missing/out"), "output folder 'missing/out' cannot be made"),
    ],
)
def test_one_sentence(measure, here, words, said):
    code, shown, heard = measure(*words)
    assert (code, shown) == (2, "")
    assert said in heard
    assert "Traceback" not in heard
    assert list(here.iterdir()) == []


def test_torch_that_is_not_there(measure, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, heard = measure("--backend", "torch")
    assert code == 2
    assert "install 'lbopt[measure]', or take --backend numpy" in heard


def test_somebody_elses_file_is_not_replaced(measure, here):
    (here / "own.toml").write_text('origin = "documents"\n')
    code, _, heard = measure("--backend", "numpy", "--card", "own.toml")
    assert code == 2
    assert "card 'own.toml' exists and is not a card that was measured" in heard
    assert (here / "own.toml").read_text() == 'origin = "documents"\n'


@pytest.fixture
def torch_alone():
    """Torch with one thread: two that wait for each other on a busy machine take a hundred times as long."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(before)


def test_torch_on_this_processor(measure, here, torch_alone):
    words = ("--backend", "torch", "--device", "cpu", *SMALL[2:], *QUICK, "--budget", 30, "-o", "out")
    code, shown, heard = measure(*words)
    assert code in (0, 1), heard
    assert "torch on cpu, float32" in shown
    machine = json.loads((here / "out" / "run.json").read_text())["machine"]
    assert machine["torch"] == torch_alone.__version__
    assert machine["threads"] == "1"
