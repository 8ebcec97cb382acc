"""`run_staggered`: every part of the chosen items with every seed, through a store if there is one.

An item is a question with the parts that it is made of; a part and a seed are a task. What a task answers is in the
module of the item in `items`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Any

import lbopt
from lbopt.runner import Task
from lbopt.spec import unknown
from lbopt.statistics import MeanOverSeeds, over_seeds
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.grid import empty
from lbopt.studies.printed import Judged
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.staggered.items import ahead, fleet, latency, law, load
from lbopt.studies.staggered.places import AHEAD, CLASSES, HELD_BACK, IMMEDIATE, LATENCIES, PLACES
from lbopt.studies.staggered.questions import Figure, place_of, questions
from lbopt.studies.staggered.rows import Averaged, Rows, averaged
from lbopt.studies.study import Outcome, Study

Part = dict[str, Any]
#: Items that go through fleets or laws of a pass run so many times fewer requests of an instance.
FEWER = 4


def parts_of(axes: Mapping[str, Iterable[Any]], **alike: Any) -> list[Part]:
    """Return a part for every combination of the axes, the first of which varies slowest."""
    return [dict(zip(axes, values, strict=True)) | alike for values in product(*axes.values())]


def _law(config: StaggeredConfig) -> list[Part]:
    return parts_of({"instances": law.FLEETS}, requests=config.waits)


def _in_reading(config: StaggeredConfig, parts: list[Part]) -> list[Part]:
    """Return the parts for the rules as printed, which name no rules, and those for rules that send ahead."""
    printed = parts if config.sending != "ahead" else []
    return [*printed, *({**part, "rules": list(AHEAD)} for part in parts if config.sending != "printed")]


def _load(config: StaggeredConfig) -> list[Part]:
    axes = {"place": config.places, "against": IMMEDIATE}
    return _in_reading(config, parts_of(axes, **config.size, loads=list(load.LOADS)))


def _fleet(config: StaggeredConfig) -> list[Part]:
    shortest = [place for place in config.places if place.startswith("short-3k")]
    axes = {"place": shortest, "against": IMMEDIATE, "instances": fleet.FLEETS}
    return _in_reading(config, parts_of(axes, requests=config.requests // FEWER))


def _limit(config: StaggeredConfig) -> list[Part]:
    return parts_of({"place": config.places, "contender": config.contenders}, **config.size)


def _latency(config: StaggeredConfig) -> list[Part]:
    return [{"latency": seconds, **part} for seconds in latency.LATENCIES for part in _limit(config)]


def _ahead(config: StaggeredConfig) -> list[Part]:
    fleets = [name for name in CLASSES if name in config.places or name not in PLACES]
    requests = max(config.requests // FEWER, ahead.FEWEST_REQUESTS)
    return parts_of({"fleet": fleets, "latency": LATENCIES}, requests=requests)


def _split(config: StaggeredConfig) -> list[Part]:
    return parts_of({"place": config.places}, **config.size)


#: The parts of every item, by its name.
ITEMS: dict[str, Callable[[StaggeredConfig], list[Part]]] = {
    "law": _law,
    "load": _load,
    "fleet": _fleet,
    "limit": _limit,
    "latency": _latency,
    "ahead": _ahead,
    "split": _split,
}
#: Where the module of an item is, and the packages of those that are elsewhere.
_PACKAGE = "lbopt.studies.staggered.items"
PACKAGE_OF: dict[str, str] = {}


def _is_item(name: str) -> None:
    if name not in ITEMS:
        raise unknown("item", name, ITEMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaggeredConfig(Configuration):
    """Configuration of a staggering study.

    Fewer requests of an instance than the least are a minute of traffic, in which nothing settles; fewer waits have no
    99 % quantile worth the name.
    """

    what = "a staggering study"

    items: Annotated[
        tuple[str, ...],
        Option(
            "law, load, fleet, limit, latency, ahead, split.",
            argument=True,
            shown="all",
            each=_is_item,
            empty=True,
        ),
    ] = ()
    places: Annotated[
        tuple[str, ...],
        Option(
            "**short-3k**, **short-5k** or **long-16k**; may be given again.",
            key="place",
            first=True,
            shown="all",
            among=tuple(PLACES),
            empty=True,
        ),
    ] = tuple(PLACES)
    instances: Annotated[
        int, Option("Prefill instances, where the item does not go through fleets.", low=1, high=256)
    ] = 3
    requests: Annotated[int, Option("Requests of an instance in a run.", low=500)] = 10_000
    waits: Annotated[int, Option("Requests of a run of item law.", low=1000)] = 200_000
    sending: Annotated[
        str,
        Option(
            "When items load, fleet, limit and latency send: **printed**, **ahead** or **both**.",
            among=tuple(HELD_BACK),
            later="left out",
        ),
    ] = "printed"
    seeds: Annotated[int, Option("Draws of prompts, gaps and phases; intervals need two.", first=True, low=1)] = 10
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0

    def check(self) -> None:
        """Put items and places in their order."""
        object.__setattr__(self, "items", tuple(item for item in ITEMS if item in self.items or not self.items))
        object.__setattr__(self, "places", tuple(place for place in PLACES if place in self.places))

    @property
    def size(self) -> dict[str, int]:
        """Instances, and requests of each, as tasks name them."""
        return {"instances": self.instances, "requests": self.requests}

    @property
    def held_back(self) -> tuple[str, ...]:
        """The rules that hold requests back, of the chosen reading."""
        return HELD_BACK[self.sending]

    @property
    def contenders(self) -> tuple[str, ...]:
        """These rules and those that bind on arrival."""
        return (*IMMEDIATE, *self.held_back)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(range(self.seed, self.seed + self.seeds))

    def tasks(self, item: str) -> list[Task]:
        """Return the tasks of an item, seed by seed."""
        function, version = f"{PACKAGE_OF.get(item, _PACKAGE)}.{item}:measure", {"version": lbopt.__version__}
        return [Task(function, part | version, seed) for seed in self.all_seeds for part in ITEMS[item](self)]


@dataclass(slots=True, repr=False)
class StaggeredOutcome(Outcome):
    """Everything that has ended.

    Parameters
    ----------
    rows
        By item and seed.
    """

    config: StaggeredConfig
    rows: dict[str, dict[int, Rows]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<StaggeredOutcome {len(self.rows)} items: {', '.join(self.rows)}>"

    def add(self, answer: Any, **cell: Any) -> None:
        """Keep the answer of an item for a seed."""
        self.rows.setdefault(cell["item"], {}).setdefault(cell["seed"], Rows()).add(answer)

    def averaged(self, item: str) -> list[Averaged]:
        """Return the rows of an item over seeds."""
        return averaged(self.rows.get(item, {}).values())

    def mean(self, item: str, figure: Figure) -> MeanOverSeeds | None:
        """Return a value of the rows of a seed, over the seeds that have one; None where none has."""
        told = [value for rows in self.rows.get(item, {}).values() if (value := figure(rows)) is not None]
        return over_seeds(told) if told else None

    def asked(self) -> list[Judged]:
        """Return every printed statement on the items and places that have run, with what the runs say of it."""
        chosen = ("", *self.config.places)
        return [
            Judged.by(one, map(one.figure, self.rows[one.item].values()))
            for one in questions(self.config.sending)
            if self.rows.get(one.item) and place_of(one) in chosen
        ]

    def judged(self) -> list[Judged]:
        """Return those that the runs can be held against."""
        return [one for one in self.asked() if one.values]


@of_tasks("staggering")
def run_staggered(config: StaggeredConfig, run: RunTasks) -> StaggeredOutcome:
    """Run the study; Ctrl-C keeps what has ended."""
    tasks = [(item, task) for item in config.items for task in config.tasks(item)]
    stored = run(task for _, task in tasks)
    outcome = empty(StaggeredOutcome, config, stored)
    for item, task in tasks:
        if task.key in stored.answers:
            outcome.add(stored.answers[task.key], item=item, seed=task.seed)
    return outcome


HELP = """Compare what SBS printed of staggered prefill with simulated instances, with each of four immediate baselines.

With --out, writes claims.csv, a CSV an item, pictures (png, svg) and run.json. Takes about 7 minutes
a seed on one core: 40 minutes in full with `--engine joblib:jobs=2`, and half a minute with
`law load fleet limit split --seeds 2 --set requests=1000 --set waits=20000`.

Example: `lbopt study staggered load limit --place short-3k --seeds 3 --set requests=2000 --out my-staggered`
"""

STUDY = Study(
    name="staggered",
    config=StaggeredConfig,
    help=HELP,
    run=run_staggered,
    facts=lambda outcome: {"seeds": {item: len(by_seed) for item, by_seed in outcome.rows.items()}},
)
