"""Whose turn it is: a ring over the instances that skips those which cannot be served.

The source speaks of the "next target instance" and gives no rule. Ours: once the interval has elapsed, the first READY
instance from the one after the last target on; a slow instance at the head is skipped, not waited for. A SUSPECT one is
served, on the interval alone, only where no instance lives: neither READY nor BUSY with a batch that it got as READY.
"""

from __future__ import annotations

from lbopt.prefill.protocol.state import Phase, SchedulerState


def target(state: SchedulerState, elapsed: bool, idle_bypass: bool) -> int | None:
    """Return the instance to serve now, or None.

    Parameters
    ----------
    state
        The scheduler's.
    elapsed
        Whether the interval has.
    idle_bypass
        Whether an instance known to be empty may be served before.
    """
    if not (elapsed or idle_bypass):
        return None
    count = len(state.instances)
    ring = [(state.turn + step) % count for step in range(count)]
    if not elapsed:
        ready = (g for g in ring if state.instances[g].phase is Phase.READY and state.instances[g].known_empty)
        return next(ready, None)
    lives = any(at.lives for at in state.instances)
    wanted = Phase.READY if lives else Phase.SUSPECT
    return next((g for g in ring if state.instances[g].phase is wanted), None)
