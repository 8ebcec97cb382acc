"""What the scheduler hears (events) and what it does (actions): small frozen records, times in s.

Every message may be lost, late, doubled or out of order. Whatever an instance says carries its *epoch*, a number that
is higher after every restart (the start time of its process will do); 0 = not told, taken for the known one. Batches
of an instance are numbered without gaps, over all of its epochs. An instance takes a batch only if its number is above
all that it has received: one that was overtaken counts as lost, and is named in `missing`.

Timers are the scheduler's own: one for the interval and one for each instance, and to set one voids what it was set to
before. They may fire early or late; a spurious one changes nothing. Times are readings of one clock, which may step.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request comes in, with `tokens` >= 1 of prompt."""

    time: float
    request: int
    tokens: int


@dataclass(frozen=True, slots=True)
class EndForward:
    """A pass ended on the instance.

    Parameters
    ----------
    time, instance
        When it is heard, s, and of whom.
    seq
        The newest batch that the instance had when the pass began.
    seconds
        How long the pass took, s.
    remaining
        Backlog on the device, tokens.
    epoch
        Of the instance.
    oldest
        The oldest batch of which something is left on the device; 0 = not told. Of no older one is anything left.
    missing
        Batches that never came although newer ones did; the instance will not take them any more.
    units
        Backlog of each unit, tokens; empty = `remaining` on one unit.
    newest
        The newest batch that the instance has when the pass ends; 0 = not told, taken for `seq`.
    number
        Of the pass, ascending while the epoch lasts; 0 = not told.
    depth, closing
        Requests left on the device, and how many of these the pass completes that the instance now starts by itself.
    """

    time: float
    instance: int
    seq: int
    seconds: float
    remaining: int
    epoch: int = 0
    oldest: int = 0
    missing: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    newest: int = 0
    number: int = 0
    depth: int = 0
    closing: int = 0


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The instance has prefilled a request of batch `seq`."""

    time: float
    instance: int
    seq: int
    request: int
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class PollAnswer:
    """What an instance has; it also says so unasked when it has started, and when a batch for another epoch comes.

    The echoed `seq` is our reading of "the poll was sent after delivery is certain": an answer that names the batch was
    given after its delivery, whatever the clocks and the network do.

    Parameters
    ----------
    time, instance
        When it is heard, s, and of whom.
    seq
        The newest batch that it had received when it answered.
    depth
        Requests on the device then.
    epoch, oldest, missing
        See `EndForward`.
    asked
        The number in the poll: if it is above `seq`, the instance has forgotten batches that it had acknowledged.
    units
        Backlog of each unit, tokens; empty = not told.
    """

    time: float
    instance: int
    seq: int
    depth: int
    epoch: int = 0
    oldest: int = 0
    missing: tuple[int, ...] = ()
    asked: int = 0
    units: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Watchdog:
    """The timer of an instance's batch rings."""

    time: float
    instance: int


@dataclass(frozen=True, slots=True)
class IntervalTick:
    """The interval's timer rings."""

    time: float


@dataclass(frozen=True, slots=True)
class PollTick:
    """The polling timer rings."""

    time: float


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """An instance was found healthy or not."""

    time: float
    instance: int
    healthy: bool
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Inbox:
    """Several events that came at one moment: all are heard before a batch is sent."""

    time: float
    events: tuple[Event, ...]


Event = Arrival | EndForward | FirstToken | PollAnswer | Watchdog | IntervalTick | PollTick | HealthCheck | Inbox


@dataclass(frozen=True, slots=True)
class Send:
    """Send a batch; the instance forgets what it has of batches up to `fence`, which were given to others.

    An instance of another epoch does not take it, and says what its epoch is. 0 = any. `units` has the unit of each
    request; empty = all on the first one.
    """

    instance: int
    seq: int
    fence: int
    requests: tuple[int, ...]
    epoch: int = 0
    units: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmWatchdog:
    """Ring `Watchdog` for the instance at `deadline`, and not at the time set before."""

    instance: int
    deadline: float


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Ring `IntervalTick` at `time`, and not at the time set before."""

    time: float


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask an instance how many requests it has; `asked` is the newest batch that it has acknowledged."""

    instance: int
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the first token of a request on to its user; once a request."""

    request: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Turn a request away (flow control)."""

    request: int


Action = Send | ArmWatchdog | WakeAt | Poll | Deliver | Refuse
