"""What a scheduler that sends ahead reckons with, for the key of a system of `explore`: times count from now."""

from __future__ import annotations

from lbopt.prefill.protocol.state import SchedulerState


def reckoned(state: SchedulerState) -> tuple | None:
    """All that decides what is sent ahead; None = nothing is."""
    outlook, now = state.outlook, state.now
    if outlook is None:
        return None

    def from_now(*times: float) -> tuple[float, ...]:
        return tuple(round(max(time - now, -150.0), 6) for time in times)

    views = tuple(
        (
            *(view.left, view.running, view.closed, view.newest, view.through, view.since, view.number),
            tuple((batch.seq, *from_now(batch.reach), batch.tokens) for batch in view.coming),
            from_now(view.began, view.ends, view.free_since, view.told),
        )
        for view in outlook.views
    )
    law = outlook.law
    learned = law.tokens, *(tuple(round(one, 6) for one in values) for values in (law.seconds, law.missed)), law.strange
    return views, learned, from_now(outlook.last_start), outlook.enough
