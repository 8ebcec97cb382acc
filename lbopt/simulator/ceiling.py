"""What no rule can do better on a trace: a ceiling, the least energy, and whether slots are saturated.

How many requests a second a fleet can serve at most, and a trace's times rescaled to a share of that.

With every slot busy and perfect balance, a slot holds on average

    a = (E[s o] + E[o (o - 1) / 2]) / E[o]          tokens

(a request shows the sizes s, s+1, ..., s+o-1), so every worker holds B * a of them, a step takes the T that the
step-time law gives for that, and G * B slots finish G * B / E[o] requests per step: the saturation rate is
G * B / (E[o] * T). Where it is known which experts requests use, T is the time with those of B requests of the trace.
A trace is brought to a stated share of it by stretching its times, which keeps its bursts.

The least energy of a whole run, whatever the rule.

A step of dt seconds takes (P_idle G + (P_peak - P_idle) sum of duties) dt. Where duties go by shares u_g of the
heaviest load, they are at least u_g (readings share, split and split-fixed-busy of `lbopt.hardware.energy`), so with
the total load S and the largest load m the sum of duties is at least x = S / m, which lies between 1 and G. With
dt >= c + t m there are two bounds of the whole run, and the larger one counts:

- all idle power in the least seconds T, and the rise by (c + t m) S / m = c x + t S >= c + t S:
  P_idle G T + (P_peak - P_idle) (t W + c K+), with K+ the least number of steps that read a load;
- both together: a step costs at least f(S) = P_idle G c + (P_peak - P_idle) t S + min over x of
  (P_idle G t S / x + (P_peak - P_idle) c x). A minimum of lines is concave, so f lies above its chord from 0 to the
  largest S that slots allow, and the sum over K steps above K f(0) + W (f(S_max) - f(0)) / S_max.

In the order ``theory`` loads are read at the barrier: c = C and W as in `ceiling`. In the order ``paper`` they are read
after growth and completions: a worker holds at most B tokens more than at the barrier, so c = C - t B, and the loads
add up to sum of (s + 1) + ... + (s + o - 1). If C < t B there, only dt >= C is used. The reading mfu does not go by
loads; its floor is idle power alone. Manual: *Ceilings*.

Ceilings of a whole run: the least time and energy in which a fleet can do a trace, whatever the rule knows.

A request of prompt s and output o shows a barrier the sizes s, s + 1, ..., s + o - 1, on whichever worker it runs. So
the token-steps of a whole run, W = sum over requests of w, w = s o + o (o - 1) / 2, do not depend on the rule. With
steps of C + t max_g L_g seconds three bounds follow (manual, *Ceilings*, with proofs):

- *shared*: C K + t W / G, as the heaviest worker is never below the mean. K is a number of steps that no run is below:
  the longest output, ceil(sum of o / (G B)), and, where memory is enforced, ceil(W / (G M)).
- *slot*: of the j m + 1 requests with the largest C o + t w, for m = G B slots, some slot runs j + 1, one after the
  other; j = 0 is one request alone. The same with o for C o + t w is one more bound for K.
- *late*: whatever arrives at r or later runs in steps that begin at r or later, so the run ends no sooner than r plus a
  bound of these requests alone.

What requests cost by their number counts with the cheapest share of a request that the law knows. Where workers differ
in speed, the G of the own parts is the number of workers of speed one that do as much. Pre-emption only adds work, but
takes a request from slot to slot, so that *slot* then holds for one request alone. Energy: `least_energy`.

Numbers of requests are whole, laws are taken as the exact fractions that their floats are, and results are rounded in
the direction that keeps the bound. Where floats choose among bounds, they do not enter the value of the chosen one.
Source: the identity is that of BF-IO's proof of Theorem 1 summed over a run (`proofs/theories/Ceilings.v` has it with
*shared* and j = 0); *slot* is the pigeonhole bound of scheduling on parallel machines; the rest is lbopt's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm
from lbopt.kinds import whole
from lbopt.model import Trace
from lbopt.simulator.setting import SimulationSetting, TraceTimes


def saturation_rate(trace: Trace, setting: SimulationSetting) -> float:
    """Return the largest sustainable rate in requests per second, perfectly balanced."""
    G, B = setting.fleet.num_workers, setting.fleet.slots_per_worker
    full = np.full(G, B)
    experts = None if trace.experts is None else np.full(G, trace.experts.expected_in_use(B))
    seconds = setting.form_for(trace).seconds(np.full(G, B * trace.mean_resident_tokens), full, experts)
    return float(setting.fleet.num_slots / (trace.output.mean() * seconds))


def arrival_times(trace: Trace, setting: SimulationSetting, load: float | None) -> NDArray[np.float64]:
    """Return the trace's arrival times in seconds, stretched to `load` times the saturation rate."""
    if trace.arrival is None:
        raise InputError(
            f"trace '{trace.name}' has no arrival times (lengths alone, or turns after an answer); use a closed loop "
            "(arrivals=closed)"
        )
    times = np.array(trace.arrival, dtype=np.float64)
    if load is None:
        return times
    span = float(times[-1])
    if span <= 0:
        raise InputError(f"trace '{trace.name}' has all its arrivals at one instant; it cannot be scaled to a load")
    own_rate = (len(trace) - 1) / span
    return times * (own_rate / (load * saturation_rate(trace, setting)))


#: More than what the few roundings of the chord can add, as a share.
_ROUNDING = 2.0**-40


def least_joules(trace: Trace, setting: SimulationSetting, steps: int, seconds: Fraction) -> float:
    """Return the least energy of a whole run, J, rounded down.

    Parameters
    ----------
    trace, setting
        Requests; fleet, law, power and event order. Workers without detail.
    steps, seconds
        Least number of steps, and least seconds of all of them.
    """
    power, form, G = setting.power, setting.form_for(trace), setting.fleet.num_workers
    rise = power.peak_watts - power.idle_watts
    idle = Fraction(power.idle_watts) * G * seconds
    if power.reading == "mfu":
        return float(idle) * (1 - _ROUNDING)
    prompt, output = (np.array(lengths, dtype=object) for lengths in (trace.prompt, trace.output))
    at_barrier = setting.event_order == "theory"
    first = 0 if at_barrier else 1  # age at which a request is read for the first time
    work = int((prompt * (output - first) + output * (output - 1) // 2).sum())
    read = output - (prompt == 0).astype(int) if at_barrier else output - 1  # steps that read a load of the request
    with_load = max(int(read.max()), -(-int(read.sum()) // setting.num_slots))
    C, t = Fraction(form.fixed), Fraction(form.per_token)
    c = C if at_barrier else C - t * setting.fleet.slots_per_worker
    apart = idle + Fraction(rise) * C * with_load
    if c < 0:
        return float(apart) * (1 - _ROUNDING)
    apart = max(apart, idle + Fraction(rise) * (t * work + c * with_load))
    largest = int(np.sort(prompt + output - 1)[::-1][: setting.num_slots].sum())
    together = _along_the_chord(steps, work, largest, float(c), float(t), power.idle_watts * G, rise, G)
    return max(float(apart), together) * (1 - _ROUNDING)


def _along_the_chord(
    steps: int, work: int, largest: int, fixed: float, per_token: float, idle: float, rise: float, workers: int
) -> float:
    """Return K f(0) + W (f(S_max) - f(0)) / S_max, J.

    Parameters
    ----------
    fixed, per_token
        Least seconds of a step, and for each token of the heaviest load.
    idle, rise
        W, of the whole idle fleet; from idle to peak of one worker.
    """
    if largest == 0:
        return steps * idle * fixed
    waits, works = idle * per_token * largest, rise * fixed  # a step costs waits / x + works x, x from 1 to G
    best = math.sqrt(waits / works) if works > 0 else float(workers)
    x = min(max(best, 1.0), float(workers))
    slope = rise * per_token + (waits / x + works * x) / largest
    return steps * idle * fixed + work * slope


#: Requests in a row on one slot that the bound *slot* looks at; where slots run many more, *shared* is near.
_MOST_IN_A_ROW = 8


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What no rule can pass over a whole run.

    Parameters
    ----------
    tokens
        Tokens that the requests emit.
    token_steps
        W, the sum of the loads of all workers and steps.
    steps
        Least number of steps in which something runs; of all groups together.
    seconds
        Least seconds of all steps together, rounded down; of the longest group.
    elapsed_seconds
        Least seconds from the first arrival to the last end, rounded down.
    joules
        Least energy of all steps, rounded down; None where workers are simulated in detail, or for several groups.
    """

    tokens: int
    token_steps: int
    steps: int
    seconds: float
    elapsed_seconds: float
    joules: float | None

    @property
    def tokens_per_second(self) -> float:
        """Most tokens a second while something runs, rounded up."""
        return _rate(self.tokens, self.seconds)

    @property
    def elapsed_tokens_per_second(self) -> float:
        """Most tokens a second from the first arrival to the last end, rounded up."""
        return _rate(self.tokens, self.elapsed_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name."""
        rates = {name: getattr(self, name) for name in ("tokens_per_second", "elapsed_tokens_per_second")}
        return {f.name: getattr(self, f.name) for f in fields(self)} | rates


def ceilings(trace: Trace, setting: SimulationSetting, groups: int = 1) -> Ceilings:
    """Return what no rule can pass over a whole run, clairvoyant or not.

    Parameters
    ----------
    trace
        The requests.
    setting
        Fleet, arrivals, step-time law and power. KV capacity counts where `Detail.preempt` enforces it.
    groups
        Fleets like this one, each with a barrier of its own; a request runs in any one of them.

    Raises
    ------
    InputError
        If requests draft tokens, so that the number of steps that they take is a matter of chance, or for no group.
    """
    whole("groups", groups, 1)
    detail = setting.detail
    if detail is not None and detail.draft:
        raise InputError(f"detail: draft is {detail.draft}; a ceiling needs requests of known steps; leave draft out")
    fleet = _Fleet.of(trace, setting, groups)
    prompt, output = (np.array(lengths, dtype=object) for lengths in (trace.prompt, trace.output))  # sums beyond int64
    works = prompt * output + output * (output - 1) // 2
    total = _Part(int(output.sum()), int(works.sum()), int(output.max()))
    steps = fleet.least_steps(total)
    if groups == 1:
        steps = max(steps, in_a_row(output, fleet.slots, fleet.in_a_row))
    unit = math.lcm(fleet.of_step.denominator, fleet.of_token.denominator)
    scaled = output * int(fleet.of_step * unit) + works * int(fleet.of_token * unit)
    on_a_slot = Fraction(in_a_row(scaled, fleet.slots * groups, fleet.in_a_row), unit)
    least = max(fleet.shared_seconds(total, steps), on_a_slot)
    elapsed = least
    if isinstance(setting.arrivals, TraceTimes):
        times = arrival_times(trace, setting, setting.arrivals.load)
        elapsed = max(least, _least_elapsed(times, output, works, scaled, unit, fleet))
    return Ceilings(
        tokens=total.tokens,
        token_steps=total.work,
        steps=steps,
        seconds=rounded_down(least),
        elapsed_seconds=rounded_down(elapsed),
        joules=None if detail is not None or groups > 1 else least_joules(trace, setting, steps, least),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Some requests: their tokens, token-steps and longest output."""

    tokens: int
    work: int
    longest: int


@dataclass(frozen=True, slots=True)
class _Fleet:
    """What bounds go by, in exact numbers.

    Parameters
    ----------
    workers, slots
        Of a group.
    groups
        Groups.
    equals
        Workers of speed one that do as much as a group's.
    fastest
        Least factor of a worker's own part.
    memory
        Tokens that a group's memory holds; None = never full.
    form
        The step-time law.
    in_a_row
        Requests on one slot, one after the other, that a bound may count on.
    """

    workers: int
    slots: int
    groups: int
    equals: Fraction
    fastest: Fraction
    memory: int | None
    form: BarrierForm
    in_a_row: int

    @classmethod
    def of(cls, trace: Trace, setting: SimulationSetting, groups: int) -> _Fleet:
        """Read them off a setting."""
        G, detail, memory = setting.fleet.num_workers, setting.detail, None
        slow = [Fraction(factor) for _, factor in (() if detail is None else detail.slow)]
        if detail is not None and detail.preempt != "none":
            assert setting.fleet.kv_capacity is not None
            memory = G * (setting.fleet.kv_capacity // detail.block) * detail.block
        return cls(
            workers=G,
            slots=setting.num_slots,
            groups=groups,
            equals=G + sum((1 / factor - 1 for factor in slow), Fraction(0)),
            fastest=min([*slow, *([Fraction(1)] if len(slow) < G else [])]),
            memory=memory,
            form=setting.form_for(trace),
            in_a_row=_MOST_IN_A_ROW if detail is None else 1,
        )

    @property
    def of_step(self) -> Fraction:
        """Least seconds of a step in which a request runs, its tokens left out."""
        form = self.form
        return Fraction(form.fixed) + self.fastest * _least_of(form.of_running) + _least_of(form.of_active)

    @property
    def of_token(self) -> Fraction:
        """Least seconds that a step lasts for each token of one request."""
        form = self.form
        return self.fastest * Fraction(form.per_token) + Fraction(form.per_mean_token) / self.workers

    def least_steps(self, part: _Part) -> int:
        """Return how many steps `part` takes at least, of all groups together."""
        full = 0 if self.memory is None else -(-part.work // self.memory)
        return max(-(-part.tokens // self.slots), part.longest, full)

    def shared_seconds(self, part: _Part, steps: int) -> Fraction:
        """Return the least seconds of `part` in at least `steps` steps, with loads that are all equal."""
        form = self.form
        of_each = max(
            steps * self.fastest * _least_of(form.of_running),
            part.tokens * _least_share(form.of_running) / self.equals,
        )
        together = max(steps * _least_of(form.of_active), part.tokens * _least_share(form.of_active))
        own = Fraction(form.per_token) * part.work / self.equals + of_each
        mean = Fraction(form.per_mean_token) * part.work / self.workers
        return (Fraction(form.fixed) * steps + own + mean + together) / self.groups


def _least_elapsed(
    times: NDArray[np.float64],
    output: NDArray[Any],
    works: NDArray[Any],
    scaled: NDArray[Any],
    unit: int,
    fleet: _Fleet,
) -> Fraction:
    """Return the least seconds from the first arrival to the last end.

    Parameters
    ----------
    times
        float64 (N,), s, ascending.
    output, works
        Whole numbers (N,), tokens and token-steps of each request.
    scaled, unit
        Whole numbers (N,), least seconds of each request alone, in parts of a second, and how many parts one has.
    """
    alone = int(np.argmax(times + (scaled / unit).astype(np.float64)))
    after = output[::-1].astype(np.float64).cumsum()[::-1]
    work_after = works[::-1].astype(np.float64).cumsum()[::-1]
    longest_after = np.maximum.accumulate(output[::-1].astype(np.float64))[::-1]
    form = fleet.form
    of_step = form.fixed + float(_least_of(form.of_active))
    of_token = form.per_token / float(fleet.equals) + form.per_mean_token / fleet.workers
    near = (of_step * np.maximum(after / fleet.slots, longest_after) + of_token * work_after) / fleet.groups
    first = int(np.argmax(times + near))
    first = int(np.searchsorted(times, times[first]))  # all that arrive together
    late = _Part(int(output[first:].sum()), int(works[first:].sum()), int(output[first:].max()))
    end = max(
        Fraction(float(times[first])) + fleet.shared_seconds(late, fleet.least_steps(late)),
        Fraction(float(times[alone])) + Fraction(int(scaled[alone]), unit),
    )
    return end - Fraction(float(times[0]))


def in_a_row(lengths: NDArray[Any], slots: int, most: int) -> int:
    """Return how long the busiest of `slots` slots is in use at least, with requests of whole `lengths`.

    Of any j * slots + 1 requests some slot runs j + 1, so it is in use for the sum of the j + 1 shortest of them.

    Parameters
    ----------
    lengths
        Whole numbers (N,).
    slots
        Slots, each with one request at a time.
    most
        Largest j + 1 that is tried.
    """
    kept = min(lengths.size, (most - 1) * slots + 1)
    longest: list[int] = np.sort(lengths)[::-1][:kept].tolist()
    rows = range(-(-kept // slots))  # j for which j * slots + 1 requests are there
    return max(sum(longest[j * slots - j : j * slots + 1]) for j in rows)


def _least_of(table: NDArray[np.float64]) -> Fraction:
    """Return the least seconds of a table with some request running."""
    return Fraction(float(table[1:].min())) if table.size > 1 else Fraction(0)


def _least_share(table: NDArray[np.float64]) -> Fraction:
    """Return the least seconds of a table for each running request."""
    if table.size < 2:
        return Fraction(0)
    best = 1 + int(np.argmin(table[1:] / np.arange(1, table.size)))
    near = range(max(1, best - 1), min(table.size, best + 2))
    share = min(Fraction(float(table[n])) / n for n in near)
    return share * (1 - Fraction(1, 2**50))  # another entry may be least by what a float's quotient rounds


def rounded_down(value: Fraction) -> float:
    """Return the largest float that is not above `value`."""
    near = float(value)
    return math.nextafter(near, -math.inf) if Fraction(near) > value else near


def _rate(tokens: int, seconds: float) -> float:
    if seconds == 0:
        return math.inf  # laws by tokens alone, and requests without any
    exact = Fraction(tokens) / Fraction(seconds)
    return -rounded_down(-exact)
