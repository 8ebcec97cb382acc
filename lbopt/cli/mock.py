"""`lbopt mock`: a fleet of engines that compute nothing, for routers and load generators."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbopt.cli.carry_out import target
from lbopt.cli.from_config import as_verb, parameter
from lbopt.cli.study_verb import OUT
from lbopt.serving.mock.setting import MockSetting
from lbopt.spec import duration
from lbopt.studies.configuration import from_words

if TYPE_CHECKING:
    from lbopt.serving.mock.fleet import MockFleet, StepLog

_FORMAT = "lbopt-mock 1"

_Lasting = Annotated[str | None, typer.Option("--for", help="End after so long, such as 60s.", show_default="Ctrl-C")]


def _mock(**given: Any) -> None:
    """Run a fleet of mock engines: OpenAI's interface, vLLM's metrics, one barrier clock a group.

    Every decode worker has an endpoint of its own, or all of a group are ranks of one. A step lasts as long as the
    step-time law says of the loads at the barrier. Ctrl-C ends the fleet. With --out, writes steps.csv and run.json.

    Example: `lbopt mock --workers 8 --slots 72 --device h800 --model deepseek-v3 --port 9000`
    """
    from lbopt.serving.process import require_serving

    require_serving("lbopt mock")
    setting, folder = from_words(MockSetting, given), target(given["out"], _FORMAT)
    seconds = None if given["lasting"] is None else duration("for", given["lasting"])
    asyncio.run(_serve(setting, seconds, folder))


mock = as_verb(
    _mock, "mock", _mock.__doc__ or "", (MockSetting,), {"lasting": parameter("lasting", _Lasting, None), "out": OUT}
)


async def _serve(setting: MockSetting, seconds: float | None, folder: Path | None) -> None:
    from lbopt.cli.console import remark
    from lbopt.serving.mock.fleet import MockFleet, StepLog
    from lbopt.serving.process import ended_by_signals

    fleet, ended = MockFleet(setting), asyncio.Event()
    log = None if folder is None else StepLog(fleet)
    with ended_by_signals(ended.set):
        await fleet.start()
        try:
            _show(fleet)
            remark("the fleet runs; Ctrl-C ends it" if seconds is None else f"the fleet runs for {seconds:g} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), seconds)
        finally:
            await fleet.stop()
    if folder is not None and log is not None:
        _write(fleet, log, folder)


def _show(fleet: MockFleet) -> None:
    from lbopt.cli.console import print_table
    from lbopt.table import Table

    setting = fleet.setting
    rows = [(one.role, ", ".join(map(str, one.numbers)), one.url) for one in fleet.addresses]
    print_table(
        Table(
            title=f"{setting.workers} workers of {setting.slots} slots in {setting.groups} barrier group(s)",
            caption=f"model {setting.model_name}; step time {setting.law}",
            headers=("role", "numbers", "address"),
            rows=rows,
        )
    )


def _write(fleet: MockFleet, log: StepLog, folder: Path) -> None:
    from lbopt.cli.console import command_line, say
    from lbopt.report.folder import write_whole

    def fill(place: Path) -> dict[str, Any]:
        log.write(place / "steps.csv")
        setting = {name: getattr(fleet.setting, name) for name in fleet.setting.__slots__}
        return {"command": command_line(), "setting": setting, "state": fleet.state()}

    write_whole(folder, _FORMAT, fill)
    say(f"steps: {folder / 'steps.csv'}")
