"""`run_ranks`: from loads of ranks over time, as engines log them, to what the imbalance costs and where it comes from.

Such data hold no requests, so no rule can be run over them. They bound what any rule could gain: a rule can at best
level the loads, which saves the wait at the barrier.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.cards import device_card
from lbopt.instances.rank_log import RankSeries, read_rank_log
from lbopt.spec import duration
from lbopt.studies.audit.rank_findings import Finding, findings_of, to_log
from lbopt.studies.audit.rank_loads import (
    Barrier,
    Idle,
    Loads,
    OwnLaw,
    Stuck,
    barrier_of,
    idle_of,
    loads_of,
    mean_of,
    own_law,
    stuck_of,
)
from lbopt.studies.audit.recommendation import HOURS_A_MONTH, Recommendation
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.cost.config import DEFAULT_DEVICES, CostConfig
from lbopt.studies.cost.load_point import LEVEL, LoadPoint
from lbopt.studies.cost.study import cost_of_points
from lbopt.studies.progress import Progress
from lbopt.studies.study import Outcome, Study

#: Seconds for which a URL may be watched.
_LONGEST = 1e7


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions(Configuration):
    """What an audit asks for where its log is of ranks."""

    what = "an audit of ranks"

    more: Annotated[
        tuple[str, ...],
        Option("Further logs of the same fleet's engines, such as other nodes.", argument=True, empty=True),
    ] = ()
    kv_capacity: Annotated[
        int | None,
        Option("Engine's log: tokens that the KV cache of a rank holds.", first=True, shown="the log's", low=1),
    ] = None
    duration: Annotated[
        str, Option("URL of /metrics: how long to watch, such as 60s or 5m.", names=("--for",), first=True)
    ] = "60s"
    every: Annotated[str, Option("URL of /metrics: time between two scrapes.")] = "2s"
    devices: Annotated[
        tuple[str, ...],
        Option(
            "Engine's log: card of the devices, or path of one; may be given again.",
            names=("--device", "-d"),
            key="device",
            first=True,
            kept="once",
        ),
    ] = DEFAULT_DEVICES
    model: Annotated[str, Option("Engine's log: model that is served, a card or path of one.", first=True)] = (
        "deepseek-v3"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksConfig(RankOptions):
    """Configuration of an audit of ranks."""

    log: Annotated[str, Option("Engine's log, metrics, a folder of either, or the URL of /metrics.", argument=True)]
    price: Annotated[
        float | None,
        Option("Price of a GPU for an hour.", first=True, shown="the cards'", low=0, high=sys.float_info.max),
    ] = None
    gpus: Annotated[int | None, Option("GPUs of the fleet.", first=True, shown="one a rank", low=1)] = None
    currency: Annotated[str, Option("What the price is in.")] = "USD"

    @property
    def logs(self) -> tuple[str, ...]:
        """All logs."""
        return (self.log, *self.more)

    def check(self) -> None:
        """Refuse cards that cannot be read, and times that are none."""
        CostConfig(devices=self.devices, model=self.model)
        seconds, every = self.watched
        if not 0 < every <= max(seconds, every) <= _LONGEST:
            raise InputError(f"for is {self.duration!r} and every {self.every!r}; expected above 0 to {_LONGEST:g} s")

    @property
    def watched(self) -> tuple[float, float]:
        """For how long a URL is watched, and the time between two scrapes (s)."""
        return duration("for", self.duration), duration("every", self.every)


@dataclass(frozen=True, slots=True)
class Share:
    """Ends of the share of time that ranks wait at the barrier, by one law."""

    law: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Money:
    """What the wait costs a month: share by tokens and by the flattest law, times GPUs, hours and price."""

    gpus: int
    prices: tuple[float, float]
    low: float
    high: float
    of: str


@dataclass(slots=True, eq=False, repr=False)
class RanksOutcome(Outcome):
    """What the ranks' loads say.

    Parameters
    ----------
    series, loads
        What was read, and the loads in one unit.
    idle, barrier, stuck, law
        See `lbopt.studies.audit.rank_loads`; `law` is fitted to the log's own steps.
    shares
        The wait's share of time by law, the widest first; empty for one rank.
    money
        What it costs; None where there is no wait to be priced.
    findings
        Sentences, the most important first.
    to_log
        What to log in addition.
    """

    config: RanksConfig
    series: RankSeries
    loads: Loads
    idle: Idle
    barrier: Barrier
    stuck: Stuck | None
    law: OwnLaw | None
    shares: list[Share]
    money: Money | None
    findings: list[Finding]
    to_log: list[str]

    @property
    def recommendation(self) -> Recommendation:
        """That none is given, as other audits give theirs."""
        return Recommendation(
            verdict="withheld",
            sentences=("No recommendation: the log says what ranks held, and not which requests there were.",),
        )

    def __repr__(self) -> str:
        return f"<RanksOutcome {self.series.source}: {len(self.series.ranks)} ranks, idle {self.idle.share:.1%}>"

    def ranks(self) -> list[dict[str, Any]]:
        """Return one row a rank: means over moments."""
        series, loads = self.series, self.loads.loads
        ends = np.nan_to_num(loads).max(axis=1, keepdims=True)
        prefill = np.nansum(series.of("prefill"), axis=0)
        rows = []
        for g, name in enumerate(series.ranks):
            rows.append(
                {
                    "rank": name,
                    "load": mean_of(loads[:, g]),
                    "largest": float(np.nanmax(loads[:, g], initial=0.0)),
                    "heaviest_share": float(np.mean((loads[:, g] >= ends[:, 0]) & (ends[:, 0] > 0))),
                    "kv_share": mean_of(series.of("share")[:, g]),
                    "running": mean_of(series.of("running")[:, g]),
                    "waiting": mean_of(series.of("waiting")[:, g]),
                    "tokens_per_second": mean_of(series.of("made")[:, g]),
                    "pace": float(self.barrier.paces[g]),
                    "prefill_share": float(prefill[g] / prefill.sum()) if prefill.sum() > 0 else float("nan"),
                    "silent_share": float(series.silent[:, g].mean()),
                }
            )
        return rows

    def moments(self) -> list[dict[str, Any]]:
        """Return one row a rank and moment, in the form that `lbopt audit` reads again."""
        series, rows = self.series, []
        names = {"tokens": self.loads.loads} if self.loads.unit == "tokens" else {"share": series.of("share")}
        names |= {"running": series.of("running"), "waiting": series.of("waiting")}
        for t, seconds in enumerate(series.seconds.tolist()):
            for g, rank in enumerate(series.ranks):
                said = {name: float(of[t, g]) for name, of in names.items()}
                rows.append({"time": seconds, "rank": rank} | {k: None if v != v else v for k, v in said.items()})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data."""
        return {
            "ranks": self.ranks(),
            "moments": self.idle.moments,
            "period_seconds": self.series.period,
            "load": {"unit": self.loads.unit, "how": self.loads.how},
            "idle": asdict(self.idle),
            "barrier": {"verdict": self.barrier.verdict, "spread": self.barrier.spread},
            "wait_of_time": [asdict(one) for one in self.shares],
            "money": None if self.money is None else asdict(self.money),
            "stuck": None if self.stuck is None else asdict(self.stuck),
            "findings": [asdict(one) for one in self.findings],
            "to_log": self.to_log,
            "formats": self.series.formats,
            "unused_lines": self.series.unused,
            "notes": self.notes,
        }


def run_ranks(
    config: RanksConfig, _progress: Progress | None = None, *, read: Callable[[], RankSeries] | None = None
) -> RanksOutcome:
    """Read what ranks hold and answer.

    Parameters
    ----------
    read
        Reads the series; None reads the files of the configuration.
    """
    if read is None and config.log.startswith(("http://", "https://")):
        raise InputError(f"'{config.log}' is watched by the command line: lbopt audit {config.log} --for 60s")
    series = read_rank_log(config.logs) if read is None else read()
    loads = loads_of(series, config.kv_capacity)
    idle, barrier, stuck = idle_of(loads.loads, series), barrier_of(series), stuck_of(series)
    if idle is None:
        raise InputError(
            f"{series.source}: in no moment do all ranks say what they hold and one of them holds anything; give a "
            "part of the log in which requests run"
        )
    law, notes = own_law(loads, series, barrier), list(series.notes)
    shares = _shares(config, series, loads, idle, law, notes) if len(series.ranks) > 1 else []
    if len(shares) > 1 and config.devices == DEFAULT_DEVICES:
        notes.append(
            "the laws are of lbopt's usual devices and model, not of the log's: name yours, --device and --model"
        )
    if config.kv_capacity is not None and loads.how.startswith("tokens"):
        notes.append("--kv-capacity is not used: the log says tokens")
    if left := len(series.seconds) - idle.moments:
        notes.append(f"{left:,} moments do not count: nothing ran in them, or a rank had not spoken yet")
    if silent := int(series.silent.sum()):
        notes.append(
            f"{silent:,} of {series.silent.size:,} entries are of ranks that wrote nothing for longer than they "
            "usually do; they count as without work, since engines log such lines while they run something"
        )
    return RanksOutcome(
        config=config,
        series=series,
        loads=loads,
        idle=idle,
        barrier=barrier,
        stuck=stuck,
        law=law,
        shares=shares,
        money=None if barrier.verdict == "no" else _money(config, shares, len(series.ranks)),
        findings=findings_of(series, loads, idle, barrier, stuck, shares),
        to_log=to_log(series),
        notes=notes,
    )


def _shares(
    config: RanksConfig, series: RankSeries, loads: Loads, idle: Idle, law: OwnLaw | None, notes: list[str]
) -> list[Share]:
    """Return the wait's share of time by law: in proportion to tokens, the log's own, and those of the cards."""
    found = [Share("a step in proportion to its heaviest rank", idle.share, idle.share)]
    if law is not None:
        found.append(Share("fitted to the log's own steps (95 %)", law.low, law.high))
    running = series.of("running")
    if loads.unit != "tokens" or np.isnan(running).all():
        notes.append(
            "laws of step time need tokens and running requests, so the wait is bounded from above alone"
            + ("; --kv-capacity N makes tokens of shares" if loads.unit.startswith("share") else "")
        )
        return found
    for point, where in _points(series, loads):
        for device in config.devices:
            try:
                config_of = CostConfig(devices=(device,), model=config.model)
                costs, _ = cost_of_points([point, point.balanced(LEVEL)], config_of)
            except InputError as error:
                notes.append(f"{device}{where}: no law of step time, since {error}")
                continue
            for cost in costs:
                saved = cost.points[1].figures["time_saved_share"]
                name = f"{cost.law} law of {cost.card.name} with {config.model}{where} (90 %)"
                found.append(Share(name, min(saved.low, idle.share), min(saved.high, idle.share)))
    return found


def _points(series: RankSeries, loads: Loads) -> list[tuple[LoadPoint, str]]:
    """Return the mean step of every barrier group of several ranks, and what to call it."""
    points, several = [], np.unique(series.group).size > 1
    for one in np.unique(series.group):
        mine = series.group == one
        held, running = loads.loads[:, mine], series.of("running")[:, mine]
        rows = ~np.isnan(held).any(axis=1) & (np.nan_to_num(held).max(axis=1) > 0)
        if mine.sum() < 2 or not rows.any() or np.isnan(running[rows]).all():
            continue
        point = LoadPoint.of_means(
            float(held[rows].mean()),
            float((mine.sum() * held[rows].max(axis=1) - held[rows].sum(axis=1)).mean()),
            int(mine.sum()),
            max(float(np.nanmean(running[rows])), 0.01),
        )
        points.append((point, f", group {one + 1}" if several else ""))
    return points


def _money(config: RanksConfig, shares: list[Share], ranks: int) -> Money | None:
    if not shares:
        return None
    gpus, of = config.gpus or ranks, "the price given"
    if config.price is not None:
        prices = config.price, config.price
    else:
        rentals = [card["rental"] for card in map(device_card, config.devices) if "rental" in card.constants]
        if not rentals:
            return None
        prices = min(one.low for one in rentals), max(one.high for one in rentals)
        of = f"the rental on the cards of {', '.join(config.devices)}, USD; --price says yours"
    hours = gpus * HOURS_A_MONTH
    low, high = min(one.low for one in shares), max(one.high for one in shares)
    return Money(gpus, prices, low * hours * prices[0], high * hours * prices[1], of)


STUDY = Study(name="ranks", config=RanksConfig, run=run_ranks, account=("interrupted", "notes"), timings=())
