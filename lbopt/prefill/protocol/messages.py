"""What the scheduler hears (events) and what it does (actions): small frozen records, times in s.

Batches and first tokens go over connections that deliver late, twice and out of order, but lose nothing as long as the
instance is not removed: the table of the source has no way back from a batch that never arrives at a healthy instance.
Pushed events and poll answers may be lost. Timers are the scheduler's own; a spurious one changes nothing.
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
    """A pass of `seconds` ended on the instance; `seq` is the newest batch it had when the pass began.

    `remaining` is the backlog on the device, tokens.
    """

    time: float
    instance: int
    seq: int
    seconds: float
    remaining: int


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The instance has prefilled a request of batch `seq`."""

    time: float
    instance: int
    seq: int
    request: int


@dataclass(frozen=True, slots=True)
class PollAnswer:
    """`depth` requests were on the device when it answered; `seq` is the newest batch it had received by then.

    The echoed `seq` is our reading of "the poll was sent after delivery is certain": an answer that names the batch was
    given after its delivery, whatever the clocks and the network do.
    """

    time: float
    instance: int
    seq: int
    depth: int


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


Event = Arrival | EndForward | FirstToken | PollAnswer | Watchdog | IntervalTick | PollTick | HealthCheck


@dataclass(frozen=True, slots=True)
class Send:
    """Send a batch; the instance forgets what it has of batches up to `fence`, which were given to others."""

    instance: int
    seq: int
    fence: int
    requests: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArmWatchdog:
    """Ring `Watchdog` for the instance at `deadline`."""

    instance: int
    deadline: float


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Ring `IntervalTick` at `time`."""

    time: float


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask an instance how many requests it has."""

    instance: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the first token of a request on to its user; once a request."""

    request: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Turn a request away (flow control)."""

    request: int


Action = Send | ArmWatchdog | WakeAt | Poll | Deliver | Refuse
