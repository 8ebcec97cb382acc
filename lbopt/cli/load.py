"""`lbopt load`: the requests of a trace, sent at their own times, and how long the answers took."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbopt.cli.carry_out import Told, conclude, target
from lbopt.cli.from_config import as_verb
from lbopt.cli.study_verb import OUT
from lbopt.serving.load.config import LoadConfig
from lbopt.studies.configuration import from_words

if TYPE_CHECKING:
    from lbopt.serving.load.result import LoadResult

_FORMAT = "lbopt-load 1"
_COLUMNS = ("number", "url", "intended", "sent", "first", "last", "end", "prompt_tokens", "tokens", "events", "error")


def _load(**given: Any) -> None:
    """Send the requests of a trace to an OpenAI-compatible server at their own times, and measure the answers.

    Latency counts from the time at which a request was to be sent. Ctrl-C ends the run with what was measured until
    then. With --out, writes requests.csv and run.json.

    Example: `lbopt load http://127.0.0.1:8000 --trace azure-like --requests 500 --rate 10`
    """
    from lbopt.cli.console import ProgressBar

    config, folder = from_words(LoadConfig, given), target(given["out"], _FORMAT)
    with ProgressBar() as bar:
        result = asyncio.run(_run(config, bar))
    from lbopt.serving.load.result import load_table

    written = folder if result.outcomes else None

    def told() -> Told:
        return Told(
            tables=[load_table({"measured": result})],
            written=f"requests: {written / 'requests.csv'}" if written else "",
            interrupted=result.interrupted,
            holds=bool(result.served),
        )

    conclude(written, lambda place: _write(result, place), told)


load = as_verb(_load, "load", _load.__doc__ or "", (LoadConfig,), {"out": OUT})


async def _run(config: LoadConfig, bar: Any) -> LoadResult:
    from lbopt.serving.load.generator import LoadRun
    from lbopt.serving.process import ended_by_signals

    run = LoadRun(config, lambda _ended, _of: bar.advance())
    bar.begin("requests", len(run.trace))
    with ended_by_signals(run.stop):
        return await run.run()


def _write(result: LoadResult, folder: Path) -> None:
    from lbopt.cli.console import command_line
    from lbopt.report.folder import write_whole

    def fill(place: Path) -> dict[str, Any]:
        with (place / "requests.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            for one in result.outcomes:
                writer.writerow(["" if (value := getattr(one, name)) is None else value for name in _COLUMNS])
        return {"command": command_line(), "config": result.config.describe(), "figures": result.figures()}

    write_whole(folder, _FORMAT, fill)
