"""Who is compared: a dispatch policy with the rule that gives its batches to the units of an instance.

The source does not say what its "immediate dispatch" is, so there are four of them. Staggered dispatch is there as
printed (Algorithms 1 and 2; its "next target" as a ring) and with its open readings and a mend: `bypass` serves an idle
instance before the interval has elapsed; `free` lets the instance that has been free the longest be the next; `whole`
does that too, and keeps back what would exceed the chunk, which is our own.

The caption of figure 2 has batches go to engines that are ready or soon ready. `ahead` reads it so: it sends before the
predicted end of a pass, with exact predictions or with such that are 2 or 10 % off.
"""

from __future__ import annotations

from typing import Any

from lbopt.prefill.metrics import PrefillMetrics

#: Measured passes that the interval is averaged over; the source gives no number.
WINDOW = 50

#: Policy and allocation by name.
CONTENDERS: dict[str, tuple[str, str]] = {
    "random": ("random", "round-robin"),
    "round-robin": ("round-robin", "round-robin"),
    "jsq": ("jsq", "least-loaded"),
    "jsq-tokens": ("jsq:by=tokens", "least-loaded"),
    "pooled": ("pooled", "pbaa"),
    "pooled-whole": ("pooled", "pbaa:whole=yes"),
    "staggered": (f"staggered:window={WINDOW}", "pbaa"),
    "staggered-bypass": (f"staggered:window={WINDOW},idle_bypass=yes", "pbaa"),
    "staggered-free": (f"staggered:window={WINDOW},target=free", "pbaa"),
    "staggered-whole": (f"staggered:window={WINDOW},target=free", "pbaa:whole=yes"),
    "staggered-bypass-whole": (f"staggered:window={WINDOW},target=free,idle_bypass=yes", "pbaa:whole=yes"),
}
#: Bound on arrival: what staggering is compared with.
IMMEDIATE = ("random", "round-robin", "jsq", "jsq-tokens")
STAGGERED = ("staggered", "staggered-bypass", "staggered-free", "staggered-whole", "staggered-bypass-whole")
#: Bound when an instance is free, the simplest ways and the staggered ones.
LATE = ("pooled", "pooled-whole", *STAGGERED)


#: Rules of the reading in which batches are sent ahead of the end of a pass.
AHEAD: dict[str, tuple[str, str]] = {
    "ahead": ("anticipating", "backfill"),
    "ahead-2": ("anticipating:error=0.02", "backfill"),
    "ahead-10": ("anticipating:error=0.1", "backfill"),
}
RULES = CONTENDERS | AHEAD
#: Rules that hold requests back, by the reading of when a batch is sent.
HELD_BACK: dict[str, tuple[str, ...]] = {"printed": LATE, "ahead": tuple(AHEAD), "both": (*LATE, *AHEAD)}


def values_of(metrics: PrefillMetrics) -> dict[str, Any]:
    """Return the quantities that tables of service show, in seconds and shares."""
    return {
        "ttft": metrics.first_token_mean_seconds,
        "ttft_p50": metrics.first_token_p50_seconds,
        "ttft_p95": metrics.first_token_p95_seconds,
        "ttft_p99": metrics.first_token_p99_seconds,
        "wait": metrics.wait_mean_seconds,
        "at_scheduler": metrics.wait_at_scheduler_mean_seconds,
        "on_device": metrics.wait_on_device_mean_seconds,
        "utilisation": metrics.chunk_utilisation,
        "cycle": metrics.pass_cycle_seconds,
        "passes_per_request": metrics.passes_per_request,
        "idle": metrics.idle_share,
    }
