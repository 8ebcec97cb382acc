"""When a batch leaves and to whom: rules as functions of numbers and named tuples, without a state.

The compiled loop and the protocol of messages call the same functions, the loop compiled (`kernel(...)` where it needs
them, so that they call none of each other), the protocol as they are. A rule of another engine for when prompts may be
computed would stand here too.

The dispatch interval is that of Algorithm 1 of SBS (arXiv 2512.16134), (mean pass + latency) / healthy instances. It is
read in two ways. *Spacing*: it runs from the last dispatch; after a second one the next of the ring is not waited for.
*Lattice*: ticks lie at anchor + tick * interval, whether or not anything is sent; one that passes while a request waits
allows a dispatch, the second such tick one to any that is ready.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lbopt.kernels.prefill.codes import FILLED, LEAST_MARGIN


class Lattice(NamedTuple):
    """The next tick is at `anchor` + `tick` * interval, s; `waited` ticks passed while a request waited."""

    anchor: float
    tick: int
    waited: int


class PassToCome(NamedTuple):
    """The next pass of an instance, for which a batch may be sent ahead.

    Parameters
    ----------
    runs
        Whether a pass runs that has to end before.
    began, ends
        s, of the running pass: its start and its predicted end.
    by_itself
        Whether the next one starts by itself then, as something is there for it or on the way.
    room
        Tokens that it can still take.
    """

    runs: bool
    began: float
    ends: float
    by_itself: bool
    room: int


class Moment(NamedTuple):
    """A look at the queue.

    Parameters
    ----------
    now, latency
        s, the time, and how long a batch is on its way.
    margin
        s, before the predicted end of a pass at which a batch is to be there.
    due
        s, before which no pass is to start that would not start by itself.
    queued
        Tokens that wait.
    """

    now: float
    latency: float
    margin: float
    due: float
    queued: int


def interval_of(mean_pass: float, latency: float, healthy: int) -> float:
    """Return the interval of Algorithm 1, s."""
    return (mean_pass + latency) / healthy


def spaced(now: float, due: float, interval: float) -> tuple[bool, bool, float]:
    """Return whether a batch may leave, whether to any that is ready, and when to look again; `due` is in s."""
    if now < due:
        return False, False, due
    if now < due + interval:
        return True, False, due + interval
    return True, True, math.inf


def next_tick(lattice: Lattice, interval: float) -> float:
    """Return the time of the first tick that has not passed, s."""
    return lattice.anchor + lattice.tick * interval


def passed(lattice: Lattice, now: float, interval: float) -> Lattice:
    """Return the lattice after all ticks before `now`."""
    anchor = lattice.anchor
    if anchor + lattice.tick * interval >= now:
        return lattice
    k = math.ceil((now - anchor) / interval)
    while anchor + k * interval < now:  # rounding may put the quotient one off, either way
        k += 1
    while anchor + (k - 1) * interval >= now:
        k -= 1
    return Lattice(anchor, k, lattice.waited)


def ticked(lattice: Lattice, now: float, interval: float) -> Lattice:
    """Return a lattice whose ticks before `now` have passed after a look while a request waits: so has one at `now`."""
    if lattice.anchor + lattice.tick * interval == now:
        return Lattice(lattice.anchor, lattice.tick + 1, lattice.waited + 1)
    return lattice


def goes_before(runs: bool, free_since: float, other_runs: bool, other_free_since: float) -> bool:
    """Tell whether an instance gets a batch before another: it runs nothing, or has been free for longer."""
    return free_since < other_free_since if runs == other_runs else other_runs


def opening(ahead: PassToCome, at: Moment) -> tuple[float, float]:
    """Return when the pass starts that a batch is sent for, and from when on it may be sent, s; infinity = too late.

    Where the queue fills the pass, a later batch would be no better: it leaves FILLED margins early, without spacing.
    """
    reach = at.now + at.latency
    start = max(ahead.ends, reach) if ahead.runs else reach
    fills = at.queued >= ahead.room
    opens = at.now
    in_time = ahead.ends - ((FILLED * at.margin if fills else at.margin) + at.latency)
    if ahead.by_itself:
        if not ahead.runs:
            opens = math.inf if at.latency > 0 else at.now
        elif ahead.began + at.latency <= ahead.ends:  # else no batch is ever in time, and all go at once
            opens = math.inf if reach > ahead.ends else in_time
    elif fills:
        opens = in_time if ahead.runs else at.now
    else:
        opens = (max(ahead.ends - LEAST_MARGIN, at.due) if ahead.runs else at.due) - at.latency
    return start, opens


def slope_of(count: int, x: float, y: float, xx: float, xy: float) -> float:
    """Return the slope of the least-squares line, from 0 to y / x: no pass takes less for more, or less than nothing.

    Parameters
    ----------
    count
        Of points.
    x, y, xx, xy
        Sums over them: of tokens, of seconds, and of products.
    """
    spread = count * xx - x * x
    return min(max((count * xy - x * y) / spread, 0.0), y / x) if spread > 0 else 0.0
