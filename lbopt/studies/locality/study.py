"""`run_locality`: every world of the chosen workloads, through a store if there is one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.families.experts import expert_workload
from lbopt.statistics import MeanOverSeeds, over_seeds
from lbopt.studies.configuration import Option
from lbopt.studies.grid import Grid, run_grid
from lbopt.studies.locality.laws import law_of
from lbopt.studies.locality.plan import CONSTANTS, ITEMS, USUAL_ITEMS, PlannedRun, plan_of
from lbopt.studies.locality.questions import Answer, AtLaw, Figure, at_laws, changed, judged_by, questions
from lbopt.studies.printed import Judged
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Outcome, Study

WORKLOADS = ("task", "language")
#: Fewer calibration prompts than this make clusters of 24 workers of a few prompts each.
FEWEST_PROMPTS = 100
#: Fewer requests than this have no 99 % quantile worth the name.
FEWEST_REQUESTS = 50


def _step_time(law: str) -> None:
    """Refuse what names no step time, or could not stand in the key of a run."""
    if not law or set(law) & set(" \t\n"):
        raise InputError(f"law is {shown(law)}; expected a name without spaces, such as other=2ms,request=10us")
    law_of(law)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalityConfig(Grid):
    """Configuration of a locality study: worlds of the chosen workloads, each with its own gates and requests.

    A rate of 60 requests a second stands for all where one is enough.
    """

    what = "a locality study"
    axes = ("seed", "all_seeds"), ("workload", "workloads")
    function = "lbopt.studies.locality.cell:measure"

    items: Annotated[
        tuple[str, ...],
        Option(
            "signatures, routers, band, clusters, pool, barrier; or first-token, cache, models, large, constants.",
            argument=True,
            shown="the first six",
            among=tuple(ITEMS),
            empty=True,
        ),
    ] = ()
    workloads: Annotated[
        tuple[str, ...],
        Option(
            "**task** or **language**; may be given again.",
            key="workload",
            first=True,
            shown="both",
            among=WORKLOADS,
            kept="once",
        ),
    ] = WORKLOADS
    rates: Annotated[
        tuple[float, ...],
        Option(
            "Requests a second of routers and pool; may be given again.",
            low=0,
            high=1e6,
            open=True,
            expected="requests a second, above 0",
            kept="sorted",
        ),
    ] = (
        20.0,
        40.0,
        60.0,
        80.0,
        100.0,
    )
    seconds: Annotated[
        float, Option("Length of the arrivals. A request takes 5 to 15 s: shorter runs never fill up.")
    ] = 120.0
    warm_up: Annotated[float, Option("First seconds that are not counted.")] = 30.0
    prompts: Annotated[
        int, Option("Prompts that requests repeat, and as many others that tables are fitted to.", low=FEWEST_PROMPTS)
    ] = 1000
    layers: Annotated[int, Option("Layers of the model that are drawn.", low=1)] = 6
    seeds: Annotated[
        int, Option("Worlds, each with its own gates and requests; intervals need two.", first=True, low=1)
    ] = 20
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0
    laws: Annotated[
        tuple[str, ...],
        Option(
            "Another step time under which routers are compared, such as other=2ms,request=10us; may be given again.",
            key="law",
            each=_step_time,
            kept="once",
            empty=True,
            later="left out",
        ),
    ] = ()

    def check(self) -> None:
        """Order the items, and refuse a warm-up that leaves too few requests to count."""
        object.__setattr__(self, "items", tuple(item for item in ITEMS if item in (self.items or USUAL_ITEMS)))
        if not 0 <= self.warm_up < self.seconds < float("inf"):
            raise InputError(f"the warm-up takes {self.warm_up:g} s of {self.seconds:g} s; expected less than all")
        counted_seconds = self.seconds - self.warm_up
        counted = self.rates[0] * counted_seconds
        if counted < FEWEST_REQUESTS:
            raise InputError(
                f"at {self.rates[0]:g} requests a second some {counted:.2g} come in the {counted_seconds:g} s "
                f"after the warm-up; expected at least {FEWEST_REQUESTS}: give more seconds, or higher rates"
            )

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The worlds."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """What is simulated in every world, each once."""
        return plan_of(self.items, self.rates, self.laws)

    def given(self, **cell: Any) -> dict[str, Any]:
        """Return the parameters of a world's task beside its workload."""
        shared = {name: getattr(self, name) for name in ("seconds", "warm_up", "prompts", "layers")}
        return shared | {
            "runs": [run.key for run in self.runs],
            "signatures": "signatures" in self.items,
            "law": asdict(expert_workload(f"moe-{cell['workload']}").law),
        }


@dataclass(slots=True, repr=False)
class LocalityOutcome(Outcome):
    """All worlds that have ended.

    Parameters
    ----------
    answers
        By workload, one a world, as `cell.measure` returns them.
    """

    config: LocalityConfig
    answers: dict[str, list[Answer]] = field(default_factory=dict)

    def add(self, answer: Answer, **cell: Any) -> None:
        """Keep the answer of a world."""
        self.answers.setdefault(cell["workload"], []).append(answer)

    def asked(self) -> list[Judged]:
        """Return every printed statement on the chosen items and workloads that ran, with what the worlds say of it."""
        return [
            judged_by(one, one.figure, self.answers, self.config.rates)
            for one in questions()
            if one.item in self.config.items
            and one.workload in self.config.workloads
            and self.answers.get(one.workload)
        ]

    def judged(self) -> list[Judged]:
        """Return those that the worlds can be held against."""
        return [one for one in self.asked() if one.values]

    def at_laws(self) -> list[AtLaw]:
        """Return the statements of `STATEMENTS` over the range of the assumed constants and by given step times."""
        laws = (*(CONSTANTS if "constants" in self.config.items else ()), *self.config.laws)
        return at_laws(questions(), self.answers, self.config.rates, dict.fromkeys(laws))

    def over(self, workload: str, figure: Figure) -> MeanOverSeeds | None:
        """Return a figure of the worlds of a workload that can tell; None where none can."""
        told = [figure(answer, self.config.rates) for answer in self.answers.get(workload, [])]
        known = [value for value in told if value is not None]
        return over_seeds(known) if known else None

    def mean(self, workload: str, run: PlannedRun, of: str) -> MeanOverSeeds | None:
        """Return `of` of a run over worlds: p50, p99, wait (s), experts, running, busiest_over_mean."""
        # answers of 0.1.0 have no "wait"
        return self.over(workload, lambda answer, _: answer["runs"].get(run.key, {}).get(of))

    def change(self, workload: str, run: PlannedRun, of: str) -> MeanOverSeeds | None:
        """Return by how many percent a run's `of` exceeds that of round-robin in the same world, over worlds."""
        return self.over(workload, changed(run, of))


@of_tasks("worlds")
def run_locality(config: LocalityConfig, run: RunTasks) -> LocalityOutcome:
    """Run the study; Ctrl-C keeps the worlds that have ended."""
    return run_grid(config, run, LocalityOutcome)


HELP = """Compare what ELDR printed of routing by experts with a synthetic workload, with sweeps of its parts.

The first six items run where none is named. `constants` judges four statements over the plausible range of the two
constants that are assumed; `first-token`, `cache`, `models` and `large` are what can be answered beside the main
tables.

`--law` compares the routers under step times of your own, such as measured ones.

With --out, writes claims.csv, runs.csv, signatures.csv, laws.csv, pictures (png, svg) and run.json.
Takes about 11 s a world and workload: 4 minutes in full with `--engine joblib:jobs=2`, and half a minute with
`--seeds 2 --set rates=60 --set seconds=60`; `constants` takes about 14 s more a world and workload.

Example: `lbopt study locality band clusters --seeds 2 --set rates=60 --set seconds=60 --out my-locality`
"""

STUDY = Study(
    name="locality",
    config=LocalityConfig,
    help=HELP,
    run=run_locality,
    facts=lambda outcome: {"worlds": {workload: len(found) for workload, found in outcome.answers.items()}},
)
