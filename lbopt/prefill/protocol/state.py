"""What the scheduler knows between two events: each instance, the ledger, the interval, whose turn it is.

Named tuples, because a new one for each event is three times as fast as a frozen data class.

What an instance should have against what it says it has, and what becomes of the requests that it lost.

Three things tell that requests are lost, without waiting for a timer: a newer epoch (the instance has restarted), a
batch named as missing (a newer one came), and less known to the instance than it had acknowledged (it has restarted
under the same epoch). A fourth takes time: nothing is left on the device of a batch, but first tokens of it have not
come. They may be on their way, so that the batch is *gone*, and is queued again only after as long as a watchdog
takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from lbopt.kernels.prefill.rules import Lattice
from lbopt.prefill.pace import Pace
from lbopt.prefill.protocol.anticipation_view import Outlook
from lbopt.prefill.protocol.ledger import Ledger
from lbopt.prefill.protocol.messages import Action, ArmWatchdog
from lbopt.prefill.protocol.setting import ProtocolSetting


class Phase(Enum):
    """Where an instance stands with the scheduler."""

    READY = "ready"
    BUSY = "busy"
    SUSPECT = "suspect"
    REMOVED = "removed"


class Batch(NamedTuple):
    """A batch of which requests are not done.

    Parameters
    ----------
    seq
        Its number.
    requests
        All that it had.
    left
        How many of them are not done.
    gone
        s, when they are queued again, because the instance said that it has nothing of them: time for answers on their
        way; infinity = it did not say so.
    """

    seq: int
    requests: tuple[int, ...]
    left: int
    gone: float = math.inf


class InstanceState(NamedTuple):
    """One instance, as the scheduler sees it.

    Parameters
    ----------
    phase
        See `Phase`.
    seq
        Of the last batch sent, from 1; 0 = none yet. While BUSY it is live.
    deadline
        s. BUSY: of the watchdog, fixed at dispatch. READY with batches: by when a pass must end or a first token come.
        SUSPECT: when it is asked again.
    in_flight
        U_flight: tokens dispatched and not acknowledged. A counter: a watchdog resets it.
    backlog
        R_queued: tokens that the last acknowledged pass left on the device. Likewise.
    known_empty
        The instance said that it has nothing, and nothing was sent since.
    measured
        The newest seq whose pass time went into Algorithm 1: each goes in at most once.
    fence
        Batches up to this seq were requeued when the instance was given up; what it still has of them is void.
    epoch
        The newest that it named; 0 = none yet.
    acknowledged, answered
        The newest batch that it acknowledged, and of which a first token came.
    batches
        What it holds, ascending in seq.
    on_trial
        BUSY with a batch that it got as a SUSPECT: it does not count as living.
    armed
        s, to which its timer is set; infinity = not set.
    load
        Tokens that it said each unit had left when the last pass ended; empty = nothing is known, or nothing left.
    received, number, depth, closing
        The newest batch that it had then, the number of that pass, requests left, and those among them that the pass
        completes which it started by itself.
    ended
        s, when that was heard, or it was heard of for the first time; infinity = not yet.
    placed
        Requests that were sent to it, for the rule that gives them to the units in turn.
    """

    phase: Phase = Phase.READY
    seq: int = 0
    deadline: float = 0.0
    in_flight: int = 0
    backlog: int = 0
    known_empty: bool = True
    measured: int = 0
    fence: int = 0
    epoch: int = 0
    acknowledged: int = 0
    answered: int = 0
    batches: tuple[Batch, ...] = ()
    on_trial: bool = False
    armed: float = math.inf
    load: tuple[int, ...] = ()
    received: int = 0
    number: int = 0
    depth: int = 0
    closing: int = 0
    ended: float = 0.0
    placed: int = 0

    @property
    def due(self) -> float:
        """When something has to be done about it, s: its deadline or that of a batch; infinity = never."""
        phase, due = self.phase, self.deadline
        if phase is Phase.REMOVED or (phase is Phase.READY and not self.batches):
            return math.inf
        for batch in self.batches:
            if batch.gone < due:
                due = batch.gone
        return due

    @property
    def lives(self) -> bool:
        """Whether nothing speaks against it."""
        return self.phase is Phase.READY or (self.phase is Phase.BUSY and not self.on_trial)


class Counts(NamedTuple):
    """What went wrong so far.

    Parameters
    ----------
    faults
        Watchdogs that ran out.
    degraded
        Batches that went to a SUSPECT instance, on the interval alone.
    restarts
        Times that an instance named a newer epoch, or had forgotten batches that it had acknowledged.
    gaps
        Batches that an instance named as missing.
    unanswered
        Batches that were done on the device while some of their first tokens never came.
    again
        Requests that were queued again.
    duplicates
        First tokens that came for a request which was done or refused already.
    doubled
        Arrivals of a request that had arrived.
    stale
        Messages of an old epoch, or of an instance that is removed.
    clock_steps
        Times that the clock stepped back.
    """

    faults: int = 0
    degraded: int = 0
    restarts: int = 0
    gaps: int = 0
    unanswered: int = 0
    again: int = 0
    duplicates: int = 0
    doubled: int = 0
    stale: int = 0
    clock_steps: int = 0


class SchedulerState(NamedTuple):
    """All of it. Times are the scheduler's own, which never go back.

    Parameters
    ----------
    instances
        One state an instance.
    ledger
        Of all requests.
    pace
        Algorithm 1.
    now
        s, time of the last event.
    ahead
        s, by which the scheduler's time is ahead of the clock: all steps back of the clock together.
    due
        s, when the interval has elapsed (`spacing`), or the next tick (`tick`).
    last_dispatch
        s, or None before the first.
    turn
        The instance from which the ring is searched.
    counts
        What went wrong.
    lattice
        Of the reading ``lattice``.
    outlook
        What the instances are reckoned to do, if batches are sent ahead of the end of a pass; `due` is then the time
        of the next look.
    """

    instances: tuple[InstanceState, ...]
    ledger: Ledger
    pace: Pace
    now: float = 0.0
    ahead: float = 0.0
    due: float = 0.0
    last_dispatch: float | None = None
    turn: int = 0
    counts: Counts = Counts()
    lattice: Lattice = Lattice(0.0, 0, 0)
    outlook: Outlook | None = None

    @property
    def faults(self) -> int:
        """Watchdogs that ran out."""
        return self.counts.faults

    @property
    def degraded(self) -> int:
        """Batches that went to a SUSPECT instance."""
        return self.counts.degraded

    @property
    def healthy(self) -> int:
        """Instances that are not removed."""
        return sum(instance.phase is not Phase.REMOVED for instance in self.instances)


def initial_state(setting: ProtocolSetting) -> SchedulerState:
    """Return the state before the first event: a cold fleet, all of it ready, and the interval elapsed."""
    at = InstanceState(ended=math.inf if setting.announced else 0.0)
    outlook = Outlook.cold(setting) if setting.dispatch == "ahead" else None
    return SchedulerState((at,) * setting.num_instances, Ledger(), Pace.cold(setting), outlook=outlook)


def with_instance(state: SchedulerState, instance: int, at: InstanceState) -> SchedulerState:
    """Return the state with another state of one instance."""
    instances = (*state.instances[:instance], at, *state.instances[instance + 1 :])
    return state._replace(instances=instances)


Step = tuple[SchedulerState, tuple[Action, ...]]


def counted(state: SchedulerState, **more: int) -> SchedulerState:
    """Return the state with its counts raised."""
    counts = state.counts
    return state._replace(counts=counts._replace(**{name: getattr(counts, name) + n for name, n in more.items()}))


def given_up(state: SchedulerState, instance: int, batches: Sequence[Batch]) -> SchedulerState:
    """Queue again what the instance still holds of these batches."""
    if not batches:
        return state
    ledger = state.ledger.requeue(instance, [(batch.seq, batch.requests) for batch in batches])
    return counted(state._replace(ledger=ledger), again=ledger.waiting - state.ledger.waiting)


def without(at: InstanceState, batches: Sequence[Batch]) -> InstanceState:
    """Return the instance without these batches."""
    return at._replace(batches=tuple(batch for batch in at.batches if batch not in batches))


def answered(at: InstanceState, seq: int) -> InstanceState:
    """Return the instance after one more request of batch `seq` is done."""
    less = (batch._replace(left=batch.left - 1) if batch.seq == seq else batch for batch in at.batches)
    return at._replace(batches=tuple(batch for batch in less if batch.left))


def emptied(at: InstanceState, phase: Phase) -> InstanceState:
    """Return the instance in another phase after all that it held was given up: what it may still have is void."""
    known = at._replace(phase=phase, in_flight=0, backlog=0, load=(), batches=())
    return known._replace(known_empty=False, fence=at.seq, on_trial=False)


def in_new_epoch(state: SchedulerState, instance: int, epoch: int) -> SchedulerState:
    """Return the state after the instance named an epoch above the known one; the first ever named is only noted."""
    at = state.instances[instance]
    if at.epoch:
        state = counted(given_up(state, instance, at.batches), restarts=1)
        at = emptied(at, Phase.READY)
    at = at._replace(epoch=epoch, load=(), number=0)
    return with_instance(state, instance, at)


def compared(
    state: SchedulerState,
    instance: int,
    at: InstanceState,
    newest: int,
    oldest: int,
    missing: tuple[int, ...],
    answers_by: float,
) -> tuple[SchedulerState, InstanceState]:
    """Queue missing batches again, and note which ones are gone.

    Parameters
    ----------
    state, instance, at
        The state, and the instance as it will be in it.
    newest, oldest, missing
        The newest batch that it had, the oldest of which something is left (0 = not told), and those that never came.
    answers_by
        s; until then first tokens of a batch that is gone may come.
    """
    if missing and (lost := [batch for batch in at.batches if batch.seq in missing]):
        state, at = counted(given_up(state, instance, lost), gaps=len(lost)), without(at, lost)
    if any(batch.seq < oldest and batch.seq <= newest and batch.gone > answers_by for batch in at.batches):
        batches = (
            batch._replace(gone=min(batch.gone, answers_by)) if batch.seq < oldest and batch.seq <= newest else batch
            for batch in at.batches
        )
        at = at._replace(batches=tuple(batches))
    return state, at


def armed(instance: int, at: InstanceState) -> tuple[InstanceState, tuple[Action, ...]]:
    """Set the instance's timer if something is due before it would ring; one that rings too early is set again then."""
    if at.due >= at.armed:
        return at, ()
    return at._replace(armed=at.due), (ArmWatchdog(instance, at.due),)
