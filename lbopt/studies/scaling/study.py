"""`run_scaling`: every rule on every fleet of the grid, through a store if there is one.

Exponents of B and of log G in the imbalance of a worker, with bootstrap intervals.

The law that is fitted is Imb / G = c B^beta (log G)^gamma, a plane through logarithms by least squares, cells alike.
Theory gives FCFS beta = gamma = 1/2 for large B and G. Intervals come from resampling each cell's batches (SciPy's
percentile bootstrap): they say how well the grid's exponents are known, and not whether the law holds off the grid.
Resampled means of n batches spread by (n-1)/n of their true variance, so deviations are widened by sqrt(n/(n-1)) first;
``tests/studies/test_scaling_fit.py`` counts how often the intervals cover a known exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import itemgetter
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.policies import foresight_of, make_policy
from lbopt.policies.editions import spelled_out
from lbopt.statistics import CONFIDENCE
from lbopt.studies.configuration import Option
from lbopt.studies.grid import Grid, Row, run_grid
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.scaling.cell import REPLETE, FleetTheory, requests_of, steps_of
from lbopt.studies.study import Outcome, Study
from lbopt.theory.chains.batch_means import FEWEST_BATCHES, Average, batch_steps, require_memory
from lbopt.theory.chains.replete import POOLS
from lbopt.theory.laws.slot_law import LONGEST

RESAMPLES = 999


@dataclass(frozen=True, slots=True)
class Exponents:
    """A fitted law; an interval is (low, high), and an exponent is None where the grid has one value alone.

    Parameters
    ----------
    slots, slots_interval
        beta, of B.
    workers, workers_interval
        gamma, of log G.
    worst
        Largest share by which a cell misses the fitted law.
    """

    slots: float | None
    slots_interval: tuple[float, float] | None
    workers: float | None
    workers_interval: tuple[float, float] | None
    worst: float

    def below(self, other: Exponents) -> Exponents:
        """Return the exponents of the ratio of another imbalance, known exactly, to this one."""

        def less(
            value: float | None, mine: float | None, interval: tuple[float, float] | None
        ) -> tuple[float | None, tuple[float, float] | None]:
            if value is None or mine is None:
                return None, None
            return value - mine, None if interval is None else (value - interval[1], value - interval[0])

        slots = less(other.slots, self.slots, self.slots_interval)
        workers = less(other.workers, self.workers, self.workers_interval)
        return Exponents(*slots, *workers, self.worst)


def fit_exponents(cells: Sequence[tuple[int, int, Sequence[float]]], seed: int = 0) -> Exponents | None:
    """Fit cells of (G, B, batch means of the imbalance in tokens); None where one has no imbalance, or all are one."""
    from scipy import stats

    G = np.array([one[0] for one in cells], np.float64)
    B = np.array([one[1] for one in cells], np.float64)
    samples = [np.asarray(one[2], np.float64) for one in cells]
    if min((sample.mean() for sample in samples), default=0.0) <= 0:
        return None
    columns: dict[str, NDArray[np.float64]] = {}
    if np.unique(B).size > 1:
        columns["slots"] = np.log(B)
    if np.unique(G).size > 1:
        columns["workers"] = np.log(np.log(G))
    design = np.column_stack([np.ones(G.size), *columns.values()])
    if not columns or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    solve = np.linalg.pinv(design)
    logs = np.log([sample.mean() for sample in samples] / G)
    fitted = solve @ logs
    intervals: Any = np.full((design.shape[1], 2), np.nan)
    if min(sample.size for sample in samples) > 1:

        def statistic(*resampled: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
            means = np.stack([one.mean(axis=axis) for one in resampled])
            with np.errstate(invalid="ignore", divide="ignore"):
                found: NDArray[np.float64] = np.tensordot(solve, np.log(means / _like(G, means)), axes=1)
            return found

        widened = [one.mean() + (one - one.mean()) * np.sqrt(one.size / (one.size - 1)) for one in samples]
        resampled = stats.bootstrap(
            widened,
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(seed),
        ).confidence_interval
        intervals = np.column_stack([resampled.low, resampled.high])
    exponents = {
        name: (float(value), None if np.isnan(low) else (float(low), float(high)))
        for name, value, (low, high) in zip(columns, fitted[1:], intervals[1:], strict=True)
    }
    (slots, of_slots), (workers, of_workers) = (exponents.get(name, (None, None)) for name in ("slots", "workers"))
    return Exponents(slots, of_slots, workers, of_workers, float(np.max(np.abs(np.expm1(logs - design @ fitted)))))


def _like(values: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    return values.reshape((-1,) + (1,) * (wanted.ndim - 1))


#: How the decisions of a solver-backed rule may stand.
STANDINGS = ("proved", "claimed", "open", "searched")

#: Bytes that the simulator holds for a request, and for a step beside its workers' loads; measured, rounded up.
_BYTES_PER_REQUEST, _BYTES_PER_STEP = 150, 400

_SMALLER = "fewer workers or slots, fewer batches or a larger p"


def _has_one_pool(name: str) -> None:
    """Refuse a rule that binds on arrival or looks ahead."""
    policy = None if name == REPLETE else make_policy(name)
    if policy is not None and policy.admission != "pooled":
        raise InputError(
            f"policy '{name}' binds requests on arrival, and the study compares rules with one pool; "
            "try admission=pooled"
        )
    if policy is not None and foresight_of(policy) is not None:
        raise InputError(
            f"policy '{name}' looks ahead, and the study compares rules that see the present alone; "
            "take it without a horizon, or br-0 or bf-io"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingConfig(Grid):
    """Configuration of a scaling study: rules, and the grid of `workers` and `slots`.

    Rules on the same fleet get the same requests.
    """

    what = "a scaling study"
    axes = ("G", "workers"), ("B", "slots"), ("policy", "policies")
    function = "lbopt.studies.scaling.cell:measure"

    workers: Annotated[
        tuple[int, ...],
        Option("Number of workers; may be given again.", names=("--workers", "-G"), low=2, kept="sorted"),
    ] = (2, 4, 8, 16)
    slots: Annotated[
        tuple[int, ...], Option("Slots per worker; may be given again.", names=("--slots", "-B"), low=1, kept="sorted")
    ] = (16, 32, 64, 128, 256)
    p: Annotated[
        float,
        Option(
            "Probability that a request ends in a step.",
            names=("--p",),
            low=0,
            high=1,
            open=True,
            expected="a probability between 0 and 1",
        ),
    ] = 0.1
    ends: Annotated[float | None, Option("Take p = ends / B instead: so many ends a worker and step at every B.")] = (
        None
    )
    s_max: Annotated[
        int,
        Option(
            "Prompts are uniform on 1 to this many tokens.",
            names=("--s-max",),
            low=2,
            high=LONGEST,
            expected=f"2 to {LONGEST:,} tokens: prompts that do not vary leave nothing to choose",
        ),
    ] = 10
    sizes: Annotated[
        str,
        Option("Prompts: **all** sizes up to s-max, or **two**, 1 and s-max.", among=tuple(POOLS), later="left out"),
    ] = "all"
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule with one pool, or bf-io-replete; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            shown="fcfs, jsq, jsq-load, br-0, bf-io",
            each=_has_one_pool,
            kept="once",
        ),
    ] = ("fcfs", "jsq:admission=pooled", "jsq-load:admission=pooled", "br-0", "bf-io")
    pool: Annotated[
        float,
        Option(
            "Requests kept waiting, in multiples of a step's mean ends.",
            low=1,
            high=1000,
            expected="1 to 1000 times the ends of a step",
        ),
    ] = 3.0
    batches: Annotated[
        int,
        Option(
            "Batches of 20/p steps, at least 20.",
            low=FEWEST_BATCHES,
            expected=f"at least {FEWEST_BATCHES}, fewer give no error to trust",
        ),
    ] = 20
    time_limit: Annotated[
        float, Option("Seconds a decision of bf-io.", low=0, high=math.inf, open=True, expected="seconds above 0")
    ] = 0.02
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0

    def check(self) -> None:
        """Refuse more ends than slots, and what is too large for this machine or for the law of a load."""
        if self.ends is not None and not 0 < self.ends < self.slots[0]:
            raise InputError(f"ends is {self.ends}; expected more than 0 and fewer than the {self.slots[0]} slots")
        G, B = self.workers[-1], self.slots[-1]
        steps, where = (
            steps_of(G, B, self.end_probability(B), self.batches),
            f"the grid's largest cell, G = {G}, B = {B}",
        )
        if set(self.policies) == {REPLETE}:  # no requests: a chain of slots
            require_memory(steps * _BYTES_PER_STEP + G * B * 40, f"{where},", _SMALLER)
        else:
            requests, _ = requests_of(G, B, self.end_probability(B), steps, self.pool)
            needed = requests * _BYTES_PER_REQUEST + steps * (_BYTES_PER_STEP + 16 * G)
            require_memory(needed, f"{where} with {requests:,} requests,", _SMALLER)
        for fleet in self.fleets():  # a law that is too wide is refused before anything runs
            self.theory(*fleet)

    def end_probability(self, B: int) -> float:
        """Return p for a fleet with `B` slots a worker."""
        return self.p if self.ends is None else self.ends / B

    def theory(self, G: int, B: int) -> FleetTheory:
        """Return what theory says of a fleet."""
        return FleetTheory.of(G, B, self.end_probability(B), self.s_max, self.sizes)

    def fleets(self) -> Iterator[tuple[int, int]]:
        """Return (G, B), the small ones first."""
        return product(self.workers, self.slots)

    def given(self, **cell: Any) -> dict[str, Any]:
        """Return the parameters of a cell's task beside its coordinates; those of requests where there are any."""
        shared = {"policy": spelled_out(cell["policy"]), "p": self.end_probability(cell["B"])}
        shared |= {name: getattr(self, name) for name in ("s_max", "batches")}
        shared |= {} if self.sizes == "all" else {"sizes": self.sizes}
        return shared | ({} if cell["policy"] == REPLETE else {"pool": self.pool, "time_limit": self.time_limit})

    def seed_of(self, **cell: Any) -> int:
        """Return the seed of a cell's task, one for all rules on a fleet."""
        return int(np.random.SeedSequence((self.seed, cell["G"], cell["B"])).generate_state(1)[0])


class ScalingCell(Row):
    """One rule on one fleet.

    It has `policy`, `fleet` (what theory says of it), `batches` (batch means of the imbalance, tokens), `mean` (theirs,
    with its error), `admitted_prompt`, `wait_mean` and `wait_max` in steps (None for the replete
    pool, in which requests do not wait), and the `tally` of a solver-backed rule's decisions by how they stand.
    """

    @classmethod
    def of(cls, policy: str, fleet: FleetTheory, answer: dict[str, Any]) -> ScalingCell:
        """Read what the task returned."""
        mean = Average.of(answer["batches"], len(answer["batches"]) * batch_steps(fleet.p))
        waits = {"wait_mean": None, "wait_max": None}
        return cls(**waits | answer, policy=policy, fleet=fleet, mean=mean)

    @property
    def improvement(self) -> float:
        """FCFS's exact imbalance over the rule's; infinite where nothing is left."""
        return float(self.fleet.fcfs / self.mean.mean) if self.mean.mean > 0 else math.inf

    @property
    def closed_share(self) -> float | None:
        """Share of the decisions that were proved, or called optimal by the search; None for rules without a search."""
        total = sum(self.tally.get(one, 0) for one in STANDINGS)
        return float((self.tally.get("proved", 0) + self.tally.get("searched", 0)) / total) if total else None

    @property
    def is_exact(self) -> bool:
        """Whether the rule is the exact one."""
        return bool(self.policy == REPLETE or self.policy.startswith("bf-io"))


@dataclass(slots=True, repr=False)
class ScalingOutcome(Outcome):
    """All cells of a study."""

    config: ScalingConfig
    cells: list[ScalingCell] = field(default_factory=list)

    def add(self, answer: dict[str, Any], **cell: Any) -> None:
        """Keep the answer of a cell."""
        self.cells.append(ScalingCell.of(cell["policy"], self.config.theory(cell["G"], cell["B"]), answer))

    def of(self, policy: str) -> list[ScalingCell]:
        """Return the cells of a rule, in the order of the fleets."""
        return [cell for cell in self.cells if cell.policy == policy]

    def exponents(self) -> dict[str, Exponents | None]:
        """Fit every rule, and beside them FCFS's exact law on the same grid, as "fcfs, exact law"."""
        fleets = {(one.fleet.G, one.fleet.B): [one.fleet.fcfs] for one in self.cells}
        samples = {
            policy: [(one.fleet.G, one.fleet.B, one.batches) for one in self.of(policy)]
            for policy in self.config.policies
        }
        samples["fcfs, exact law"] = [(*fleet, exact) for fleet, exact in fleets.items()]
        found = {name: fit_exponents(cells) for name, cells in samples.items()}
        law = found["fcfs, exact law"]
        if self.config.sizes == "all" or law is None:
            return found  # next to nothing is left, so that a ratio to it says little
        gains = {f"improvement of {name}": one.below(law) for name, one in found.items() if one and one is not law}
        return found | gains


@of_tasks("fleets and rules")
def run_scaling(config: ScalingConfig, run: RunTasks) -> ScalingOutcome:
    """Run the study; Ctrl-C keeps the cells that have ended."""
    outcome = run_grid(config, run, ScalingOutcome)
    shares = [(1 - share, cell) for cell in outcome.cells if (share := cell.closed_share) is not None and share < 1]
    if shares:
        share, worst = max(shares, key=itemgetter(0))
        outcome.notes.append(
            f"cells with decisions that the search left open after {config.time_limit:g} s: {len(shares)}; the largest "
            f"share is {100 * share:.3g} %, {worst.policy} at G = {worst.fleet.G}, B = {worst.fleet.B}"
        )
    return outcome


HELP = """Run rules over a grid of fleets, and fit exponents of B and log G to their imbalance.

With --out, writes scaling.csv, exponents.csv, pictures (png, svg) and run.json.

Example: `lbopt study scaling -G 2 -G 8 -B 16 -B 64 --policy fcfs --policy bf-io-replete --out my-scaling`
"""

STUDY = Study(name="scaling", config=ScalingConfig, help=HELP, run=run_scaling)
