"""What became of a run of the world: who was served, how often, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.prefill.protocol.state import SchedulerState


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run.

    Parameters
    ----------
    state
        The scheduler's last.
    delivered, refused
        Requests, in this order.
    events
        Steps of the scheduler.
    executions
        How often each request was prefilled to its end, on whatever instance.
    requeued
        How often each request was taken back from an instance; absent = never.
    late_top_ups
        Batches that came to an instance during a pass: their wait counts as device-side.
    delivered_at
        s, when the first token of each of `delivered` was handed on.
    false_alarms
        Watchdogs that ran out, out of `state.faults`, while a pass was running on the instance.
    sent_to_dead
        Requests that were sent to an instance that was down, once for each time.
    """

    state: SchedulerState
    delivered: tuple[int, ...]
    refused: tuple[int, ...]
    events: int
    executions: dict[int, int]
    requeued: dict[int, int]
    late_top_ups: int
    delivered_at: tuple[float, ...]
    false_alarms: int
    sent_to_dead: tuple[int, ...]
