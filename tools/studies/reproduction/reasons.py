"""Reasons of disagreement, each computed from the runs and the published numbers that it is about.

A reason says what was measured: how many requests waited, which part of a step depends on the load, how many slots were
taken. What the source does not print stands beside it as that. Other runs make another sentence, or none; nothing is
printed whatever the data say. Arguments are the means over seeds of what `cell.measure` returned, one mapping a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lbopt.model import Trace
from tools.studies.reproduction.question import Row

Figures = Mapping[str, float]

#: Fewer waiting requests than this leave a rule that holds a pool nothing to choose from in most decisions.
_CHOICE = 1.0


def of_runs(reason: Callable[..., str]) -> Callable[[Row], str]:
    """Return the reason of a row from a function of its cells' figures."""
    return lambda row: reason(*row.means)


def of_pool(rule: str) -> Callable[[Row], str]:
    """Return what a rule, that of the first cell, had to choose from."""

    def reason(run: Figures, *_others: Figures) -> str:
        text = f"{rule} found {run['waiting']:.1f} waiting requests at a decision here"
        text += ", so that most decisions had nothing to choose" if run["waiting"] < _CHOICE else ""
        return f"{text}; the source does not print how many it had"

    return of_runs(reason)


def of_spreads(names: tuple[str, ...]) -> Callable[[Row], str]:
    """Return the spread that each rule left, as a share of the mean load."""

    def reason(*runs: Figures) -> str:
        shares = (f"{name} {run['spread'] / run['mean_load']:.0%}" for name, run in zip(names, runs, strict=True))
        return f"the spread is a share of the mean load here: {', '.join(shares)}; the source prints no mean load"

    return of_runs(reason)


def of_few_long(whole: Trace, chosen: Trace, wanted: int) -> Callable[[Row], str]:
    """Return how many requests have outputs as long as the source's, and how alike those are that stand in.

    Parameters
    ----------
    whole, chosen
        All requests of the trace, and those that are run.
    wanted
        Output tokens that every request of the source exceeds.
    """
    prompt = chosen.prompt
    text = (
        f"{int((whole.output > wanted).sum()):,} requests of this trace have more than {wanted:,} output tokens; "
        f"the {len(chosen):,} that stand in have prompts with a standard deviation of "
        f"{prompt.std() / prompt.mean():.0%} of their mean"
    )
    return lambda _row: text


def of_lengths(requests: Trace, horizon: int) -> Callable[[Row], str]:
    """Return which share of the requests end within a forecast of `horizon` steps, and what waited."""
    output = requests.output
    within = float((output <= horizon).mean())
    seen = "most of what it levels has left" if within > 0.5 else "most of what it levels is still there"

    def reason(br_h: Figures, _other: Figures) -> str:
        return (
            f"requests run {output.mean():.0f} steps on average here, {within:.0%} of them {horizon} or fewer, as far "
            f"as the forecast sees: {seen} at its end; {br_h['waiting']:.1f} requests wait at a decision"
        )

    return of_runs(reason)


def of_share(share: float) -> Callable[[Row], str]:
    """Return by how much the heaviest load fell, and which share of a balanced step depends on it."""

    def reason(ours: Figures, jsq: Figures) -> str:
        cut = 100 * (1 - ours["max_load"] / jsq["max_load"])
        return (
            f"the heaviest load is {cut:.1f} % below JSQ's here, and {100 * share:.0f} % of a balanced step depends on "
            "it; the source prints neither"
        )

    return of_runs(reason)


def of_slots(names: tuple[str, str], slots: int) -> Callable[[Row], str]:
    """Return the two parts of a gain in throughput, and how many of the fleet's slots each rule took."""

    def reason(ours: Figures, other: Figures) -> str:
        running = _percent(ours["running"], other["running"])
        steps = _percent(other["step_seconds"], ours["step_seconds"])
        taken = " and ".join(
            f"{run['running'] / slots:.1%} under {name}" for name, run in zip(names, (ours, other), strict=True)
        )
        return f"here it is {running:+.1f} % running requests and {steps:+.1f} % steps a second; slots taken: {taken}"

    return of_runs(reason)


def of_barrier(
    rule: str, slots: int, implied: tuple[float, float] | None = None, also: str = ""
) -> Callable[[Row], str]:
    """Return the heaviest over the mean load of a rule and of JSQ, and the slots that both took.

    Parameters
    ----------
    rule
        That of the first cell; JSQ's is the second.
    implied
        What the published table implies of the rule and of JSQ.
    """

    def reason(run: Figures, jsq: Figures) -> str:
        ours, theirs = (one["max_load"] / one["mean_load"] for one in (run, jsq))
        text = f"the heaviest load is {ours:.2f} times the mean under {rule} here, and {theirs:.2f} under JSQ"
        if implied is not None:
            text += f"; the table implies {implied[0]:.2f} and {implied[1]:.2f}"
        taken = f"{run['running'] / slots:.1%} and {jsq['running'] / slots:.1%}"
        return f"{text}; slots taken: {taken}{also}"

    return of_runs(reason)


def of_sizes(requests: Trace) -> Callable[[Row], str]:
    """Return how unlike the requests are that are run."""
    tokens = requests.prompt + (requests.output - 1) / 2
    text = (
        f"requests hold {tokens.mean():,.0f} tokens on average here, with a standard deviation of "
        f"{tokens.std() / tokens.mean():.0%}; the source does not print its requests"
    )
    return lambda _row: text


def of_rounding(points: float) -> Callable[[Row], str]:
    """Return what is left over between a number and its own law, beside what the rounding of the print explains."""

    def reason(row: Row) -> str:
        value = row.question.printed.value
        assert value is not None  # the question is about one number
        return f"{row.ours.mean - value:+.2f} points are left, and rounding explains {points:g} either way"

    return reason


def of_digits(row: Row) -> str:
    """Return how far ours is from the number that should be the same."""
    value = row.question.printed.value
    assert value is not None  # the question is about one number
    return (
        f"ours is {abs(row.ours.mean - value):.3g} {row.question.printed.unit} away, {row.ours.mean / value - 1:+.2e}"
    )


def of_power(reading: str, workers: int, unlike: str = "") -> Callable[[Row], str]:
    """Return the mean power of a worker under a reading, and that which the printed energy asks for.

    Parameters
    ----------
    reading
        Name of the reading of the power law.
    unlike
        What else differs from the published run, before it.
    """

    def reason(row: Row) -> str:
        (run,) = row.means
        value = row.question.printed.value
        assert value is not None  # the question is about one number
        ours, theirs = (joules / run["seconds"] / workers for joules in (run[reading], 1e3 * value))
        return (
            f"{unlike}a worker draws {ours:.0f} W on average here; the printed energy over our time is {theirs:.0f} W"
        )

    return reason


def of_saving(reading: str, unlike: str = "") -> Callable[[Row], str]:
    """Return how time and mean power change from the first cell to the second under a reading."""

    def reason(before: Figures, after: Figures) -> str:
        seconds = _percent(after["seconds"], before["seconds"])
        watts = _percent(after[reading] / after["seconds"], before[reading] / before["seconds"])
        return f"{unlike}here the time changes by {seconds:+.1f} % and the mean power by {watts:+.1f} %"

    return of_runs(reason)


def of_band(run: Figures) -> str:
    """Return which part of a band of loads lies between units, and which between moments."""
    units = run["deviation"]
    moments = max(0.0, run["band_deviation"] ** 2 - units**2) ** 0.5
    return f"here units are ± {units / 1e3:.1f} thousand tokens apart at a moment, and moments ± {moments / 1e3:.1f}"


def of_unit(units: int) -> Callable[[Row], str]:
    """Return how many requests a unit runs, and how many tokens each holds."""

    def reason(run: Figures) -> str:
        requests = run["running"] / units
        return f"a unit runs {requests:.1f} requests of {run['mean_load'] / requests:,.0f} tokens here"

    return of_runs(reason)


def of_units(rule: str) -> Callable[[Row], str]:
    """Return how far apart the units of a baseline are, and how many requests a rule had to choose from."""

    def reason(run: Figures, base: Figures) -> str:
        return (
            f"the baseline's units are ± {base['deviation'] / 1e3:.1f} thousand tokens apart here, and "
            f"{run['waiting']:.1f} requests wait at a decision of {rule}"
        )

    return of_runs(reason)


def of_reading(per_token: float, fixed: float) -> Callable[[Row], str]:
    """Return what reading the heaviest unit takes, and what perfectly level loads would gain.

    Parameters
    ----------
    per_token, fixed
        s a token of the heaviest unit, and s of the rest of a step.
    """

    def reason(_run: Figures, base: Figures) -> str:
        heaviest, mean = (per_token * base[name] for name in ("max_load", "mean_load"))
        level = _percent(fixed + heaviest, fixed + mean)
        return (
            f"the baseline's heaviest unit is read in {1e3 * heaviest:.1f} of {1e3 * (fixed + heaviest):.1f} ms here, "
            f"and perfectly level loads would gain {level:.1f} %"
        )

    return of_runs(reason)


def of_one_rule(first: Figures, second: Figures, _base: Figures) -> str:
    """Return whether two rules made the same runs."""
    names = ("running", "max_load", "mean_load")
    if all(first[name] == second[name] for name in names):
        return "both rules made the same runs here: running requests and loads are equal to the last digit"
    return f"the heaviest loads of the two rules are {abs(_percent(first['max_load'], second['max_load'])):.2f} % apart"


def _percent(value: float, over: float) -> float:
    return 100 * (value / over - 1)
