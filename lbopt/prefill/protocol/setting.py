"""The constants of the triple check, and what makes them senseless.

Where the source (staggered batch scheduling, arXiv 2512.16134) leaves a rule open, the reading has a name here:

* ``timer``: ``spacing``, the interval runs from the last dispatch; ``tick``, ticks lie on a lattice and fire whether or
  not anything is sent, and a batch leaves at a tick only.
* ``idle_bypass``: whether an instance known to be empty is served before the interval has elapsed ("immediate trigger
  for readiness"), or quiescence is a sign of readiness and no more.
* ``allocation``: how a batch is made. None is the scalar rule of `batch_tokens`, for instances of one unit; otherwise a
  rule of `lbopt.prefill.allocations` gives the requests to the units, by the headroom that each has left. The readings
  below are those of `lbopt.prefill.policies` and need an allocation.
* ``timer`` further: ``lattice``, a tick that passes while a request waits allows one dispatch, whenever the instance is
  ready; ``none``, any ready instance is served at once (a pool).
* ``target``: ``skip``, the first ready instance of the ring; ``ring``, the next one, and after a second interval any
  that is ready; ``free``, the one that has been free the longest.
* ``ready``: ``ended``, from the end of the first pass that the last batch could be in; ``free``, when it runs nothing.
* ``pace``: ``median`` or ``mean`` of the last passes.
* ``dispatch``: ``ready``, to an instance that is, by the readings above; ``ahead``, before the predicted end of a pass,
  so that the batch is in the next one (`anticipation`). Timer, idle bypass, target and ready then say nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from lbopt.exceptions import InputError
from lbopt.prefill.allocations import Allocation, make_allocation
from lbopt.prefill.setting import REQUESTS, SECONDS, TOKENS, Range, refuse_others, refuse_outside

TIMERS = ("spacing", "tick", "lattice", "none")
TARGETS = ("skip", "ring", "free")
DISPATCHES = ("ready", "ahead")


@dataclass(frozen=True, slots=True)
class ProtocolSetting:
    """Everything the scheduler knows before the first event.

    Parameters
    ----------
    num_instances
        Instances of the fleet, >= 1, numbered from 0; all of them are healthy at the start.
    default_pass
        s, the typical pass until some were measured, > 0.
    latency
        s, from the scheduler to an instance, >= 0.
    window
        Measured passes that the typical pass is the median of, >= 3: of fewer, one outlier would move it. With
        ``ahead`` the law of a pass is learned from so many as well.
    watchdog
        Timeout of a batch in typical passes, as they were at its dispatch.
    timer, idle_bypass
        The readings; see the module.
    batch_tokens
        A batch takes requests, the oldest first, while it has headroom left (so it may overshoot by one request), and
        at least one; None = all that wait.
    patience
        A request that more dispatches than this have left behind is refused (flow control, N_limit of Algorithm 2);
        None = never. It counts anew when a prompt that an instance lost is queued again.
    spread
        The typical pass stays between `default_pass` / `spread` and `default_pass` x `spread`, whatever is measured; >
        1.
    remembered
        So many requests that were last done or refused are remembered, to recognise what comes a second time; >= 0.
    latency_back
        s, from an instance to the scheduler; None = the same as `latency`.
    units, chunk, requests_per_pass
        D units of an instance, and the most tokens and requests that a unit takes into a pass; None = no limit.
    allocation, target, ready, pace
        The readings; see the module.
    interval
        s between dispatches; None = (typical pass + latency) / instances.
    engine
        See `lbopt.prefill.setting.ENGINES`.
    announced
        Whether an instance is taken to be occupied until it is heard of.
    dispatch
        The reading; see the module.
    last_token
        Whether the last first token of all that an instance holds makes it ready, too, which is ours; of `dispatch`
        ``ready`` only.
    margin
        How long before a predicted end a batch is to be there, in standard errors of the predictions, >= 0.
    spacing
        Least time between the starts of passes, as a share of (mean pass / living instances), where an instance would
        not begin by itself, >= 0.
    """

    num_instances: int
    default_pass: Annotated[float, Range("more than 0", above=True, unit=" s")] = 1.0
    latency: Annotated[float, SECONDS] = 0.0
    window: int = 8
    watchdog: float = 5.0
    timer: Literal["spacing", "tick", "lattice", "none"] = "spacing"
    idle_bypass: bool = False
    batch_tokens: Annotated[int | None, Range("at least 1 token, or None for no limit", low=1)] = None
    patience: Annotated[int | None, Range("0 or more, or None to refuse no request", unit=" dispatches")] = None
    spread: Annotated[float, Range("more than 1", low=1, above=True)] = 100.0
    remembered: Annotated[int, Range("0 or more", unit=" requests")] = 4096
    latency_back: Annotated[float | None, Range("0 or more, or None for the same as there", unit=" s")] = None
    units: Annotated[int, Range("at least 1", low=1)] = 1
    chunk: Annotated[int | None, TOKENS] = None
    requests_per_pass: Annotated[int | None, REQUESTS] = None
    allocation: str | None = None
    target: Literal["skip", "ring", "free"] = "skip"
    ready: Literal["ended", "free"] = "ended"
    pace: Literal["median", "mean"] = "median"
    interval: Annotated[float | None, Range("more than 0, or None for Algorithm 1", above=True, unit=" s")] = None
    engine: Literal["work-conserving", "back-to-back"] = "work-conserving"
    announced: bool = False
    dispatch: Literal["ready", "ahead"] = "ready"
    last_token: bool = False
    margin: Annotated[float, Range("0 to 100", high=100)] = 2.0
    spacing: Annotated[float, Range("0 to 100", high=100)] = 1.0

    def __post_init__(self) -> None:
        if self.num_instances < 1:
            raise InputError(f"there are {self.num_instances} healthy instances; expected at least 1 to begin with")
        refuse_outside(self)
        refuse_others(timer=(self.timer, TIMERS), target=(self.target, TARGETS), dispatch=(self.dispatch, DISPATCHES))
        self._check_allocation()
        if self.dispatch == "ahead" and (self.requests_per_pass or self.engine == "back-to-back"):
            raise InputError(
                "dispatch is ahead, which reckons with passes of a chunk, and none without tokens; expected no "
                "requests_per_pass and a work-conserving engine"
            )
        if self.window < (3 if self.pace == "median" else 0):
            raise InputError(
                f"window is {self.window}; expected at least 3 measured passes, so that one outlier is outvoted"
            )
        self._check_watchdog()

    @property
    def shortest_pass(self) -> float:
        """The least that the typical pass can be, s."""
        return self.default_pass / self.spread

    @property
    def longest_pass(self) -> float:
        """The most that the typical pass can be, s."""
        return self.default_pass * self.spread

    @property
    def way_back(self) -> float:
        """Latency from an instance to the scheduler, s."""
        return self.latency if self.latency_back is None else self.latency_back

    @property
    def rule(self) -> Allocation | None:
        """The allocation, built; None = the scalar rule."""
        return None if self.allocation is None else make_allocation(self.allocation)

    def timeout(self, typical_pass: float) -> float:
        """Return how long an instance may be silent about a batch, s, if a typical pass takes `typical_pass` s."""
        return self.watchdog * typical_pass

    def _check_allocation(self) -> None:
        if self.engine == "back-to-back" and not (self.announced and self.rule is not None):
            raise InputError(
                "an engine that goes back-to-back runs from the start, and takes a batch when a pass ends; expected "
                "announced=True, and an allocation"
            )
        if self.rule is not None:
            if self.timer == "tick" and self.engine == "back-to-back":
                raise InputError(
                    "timer tick lets a batch leave at a tick only, and an engine that goes back-to-back takes one only "
                    "when a pass ends: the two hardly ever meet; expected timer lattice"
                )
            return
        if self.units > 1:
            raise InputError(
                f"there are {self.units} units and no allocation; expected a rule that gives requests to them"
            )
        if self.timer in ("lattice", "none") or self.target != "skip" or self.ready != "ended":
            raise InputError(
                f"timer {self.timer}, target {self.target} and ready {self.ready} are readings for an allocation; "
                "expected one, such as pbaa"
            )

    def _check_watchdog(self) -> None:
        if self.watchdog == math.inf and self.allocation is not None:
            return  # there is none
        if not math.isfinite(self.watchdog):
            raise InputError(f"watchdog is {self.watchdog} mean passes; expected a finite number, the source has 5")
        timeout, least = self.timeout(self.default_pass), self.default_pass + self.latency + self.way_back
        if not timeout > least:
            raise InputError(
                f"watchdog is {self.watchdog:g} mean passes = {timeout:g} s, shorter than a pass and the way there and "
                f"back, {least:g} s, so that every batch would be a false alarm; expected more than "
                f"{least / self.default_pass:g}, the source has 5"
            )
