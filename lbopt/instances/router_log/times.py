"""Which columns make the three times of a request (its arrival, the start of its decoding, its end), and their units.

A unit comes from the name of a column, from the magnitude of dates, else from how long a token takes: decoding one
takes between half a millisecond and a second on every engine, so that the median of (finish - start) / output in the
numbers of the file tells their unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS
from lbopt.exceptions import InputError
from lbopt.instances.readers.values import BAD
from lbopt.instances.router_log.guess import Choice, Chooser
from lbopt.instances.router_log.quantities import EPOCH, Clock, epoch_unit, read_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Columns of the times.

    Parameters
    ----------
    arrival
        Column of absolute times.
    begin
        "start", "first_token", "ttft" or "queue": what says when decoding started.
    begin_column
        Its column. A ttft or a queue time counts from the arrival.
    end
        "finish", "e2e", "decode" or "tpot": what says when the request finished.
    end_column
        Its column. An e2e latency counts from the arrival, the others from the start of decoding.
    arrival_is_start
        Whether the log has no arrivals, and the start of decoding stands for them.
    """

    arrival: Choice
    begin: str
    begin_column: Choice
    end: str
    end_column: Choice
    arrival_is_start: bool = False

    @property
    def after_first_token(self) -> bool:
        """Whether the first token was out when `start` was read: one more in memory, one less to decode."""
        return self.begin in ("first_token", "ttft")


def plan_times(chooser: Chooser) -> Plan:
    """Choose the columns of the times."""
    arrival = chooser.find("arrival")
    begin, column = _begin(chooser, arrival)
    if column is None:
        raise chooser.missing("start")
    arrival_is_start = False
    if arrival is None:
        chooser.refuse_unreadable("arrival")
        # "start" beside a first token is when the request started, not when its decoding did.
        arrival = chooser.find("start") if begin != "start" else None
        if arrival is None and begin in ("ttft", "queue"):
            raise chooser.missing("arrival")
        if arrival is None:
            arrival, arrival_is_start = column, True
    end, end_column = _end(chooser)
    if end_column is None:
        raise chooser.missing("finish")
    if arrival_is_start and begin == "start" and not column.given and end == "finish":
        _refuse_later_moment(chooser, column, end_column)
    return Plan(
        arrival=arrival,
        begin=begin,
        begin_column=column,
        end=end,
        end_column=end_column,
        arrival_is_start=arrival_is_start,
    )


def _refuse_later_moment(chooser: Chooser, start: Choice, end: Choice) -> None:
    """Refuse to take a call for the start of decoding where another column lies between it and the end."""
    early, late = (read_clock(chooser, one, "start", absolute=True) for one in (start, end))
    for name in chooser.table.columns:
        if name in (*start.names, *end.names) or chooser.fault("finish", name) is not None:
            continue
        try:
            other = read_clock(chooser, Choice((name,)), "start", absolute=True)
        except InputError:
            continue
        if other.unit != early.unit or (early.unit != "date-time" and epoch_unit(early.raw) is None):
            continue
        there = ~(np.isnan(early.raw) | np.isnan(late.raw) | np.isnan(other.raw))
        inside = (early.raw <= other.raw) & (other.raw <= late.raw)
        strictly = (early.raw < other.raw) & (other.raw < late.raw)
        if there.any() and inside[there].mean() >= _BETWEEN and strictly[there].mean() > 0.5:
            raise InputError(
                f"{chooser.table.source}: column {start.name!r} may be the call or the start of decoding, since "
                f"{name!r} lies between it and {end.name!r}; name both, --column arrival={start.name} --column "
                f"first_token={name}, or --column start={start.name}"
            )


#: Share of rows in which a moment between start and end lies between them.
_BETWEEN = 0.99


def _begin(chooser: Chooser, arrival: Choice | None) -> tuple[str, Choice | None]:
    for quantity in ("start", "first_token", "ttft", "queue"):
        if choice := chooser.given.get(quantity):
            return quantity, choice
    if "start" not in chooser.given and (choice := chooser.find_at("start", 0)):
        return "start", choice
    counts_from = arrival or chooser.find("start")
    for quantity in ("first_token", "ttft", "start", "queue"):
        if quantity in ("ttft", "queue") and counts_from is None:
            continue
        if choice := chooser.find(quantity):
            return quantity, choice
    return "start", None


def _end(chooser: Chooser) -> tuple[str, Choice | None]:
    for quantity in ("finish", "e2e", "decode", "tpot"):
        if choice := chooser.given.get(quantity):
            return quantity, choice
    for quantity in ("finish", "e2e", "decode", "tpot"):
        if choice := chooser.find(quantity):
            return quantity, choice
    return "finish", None


#: Seconds a token may take in the median; what lies outside was read in the wrong unit.
PLAUSIBLE = (0.2e-3, 5.0)

_UNIT_WAY_OUT = "name the unit, unit=s, ms, us or ns"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Times:
    """The times of the rows in seconds.

    Parameters
    ----------
    arrival, start, finish
        float64 (N,), since the first arrival; NaN where the file has none.
    origin
        Nanoseconds since 1970 of second 0, None where the file has no dates.
    """

    arrival: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    origin: int | None


def settle_units(clocks: dict[str, Clock], plan: Plan, steps: NDArray[np.float64], workers: int) -> list[str]:
    """Give each column its unit (`clocks` is changed in place), and return notes about what was assumed.

    Parameters
    ----------
    clocks
        By "arrival", "begin" and "end".
    steps
        (N,), decode steps, NaN where unknown.
    """
    notes: list[str] = []
    begin, end = clocks["begin"], clocks["end"]
    absolute = [clocks["arrival"]]
    absolute += [begin] if plan.begin in ("start", "first_token") else []
    absolute += [end] if plan.end == "finish" else []
    unsaid = [clock for clock in absolute if clock.unit is None]
    opening = begin if begin in absolute else clocks["arrival"]
    raw_pace = _median((end.raw - opening.raw) / steps) if end in absolute else np.nan
    dates = [epoch_unit(clock.raw) for clock in unsaid]
    for clock, unit in zip(unsaid, dates, strict=True):
        clock.unit, clock.said = (None if None in dates else unit), "epoch"
    if end in unsaid and opening in unsaid and end.unit == opening.unit and not _plausible(raw_pace, end.unit):
        for clock in unsaid:  # a clock that happens to count as far as a date
            clock.unit = None
    _settle_durations([clock for clock in (begin, end) if clock not in absolute], clocks, plan, steps)
    left = [clock for clock in unsaid if clock.unit is None]
    if left:
        named = next((clock.unit for clock in absolute if clock.unit in SECONDS and clock.said == "name"), None)
        if end in left and opening in left:
            unit = _by_pace(raw_pace)
        elif named is not None:
            unit = named
        else:
            unit = _by_load(clocks, plan, steps, workers)
            notes.append(
                f"column '{left[0].name}' was taken to be in {unit}, by how busy workers are; unit says otherwise"
            )
        for clock in left:
            clock.unit, clock.said = unit, "content"
    return notes


def _settle_durations(open_: list[Clock], clocks: dict[str, Clock], plan: Plan, steps: NDArray[np.float64]) -> None:
    """Give durations their units.

    Parameters
    ----------
    open_
        The durations among `clocks`.
    clocks, plan, steps
        As in `settle_units`.
    """
    begin, end = clocks["begin"], clocks["end"]
    if end in open_ and end.unit is None:
        end.unit = _by_pace(_median(end.raw if plan.end == "tpot" else end.raw / steps))
        end.said = "content"
    if begin not in open_ or begin.unit is not None:
        return
    begin.said = "content"
    longest = end.seconds() if plan.end == "e2e" else None
    if plan.end == "finish" and end.unit is not None and end.unit == clocks["arrival"].unit:
        size = SECONDS.get(end.unit, 1e-9)
        longest = (end.raw - clocks["arrival"].raw) * size
    fitting = [unit for unit in SECONDS if longest is None or _fits(begin.raw * SECONDS[unit], longest)]
    likely = [unit for unit in fitting if 1e-3 <= _median(begin.raw[begin.raw > 0]) * SECONDS[unit] <= 60.0]
    if end in open_ and end.said == "content" and (end.unit in likely or not likely):
        begin.unit = end.unit
    elif len(likely) > 1:
        raise _ask(begin.name, likely)
    else:
        begin.unit = (likely or fitting or ["s"])[0]


def _fits(part: NDArray[np.float64], whole: NDArray[np.float64]) -> bool:
    both = ~np.isnan(part) & ~np.isnan(whole)
    return bool(np.mean(part[both] <= whole[both] + 1e-3) >= 0.999) if both.any() else True


def _by_pace(raw: float) -> str:
    """Return the unit in which a token takes a plausible time."""
    if np.isnan(raw):
        raise InputError("no request of the log finished; the unit of its times is not known: name it, unit=s")
    return "s" if raw < 1 else "ms" if raw < 1e3 else "us" if raw < 1e6 else "ns"


def _by_load(clocks: dict[str, Clock], plan: Plan, steps: NDArray[np.float64], workers: int) -> str:
    """Return the unit of arrivals in which a worker serves a plausible number of requests at a time, or ask.

    Parameters
    ----------
    clocks, plan, steps, workers
        As in `settle_units`.
    """
    end = clocks["end"]
    if end.unit is None or plan.end == "finish":
        return "s"
    size = SECONDS.get(end.unit, 1e-9)
    busy = float(np.nansum(end.raw * size * (steps if plan.end == "tpot" else 1.0)))
    span = float(np.nanmax(clocks["arrival"].raw) - np.nanmin(clocks["arrival"].raw))
    if busy <= 0 or span <= 0:
        return "s"
    together = {unit: busy / (span * size * workers) for unit, size in SECONDS.items()}
    likely = [unit for unit, count in together.items() if TOGETHER[0] <= count <= TOGETHER[1]]
    if len(likely) != 1:
        raise _ask(clocks["arrival"].name, likely or sorted(together, key=lambda unit: abs(np.log(together[unit])))[:2])
    return likely[0]


#: Requests that a worker serves at a time, in the mean over a log whose unit is not in doubt.
TOGETHER = (0.1, 1000.0)


def _ask(name: str, units: list[str]) -> InputError:
    """Return the question for the unit of a column."""
    return InputError(
        f"column {name!r} may be in {' or in '.join(units)}; call it {' or '.join(f'{name}_{unit}' for unit in units)}"
    )


def check_pace(times: Times, steps: NDArray[np.float64], clocks: dict[str, Clock]) -> str | None:
    """Refuse times in which a token takes absurdly long or short; return a note where an option asked for them.

    Parameters
    ----------
    times
        The times, with a finish of finished requests alone.
    steps, clocks
        As in `settle_units`.
    """
    pace = _median((times.finish - times.start) / steps)
    if np.isnan(pace) or PLAUSIBLE[0] <= pace <= PLAUSIBLE[1]:
        return None
    how = f"a token takes {pace:.3g} s in the median; expected {PLAUSIBLE[0]:g} to {PLAUSIBLE[1]:g} s"
    if any(clock.said == "option" for clock in clocks.values()):
        return f"in the unit that the option named, {how}"
    units = ", ".join(sorted({f"{clock.name!r} in {clock.unit}" for clock in clocks.values()}))
    raise InputError(f"read with {units}, {how}; {_UNIT_WAY_OUT}, or the columns of start, finish and output")


def seconds_of(clocks: dict[str, Clock], plan: Plan, steps: NDArray[np.float64]) -> Times:
    """Return the times in seconds since the first arrival.

    Parameters
    ----------
    clocks, plan, steps
        As in `settle_units`, with units.
    """
    arrivals = clocks["arrival"].nanoseconds()
    if (arrivals == BAD).all():
        raise InputError(f"column {clocks['arrival'].name!r} holds no time")
    first = int(arrivals[arrivals != BAD].min())

    def since(clock: Clock) -> NDArray[np.float64]:
        stamps = clock.nanoseconds()
        _same_calendar(clocks["arrival"], first, clock, stamps[stamps != BAD])
        return np.asarray(np.where(stamps == BAD, np.nan, (stamps - first) / 1e9), dtype=np.float64)

    arrival = since(clocks["arrival"])
    begin, end = clocks["begin"], clocks["end"]
    start = since(begin) if plan.begin in ("start", "first_token") else arrival + begin.seconds()
    if plan.end == "finish":
        finish = since(end)
    elif plan.end == "e2e":
        finish = arrival + end.seconds()
    else:
        finish = start + end.seconds() * (steps if plan.end == "tpot" else 1.0)
    dated = EPOCH[0] * 1e9 <= first <= EPOCH[1] * 1e9
    known = clocks["arrival"].unit == "date-time" or clocks["arrival"].said == "epoch" or first > EPOCH[0] * 1e9
    return Times(arrival=arrival, start=start, finish=finish, origin=first if dated and known else None)


def _same_calendar(one: Clock, first: int, other: Clock, stamps: NDArray[np.int64]) -> None:
    low, high = (int(edge * 1e9) for edge in EPOCH)
    if stamps.size and (low <= first <= high) != (low <= int(np.median(stamps)) <= high):
        raise InputError(
            f"column {one.name!r} ({one.unit}) and column {other.name!r} ({other.unit}) do not count from the same "
            f"moment; name the columns of the times, or {_UNIT_WAY_OUT}"
        )


def _plausible(pace: float, unit: str | None) -> bool:
    return unit is None or bool(np.isnan(pace)) or PLAUSIBLE[0] <= pace * SECONDS.get(unit, 1e-9) <= PLAUSIBLE[1]


def _median(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")
