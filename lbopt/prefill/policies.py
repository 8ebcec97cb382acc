"""Dispatch policies of the prefill side, and the text ``name:option=value`` that names one.

Bound on arrival: `random`, `round-robin`, `jsq`. Bound when an instance is ready: `pooled`, `staggered`; before
it is: `anticipating`. What they do at a moment is in `kernels.prefill.scheduler`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from lbopt.exceptions import InputError
from lbopt.kernels.prefill import codes
from lbopt.spec import options_of, unknown

#: The least interval, s; see `SHORTEST_PASS`.
SHORTEST_INTERVAL = 1e-6
LONGEST_WINDOW = 65_536


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """A policy as the compiled loop takes it.

    Parameters
    ----------
    name
        What to call it in tables.
    code
        See `kernels.prefill.codes`.
    interval
        s between dispatches; None = (mean pass + latency) / healthy instances.
    default_pass
        s, the mean pass until one was measured; None = the base time of a pass.
    window
        Measured passes that Algorithm 1 averages over; 0 = the default stays.
    idle_bypass
        An arrival that finds an instance with nothing to do is dispatched at once.
    by_freedom
        A batch goes to the ready instance that has been free the longest, not to the next of a ring.
    while_left_over
        An instance that runs only what was left over of an earlier pass is ready too.
    margin, spacing, error
        See `anticipating`.
    """

    name: str
    code: int
    interval: float | None = None
    default_pass: float | None = None
    window: int = 0
    idle_bypass: bool = False
    by_freedom: bool = False
    while_left_over: bool = False
    margin: float = 0.0
    spacing: float = 0.0
    error: float = 0.0

    @property
    def immediate(self) -> bool:
        """Whether requests are bound on arrival."""
        return self.code <= codes.LAST_IMMEDIATE

    def describe(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        ahead = {name: getattr(self, name) for name in ("margin", "spacing", "error")}
        return {
            "name": self.name,
            "interval": self.interval,
            "default_pass": self.default_pass,
            "window": self.window,
            "idle_bypass": self.idle_bypass,
            "by_freedom": self.by_freedom,
            "while_left_over": self.while_left_over,
            **(ahead if self.code == codes.ANTICIPATING else {}),
        }


def random() -> DispatchPolicy:
    """Bind each request to an instance drawn at random when it arrives."""
    return DispatchPolicy("random", codes.RANDOM)


def round_robin() -> DispatchPolicy:
    """Bind requests to the instances in turn."""
    return DispatchPolicy("round-robin", codes.ROUND_ROBIN)


def jsq(by: Literal["requests", "tokens"] = "requests") -> DispatchPolicy:
    """Bind each request to the instance that has the fewest requests, or tokens, sent and not done."""
    if by not in _JSQ:
        raise InputError(f"prefill policy 'jsq': by is '{by}'; expected requests or tokens")
    return DispatchPolicy("jsq" if by == "requests" else f"jsq:by={by}", _JSQ[by])


_JSQ = {"requests": codes.JSQ, "tokens": codes.JSQ_TOKENS}
_TARGETS, _READY = ("ring", "free"), ("ended", "free")
_TIMERS = {"spacing": codes.SPACING, "tick": codes.TICK}


def pooled(ready: Literal["ended", "free"] = "ended") -> DispatchPolicy:
    """Let all wait together; the instance that has been free the longest takes whom it has room for.

    Parameters
    ----------
    ready
        ``ended``: the first pass has ended that its last batch could be in. What was left over may run on, and the next
        batch then waits on the device for the end of that. ``free``: it runs no pass.
    """
    _check_ready("pooled", ready)
    name = "pooled" if ready == "ended" else f"pooled:ready={ready}"
    return DispatchPolicy(name, codes.POOLED, while_left_over=ready == "ended")


def staggered(
    timer: Literal["spacing", "tick"] = "spacing",
    interval: float | None = None,
    window: int = 0,
    default_pass: float | None = None,
    idle_bypass: bool = False,
    target: Literal["ring", "free"] = "ring",
    ready: Literal["ended", "free"] = "ended",
) -> DispatchPolicy:
    """Let all wait together; dispatch needs the interval AND a ready instance.

    Parameters
    ----------
    timer
        ``spacing``: the interval runs from the last dispatch. ``tick``: ticks lie on a lattice, whether or not
        anything is sent. The source leaves open which of them it means.
    interval, window, default_pass, idle_bypass
        See `DispatchPolicy`; with a window the interval is that of Algorithm 1.
    target
        ``ring``: batches go to the instances in turn; one that is not ready is passed over after a second interval.
        ``free``: to the ready instance that has been free the longest. The source speaks of a next target, and gives
        no rule.
    ready
        See `pooled`.
    """
    name = "prefill policy 'staggered'"
    if timer not in _TIMERS:
        raise unknown("timer of a staggered policy", timer, _TIMERS)
    if target not in _TARGETS:
        raise unknown("target of a staggered policy", target, _TARGETS)
    _check_ready("staggered", ready)
    for option, value, least in (
        ("interval", interval, SHORTEST_INTERVAL),
        ("default_pass", default_pass, SHORTEST_INTERVAL),
    ):
        if value is not None and not (math.isfinite(value) and value >= least):
            raise InputError(f"{name}: {option} is {value} s; expected at least {least} s (no interval: pooled)")
    if not 0 <= window <= LONGEST_WINDOW:
        raise InputError(f"{name}: window is {window}; expected 1 to {LONGEST_WINDOW} passes, or 0 to measure none")
    if interval is not None and (window or default_pass is not None):
        raise InputError(f"{name}: interval {interval} s is given, so that window and default_pass say nothing")
    options = {"timer": timer, "interval": interval, "window": window, "default_pass": default_pass}
    changed = [f"{option}={value}" for option, value in options.items() if value not in (None, 0, "spacing")]
    changed += ["idle_bypass=yes"] * idle_bypass
    changed += ["target=free"] * (target == "free") + ["ready=free"] * (ready == "free")
    written = ":".join(["staggered", *([",".join(changed)] if changed else [])])
    return DispatchPolicy(
        written, _TIMERS[timer], interval, default_pass, window, idle_bypass, target == "free", ready == "ended"
    )


def anticipating(
    margin: float = 2.0,
    spacing: float = 1.0,
    window: int = 50,
    error: float = 0.0,
    default_pass: float | None = None,
) -> DispatchPolicy:
    """Let all wait together; a batch is sent before the predicted end of a pass, so that it is in the next one.

    The ends are predicted by a line through the last passes, seconds over the tokens of the fullest unit. What goes to
    an instance is reckoned for the pass to come.

    Parameters
    ----------
    margin
        How long before the predicted end a batch is to reach its instance, in standard errors of the predictions; half
        as long again where the queue fills the pass.
    spacing
        Least time between the starts of passes, as a share of (mean pass / healthy instances), where the instance
        would not start by itself; 0 = none.
    window
        Passes that law, error and mean pass are taken from.
    error
        Standard deviation that the simulation puts on predicted pass times, as a share of them.
    default_pass
        See `DispatchPolicy`.
    """
    name = "prefill policy 'anticipating'"
    for option, value, most in (("margin", margin, 100.0), ("spacing", spacing, 100.0), ("error", error, 10.0)):
        if not (math.isfinite(value) and 0 <= value <= most):
            raise InputError(f"{name}: {option} is {value}; expected 0 to {most:g}")
    if not 1 <= window <= LONGEST_WINDOW:
        raise InputError(f"{name}: window is {window}; expected 1 to {LONGEST_WINDOW} passes to learn from")
    if default_pass is not None and not (math.isfinite(default_pass) and default_pass >= SHORTEST_INTERVAL):
        raise InputError(f"{name}: default_pass is {default_pass} s; expected at least {SHORTEST_INTERVAL} s")
    options = {"margin": (margin, 2.0), "spacing": (spacing, 1.0), "window": (window, 50), "error": (error, 0.0)}
    changed = [f"{option}={value:g}" for option, (value, usual) in options.items() if value != usual]
    changed += [] if default_pass is None else [f"default_pass={default_pass}"]
    return DispatchPolicy(
        ":".join(["anticipating", *([",".join(changed)] if changed else [])]),
        codes.ANTICIPATING,
        None,
        default_pass,
        window,
        margin=margin,
        spacing=spacing,
        error=error,
    )


def _check_ready(policy: str, ready: str) -> None:
    if ready not in _READY:
        raise unknown(f"ready of a {policy} policy", ready, _READY)


PREFILL_POLICIES: dict[str, Callable[..., DispatchPolicy]] = {
    "random": random,
    "round-robin": round_robin,
    "jsq": jsq,
    "pooled": pooled,
    "staggered": staggered,
    "anticipating": anticipating,
}


def make_prefill_policy(spec: str) -> DispatchPolicy:
    """Build the policy that `spec` names: a name from `PREFILL_POLICIES`, with options as ``name:option=value``."""
    name, _, rest = spec.partition(":")
    if name not in PREFILL_POLICIES:
        raise unknown("prefill policy", name, PREFILL_POLICIES)
    factory = PREFILL_POLICIES[name]
    return factory(**options_of("prefill policy", name, rest, factory))
