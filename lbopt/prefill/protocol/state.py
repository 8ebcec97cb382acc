"""What the scheduler knows between two events: each instance, the ledger, the interval, whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lbopt.prefill.adaptive_interval import AdaptiveInterval
from lbopt.prefill.protocol.ledger import Ledger
from lbopt.prefill.protocol.setting import ProtocolSetting


class Phase(Enum):
    """Where an instance stands with the scheduler."""

    READY = "ready"
    BUSY = "busy"
    SUSPECT = "suspect"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class InstanceState:
    """One instance, as the scheduler sees it.

    Parameters
    ----------
    phase
        See `Phase`.
    seq
        Of the last batch sent, from 1; 0 = none yet. While BUSY it is live.
    deadline
        s, of the watchdog, fixed at dispatch; has a meaning while BUSY.
    in_flight
        U_flight: tokens dispatched and not acknowledged. A counter: a watchdog resets it.
    backlog
        R_queued: tokens that the last acknowledged pass left on the device. Likewise.
    known_empty
        The instance said that it has nothing, and nothing was sent since.
    measured
        The newest seq whose pass time went into Algorithm 1: each goes in at most once.
    fence
        Batches up to this seq were requeued when the instance was removed; what is heard of them is void.
    """

    phase: Phase = Phase.READY
    seq: int = 0
    deadline: float = 0.0
    in_flight: int = 0
    backlog: int = 0
    known_empty: bool = True
    measured: int = 0
    fence: int = 0


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """All of it.

    Parameters
    ----------
    instances
        One state an instance.
    ledger
        Of all requests.
    pace
        Algorithm 1; never changed in place, an event that changes it works on a copy.
    now
        s, time of the last event.
    due
        s, when the interval has elapsed (`spacing`), or the next tick (`tick`).
    last_dispatch
        s, or None before the first.
    turn
        The instance from which the ring is searched.
    faults
        Watchdogs that ran out.
    degraded
        Batches that went to a SUSPECT instance, on the interval alone.
    """

    instances: tuple[InstanceState, ...]
    ledger: Ledger
    pace: AdaptiveInterval
    now: float = 0.0
    due: float = 0.0
    last_dispatch: float | None = None
    turn: int = 0
    faults: int = 0
    degraded: int = 0

    @property
    def healthy(self) -> int:
        """Instances that are not removed."""
        return sum(instance.phase is not Phase.REMOVED for instance in self.instances)


def initial_state(setting: ProtocolSetting) -> SchedulerState:
    """Return the state before the first event: a cold fleet, all of it ready, and the interval elapsed."""
    pace = AdaptiveInterval(setting.window, setting.default_pass, setting.latency, setting.num_instances)
    return SchedulerState((InstanceState(),) * setting.num_instances, Ledger({}), pace)
