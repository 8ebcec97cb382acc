"""What an instance should have against what it says it has, and what becomes of the requests that it lost.

Three things tell that requests are lost, without waiting for a timer: a newer epoch (the instance has restarted), a
batch named as missing (a newer one came), and less known to the instance than it had acknowledged (it has restarted
under the same epoch). A fourth takes time: nothing is left on the device of a batch, but first tokens of it have not
come. They may be on their way, so that the batch is *gone*, and is queued again only after as long as a watchdog
takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.prefill.protocol.messages import Action, ArmWatchdog
from lbopt.prefill.protocol.state import Batch, InstanceState, Phase, SchedulerState, with_instance

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


def in_new_epoch(state: SchedulerState, instance: int, epoch: int) -> SchedulerState:
    """Return the state after the instance named an epoch above the known one; the first ever named is only noted."""
    at = state.instances[instance]
    if at.epoch:
        state = counted(given_up(state, instance, at.batches), restarts=1)
        at = at._replace(
            phase=Phase.READY, in_flight=0, backlog=0, known_empty=False, fence=at.seq, batches=(), on_trial=False
        )
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
