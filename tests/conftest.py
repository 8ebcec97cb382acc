"""What all tests share: fixtures, signals as in a terminal, and which cases `make test` runs."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test may load or compile a kernel: time says nothing here.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell starts `make test &` with SIGINT ignored, and a process started from here would inherit that: no Ctrl-C that
# a test sends would end it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Named:
    """Names a failure as it happens: a session that dies later has said what failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(f"FAILED at {report.when}: {report.nodeid}")


def pytest_configure(config: pytest.Config) -> None:
    """Name failures as they happen; under xdist the controller does."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(_Named(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave some cases of a test marked `some(n, but=ids)` in `make test` and mark the others as `more`.

    Cases with an id in `but` are dear; of the others n stay, spread evenly from the first to the last; without n, all.
    Tests marked `first` are the first to run.
    """
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("some") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for same in cases.values():
        mark = same[0].get_closest_marker("some")
        dear = [item for item in same if item.nodeid.partition("[")[2][:-1] in mark.kwargs.get("but", ())]
        cheap = [item for item in same if item not in dear]
        last = len(cheap) - 1
        kept = mark.args[0] if mark.args and mark.args[0] <= last else len(cheap)
        stay = {round(k * last / max(kept - 1, 1)) for k in range(kept)}
        for item in (*dear, *(item for k, item in enumerate(cheap) if k not in stay)):
            item.add_marker("more")
    # A test of half a minute that starts last leaves the other core without work.
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real traces: $LBOPT_SHARED, or `shared` beside the checkout.

    A test that needs it is skipped where there is none, and fails if LBOPT_REQUIRE_SHARED=1 says there must be one.
    """
    given = os.environ.get("LBOPT_SHARED")
    folder = Path(given) if given else Path(__file__).resolve().parents[1].parent / "shared"
    if not (folder / "data").is_dir():
        reason = f"no real traces in {folder}; set LBOPT_SHARED to the folder that holds data/"
        if os.environ.get("LBOPT_REQUIRE_SHARED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
