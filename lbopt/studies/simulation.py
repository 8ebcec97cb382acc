"""`run_simulation`: one policy over the requests of one seed, as a study like the others."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.hardware.step_time import StepTimeByUse
from lbopt.kinds import refuse_kinds
from lbopt.policies import LookingAhead, Policy, foresight_of, look_ahead, make_policy
from lbopt.simulator import Metrics, Run, ceilings, simulate
from lbopt.simulator.metrics import Window
from lbopt.simulator.recorder import detail_figures
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.scenario import Scenario
from lbopt.studies.study import Study
from lbopt.studies.training import refuse_logs_of_other_requests, said_of_training, training_for, with_training


def policy_looking(spec: str, horizon: int | None, predictor: str | None) -> Policy:
    """Build a policy that looks so far ahead, by that predictor.

    Parameters
    ----------
    spec
        As `make_policy` reads it.
    horizon, predictor
        Steps, and a predictor; None = what the rule itself says.

    Raises
    ------
    InputError
        If the rule is unknown, or does not look ahead although a horizon or a predictor is given.
    """
    policy = make_policy(spec, look_ahead(horizon, predictor))
    if foresight_of(policy) is None and (horizon or predictor):
        if isinstance(policy, LookingAhead):
            raise InputError(f"policy '{policy.name}' looks 0 steps ahead; add horizon, or leave predictor out")
        raise InputError(f"policy '{policy.name}' does not look ahead; leave horizon and predictor out")
    return policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationConfig:
    """Configuration of one simulation.

    Parameters
    ----------
    scenario
        Requests, fleet, arrivals, event order. The first part of a file is kept for a predictor that needs it.
    policy
        As `make_policy` reads it.
    horizon, predictor
        How far the policy looks ahead and by which predictor, where it can and does not say; None = its own.
    seed
        Of the requests and of the run.
    window
        Steps that metrics are averaged over, ``FIRST:LAST``, counted from 1; None = up to the last admission.
    """

    scenario: Scenario = field(default_factory=Scenario)
    policy: Annotated[
        str, Option("A rule, replay:FILE, or file.py:function.", names=("--policy", "--rule", "-p"), first=True)
    ] = "fcfs"
    horizon: Annotated[
        int | None,
        Option("Steps that the rule looks ahead, where it can.", names=("--horizon", "-H"), first=True),
    ] = None
    predictor: Annotated[
        str | None,
        Option(
            "What rules that look ahead go by, where they do not say: survival, oracle, ...",
            first=True,
        ),
    ] = None
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    window: Annotated[str | None, Option("Steps to average over, FIRST:LAST.", shown="up to the last admission")] = None

    def __post_init__(self) -> None:
        refuse_kinds(self)
        chosen = self.build()
        refuse_logs_of_other_requests(self.scenario.requests, [chosen])
        object.__setattr__(self, "scenario", with_training(self.scenario, [chosen]))
        _ = self.steps

    def build(self) -> Policy:
        """Return the policy."""
        return policy_looking(self.policy, self.horizon, self.predictor)

    @property
    def steps(self) -> Window | None:
        """The window, read."""
        if self.window is None:
            return None
        first, colon, last = self.window.partition(":")
        if not colon or not (first.isdecimal() and last.isdecimal()):
            raise InputError(f"window '{self.window}' is not understood; expected FIRST:LAST, steps counted from 1")
        return Window(int(first), int(last))

    def to_dict(self) -> dict[str, Any]:
        """Return what rebuilds the run, without the seed and the window, which have their own places in `run.json`."""
        asked = {name: getattr(self, name) for name in ("policy", "horizon", "predictor")}
        return {"scenario": self.scenario.to_dict(), **asked}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "the configuration") -> SimulationConfig:
        """Rebuild a configuration; a seed and a window that `data` lacks are the default ones."""
        whole = {"seed": 0, "window": None} | dict(data)
        return from_plain(cls, whole, what="a simulation", source=source, parts={"scenario": Scenario.from_dict})


@dataclass(slots=True, eq=False)
class SimulationOutcome:
    """A run, its metrics over the window, and what `run.json` keeps of both.

    Ctrl-C ends a simulation without a result, so `interrupted` is never set.
    """

    config: SimulationConfig
    run: Run
    metrics: Metrics
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False


def run_simulation(config: SimulationConfig, progress: Progress | None = None) -> SimulationOutcome:
    """Run the policy; Ctrl-C leaves nothing."""
    shown = progress or Silent()
    scenario, policy = config.scenario, config.build()
    requests, training = scenario.requests.draw_for(config.seed), training_for(scenario, [policy], config.seed)
    shown.begin(policy.name, len(requests))
    done = 0

    def show(ended: int, _total: int) -> None:
        nonlocal done
        shown.advance(ended - done)
        done = ended

    run = simulate(requests, policy, scenario.setting, seed=config.seed, training=training, progress=show)
    notes = said_of_training(scenario, [policy])
    if requests.experts is not None and not isinstance(scenario.setting.law, StepTimeByUse):
        notes.insert(0, "this step time does not go by the experts that requests use; step_time=experts does")
    return SimulationOutcome(config, run, run.metrics(config.steps), notes)


def _facts(outcome: SimulationOutcome) -> dict[str, Any]:
    run = outcome.run
    drafts = run.setting.detail is not None and run.setting.detail.draft
    return {
        "trace_digest": run.trace.digest,
        "policy": run.policy,
        "admission": run.admission,
        "setting": run.setting.describe(),
        "seed": run.seed,
        "metrics": outcome.metrics.to_dict(),
        **({} if drafts else {"ceilings": ceilings(run.trace, run.setting).to_dict()}),
        "tally": run.tally,
        **({} if run.happened is None else {"detail": detail_figures(run)}),
    }


def _restore(account: dict[str, Any], source: str) -> SimulationConfig:
    """Return the configuration; `run.json` has the seed in a place of its own, and the window in its command."""
    try:
        words = dict(pairwise(shlex.split(account["command"].replace("window=", "window "))))
        window = words.get("--window", words.get("window"))
        given = {**account["asked"], "seed": account["seed"], "window": window}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{source} is not an account of a simulation of this version: {error!r}") from None
    return SimulationConfig.from_dict(given, source=source)


HELP = """Run one policy over a trace and print its metrics.

With --out, writes requests.csv, steps.csv and run.json.

Example: `lbopt simulate burstgpt-like --policy br-0 --workers 16 --requests 20000`
"""

STUDY = Study(
    name="simulation",
    config=SimulationConfig,
    help=HELP,
    run=run_simulation,
    facts=_facts,
    account=(),
    config_key="asked",
    restore=_restore,
    timings=(),
)
