"""What workers in detail did beyond making tokens: pre-emptions, tokens computed twice, memory in use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lbopt.kernels.detail import state as compiled

if TYPE_CHECKING:
    from lbopt.simulator.run import Run


@dataclass(frozen=True, slots=True)
class Happened:
    """Counts of a whole run.

    Parameters
    ----------
    preemptions
        Times that a running request had to wait again because memory ran out.
    recomputed_tokens
        Tokens that were computed once more, after a pre-emption or after their worker had left.
    moved_tokens
        Tokens moved out of memory and into it.
    returned_requests
        Requests that workers which left gave back to the router.
    reused_tokens
        Tokens of prompts that caches of prefixes saved.
    pauses
        Times that a running request was held out of a step.
    """

    preemptions: int
    recomputed_tokens: int
    moved_tokens: int
    returned_requests: int
    reused_tokens: int
    pauses: int


def happened_of(detail: compiled.Detail) -> Happened | None:
    """Return what the loop counted; None without `SimulationSetting.detail`."""
    if not detail.rules.on:
        return None
    tally = detail.tally
    return Happened(
        int(tally.preemptions),
        int(tally.recomputed),
        int(tally.moved),
        int(tally.returned),
        int(tally.reused),
        int(tally.pauses),
    )


def detail_figures(run: Run) -> dict[str, Any]:
    """Return the counts of a run in detail and, over all its steps, the rates that tables show."""
    assert run.happened is not None and run.setting.detail is not None
    steps, fleet, detail = run.steps, run.setting.fleet, run.setting.detail
    enforced = detail.preempt != "none" and fleet.kv_capacity is not None
    blocks = fleet.num_workers * ((fleet.kv_capacity or 0) // detail.block)
    return asdict(run.happened) | {
        "computed_tokens": int(steps["computed"].sum()),
        "memory_share": float(steps["blocks"].mean() / blocks) if enforced else None,
        "tokens_per_turn": float(steps["made"].sum() / steps["active"].sum()),
    }
