"""`run_stale`: every rule on every fleet with every age of reports, through a store if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import lbopt
from lbopt.exceptions import InputError
from lbopt.policies import foresight_of, make_policy
from lbopt.policies.editions import spelled_out
from lbopt.simulator import Telemetry
from lbopt.studies.configuration import Option
from lbopt.studies.grid import Grid, Row, run_grid
from lbopt.studies.requests import RequestSource
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.stale.cell import added
from lbopt.studies.study import Outcome, Study

_POLICIES = ("round-robin", "power-of-two", "vllm", "jsq-load:admission=immediate", "br-0", "auto")
_SIGHTS = {"counts": "optimistic", "blind": "none"}

#: Below this share of busy slots a pool that sees reports starts requests in bursts: reports are a life apart.
_SEEN = 0.63


def _sees_the_present(policy: str) -> None:
    """Refuse a rule that looks ahead."""
    if foresight_of(make_policy(policy)) is not None:
        raise InputError(
            f"policy '{policy}' looks ahead, and reports do not list running requests; take a rule without a window"
        )


def _can_be_reported(period: float) -> None:
    """Refuse reports that follow too soon; others than positive periods are out of range."""
    if period > 0:
        Telemetry(period)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleConfig(Grid):
    """Configuration of a study of stale state.

    The truth is always run beside the periods. Rules with a pool count what they send in any case. Of a closed loop
    (`load` is None) the law says nothing; requests come by the trace's times or, where it has none, by Poisson's law.
    """

    what = "a study of stale state"
    axes = ("G", "workers"), ("policy", "policies"), ("period", "ages")
    function = "lbopt.studies.stale.cell:measure"

    requests: RequestSource = field(default_factory=RequestSource)
    workers: Annotated[
        tuple[int, ...],
        Option(
            "Number of workers; may be given again.",
            names=("--workers", "-G"),
            first=True,
            low=2,
            high=4096,
            kept="sorted",
        ),
    ] = (8,)
    slots: Annotated[int, Option("Slots per worker.", names=("--slots", "-B"), first=True, low=1, high=100_000)] = 72
    periods: Annotated[
        tuple[float, ...],
        Option(
            "Seconds between reports; may be given again.",
            names=("--period",),
            key="period",
            first=True,
            low=0,
            open=True,
            each=_can_be_reported,
            kept="sorted",
        ),
    ] = (0.02, 0.1, 0.5, 2.0, 10.0)
    sight: Annotated[
        str,
        Option(
            "**counts**: a front end adds what it sends; **blind**: nothing between reports.",
            first=True,
            among=tuple(_SIGHTS),
        ),
    ] = "counts"
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule without a window; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
            shown="round-robin, power-of-two, vllm, jsq-load on arrival, br-0, auto",
            each=_sees_the_present,
            kept="once",
        ),
    ] = _POLICIES
    load: Annotated[
        float | None,
        Option(
            "Requests come at this share of saturation.",
            shown="closed loop",
            first=True,
            low=0,
            high=100,
            open=True,
            expected="a share of saturation such as 0.9",
        ),
    ] = None
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0

    @property
    def ages(self) -> tuple[float | None, ...]:
        """The truth, as None, and the periods."""
        return None, *self.periods

    def given(self, **cell: Any) -> dict[str, Any]:
        """Return the parameters of a cell's task beside its coordinates."""
        return {
            "requests": self.requests.describe(),
            "policy": spelled_out(cell["policy"]),  # other processes do not know of editions
            "B": self.slots,
            "load": self.load,
            "own": _SIGHTS["counts" if cell["period"] is None else self.sight],
            "version": f"{lbopt.__version__}, two floors",  # answers of before have one, which was not of any rule
        }


class StaleCell(Row):
    """One rule on one fleet with one age of reports; the columns are in `lbopt.report.stale_report`."""

    @property
    def bursts(self) -> bool:
        """Whether the rule starts requests in bursts at reports, which the law of even arrivals does not speak of.

        A rule with a pool starts nothing between reports. That shows where a slot is free for a good part of its time.
        """
        return bool(self.admission == "pooled" and self.seen < _SEEN)

    @property
    def period_steps(self) -> float:
        """Steps between reports; 0 for the truth."""
        return 0.0 if self.period is None else float(self.period / self.step_seconds)


@dataclass(slots=True, repr=False)
class StaleOutcome(Outcome):
    """All cells of a study."""

    config: StaleConfig
    cells: list[StaleCell] = field(default_factory=list)

    def add(self, answer: dict[str, Any], **cell: Any) -> None:
        """Keep the answer of a cell."""
        self.cells.append(StaleCell(**cell, **answer))

    def of(self, G: int, policy: str) -> list[StaleCell]:
        """Return the cells of a rule on a fleet, the truth first."""
        return [cell for cell in self.cells if cell.G == G and cell.policy == policy]

    def floor(self, cell: StaleCell) -> float | None:
        """Return the law's floor of any rule, tokens; None in bursts, and where slots are never free."""
        return None if cell.bursts or self.config.load is None else float(cell.floor)

    def alike(self, cell: StaleCell) -> float | None:
        """Return what workers alike leave by the law, tokens; None where it says nothing."""
        return None if self.floor(cell) is None else float(cell.alike)

    def forecast(self, cell: StaleCell) -> float | None:
        """Return what the law makes of the rule's imbalance by true state, tokens; None where it says nothing."""
        alike = self.alike(cell)
        fresh = next((one for one in self.of(cell.G, cell.policy) if one.period is None), None)
        counts = self.config.sight == "counts" or cell.admission == "pooled"
        return None if fresh is None or alike is None or not counts else added(fresh.imbalance, alike, cell.even)


@of_tasks("runs")
def run_stale(config: StaleConfig, run: RunTasks) -> StaleOutcome:
    """Run the study; Ctrl-C keeps the runs that have ended."""
    outcome = run_grid(config, run, StaleOutcome)
    pooled = sorted({cell.policy for cell in outcome.cells if cell.admission == "pooled"})
    if config.sight == "blind" and pooled:
        outcome.notes.append(f"rules with a pool count what they send in any case: {', '.join(pooled)}")
    return outcome


HELP = """Run rules on a trace with reports of several ages, and put the law's floor beside what they leave.

With --out, writes stale.csv, a picture (png, svg) and run.json.

Example: `lbopt study stale azure-like --requests 3000 -G 8 --period 0.1 --period 1 --policy jsq-load --out my-ages`
"""

STUDY = Study(name="stale", config=StaleConfig, help=HELP, run=run_stale)
