"""A calibration: every law on every group, which laws the rows tell apart, one slope for all, and groups held out.

All groups at once: does one slope, on x, on x per worker, or on ln x, serve every group with its own intercept?

    y = c_group + k f(x),   f(x) = x, x / G, √x or ln x

against own slopes for every group, by the F test of nested laws. "A fixed overhead and one slope" is a claim about all
fleets at once; a good fit in each group does not support it.

Can the data tell two laws apart? Paired differences of their squared leave-one-out errors over the rows.

The rule, stated with every answer: law A is distinguished from law B where flipping the signs of d_i = e²_B,i − e²_A,i
in all ways makes a mean as far from zero as theirs in at most 5 % of the ways. The test needs no normal errors -
squares have heavy tails, and Student's interval, shown beside it, hardly ever excludes zero on them - but at least six
rows: with five, no data can reach 5 %. It takes rows as independent, which errors that share their other rows are not
quite, and the law that leads was picked by looking. On rows drawn at the loads and the scatter of the published groups
it spoke in 6 to 12 % of the draws where the truth lay halfway between line and logarithm; where one of them was true it
named that one in 8 to 80 %, and the wrong one in at most 2 %. So a yes is a little weaker than 5 % sounds, and a no
says mostly that the rows are few.

Predict a group that the law has never seen from the others, and say by how much it misses.

*In level*: intercept and slope from the other groups; the intercept is the mean of theirs. *In differences*: a user
has measured one row of the new fleet, the anchor, and asks what another imbalance would cost: the law predicts
y_anchor + k (f(x) − f(x_anchor)). The anchor is the row of largest x - today's router - and, so that nothing hangs on
that row, all rows in turn. Beside it stands the miss of predicting no change, which a law must beat to be of use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.law import LawFit, LeastSquares, Observations, Rows, fit_law, laws_for, least_squares
from lbopt.statistics import CONFIDENCE, half_width

#: Names of what the common slope multiplies.
FEATURES = ("x", "x / G", "√x", "ln x")


@dataclass(frozen=True, slots=True)
class PooledFit:
    """Own intercepts and a common slope on `feature`; the slope is the last of the parameters."""

    feature: str
    groups: tuple[str, ...]
    numbers: LeastSquares
    own_slopes: tuple[float, ...]
    own_slopes_rmse: float
    f_statistic: float
    p_value: float

    @property
    def slope(self) -> tuple[float, float]:
        """The common slope and its standard error."""
        return float(self.numbers.estimates[-1]), float(self.numbers.errors[-1])


def feature_of(name: str, observed: Observations) -> NDArray[np.float64]:
    """Return f(x), float64 (n,).

    Raises
    ------
    InputError
        For one and the same x in all rows, x / G of a group whose number of workers is not known, and ln x of a row
        where x is zero.
    """
    x = observed.columns["x"]
    if np.ptp(x) == 0:
        raise InputError(f"group '{observed.group}' has the same x in all rows; no slope can be estimated from it")
    if name == "x / G":
        if observed.workers is None:
            raise InputError(f"group '{observed.group}' does not say its number of workers; add a column 'workers'")
        return x / observed.workers
    if name == "ln x":
        if (x <= 0).any():
            raise InputError(f"group '{observed.group}' has a row with x = 0, which has no logarithm")
        return np.log(x)
    return np.sqrt(x) if name == "√x" else x


def features_for(groups: tuple[Observations, ...]) -> tuple[str, ...]:
    """Return the features that every group has."""
    found = []
    for name in FEATURES:
        try:
            for one in groups:
                feature_of(name, one)
        except InputError:
            continue
        found.append(name)
    return tuple(found)


def fit_pooled(feature: str, groups: tuple[Observations, ...]) -> PooledFit:
    """Fit own intercepts and a common slope, float64 design (rows of all groups, groups + 1)."""
    from scipy.stats import f as f_distribution

    values = [feature_of(feature, one) for one in groups]
    y = np.concatenate([one.y for one in groups])
    member = np.repeat(np.arange(len(groups)), [one.y.size for one in groups])
    intercepts = (member[:, None] == np.arange(len(groups))).astype(np.float64)
    common = least_squares(np.column_stack([intercepts, np.concatenate(values)]), y)
    own = least_squares(np.column_stack([intercepts, intercepts * np.concatenate(values)[:, None]]), y)
    more = len(groups) - 1
    statistic, p_value = float("nan"), float("nan")
    if more and own.sum_of_squares > 0:
        statistic = (common.sum_of_squares - own.sum_of_squares) / more / (own.sum_of_squares / own.degrees)
        p_value = float(f_distribution.sf(statistic, more, own.degrees))
    return PooledFit(
        feature=feature,
        groups=tuple(one.group for one in groups),
        numbers=common,
        own_slopes=tuple(own.estimates[len(groups) :].tolist()),
        own_slopes_rmse=own.rmse,
        f_statistic=statistic,
        p_value=p_value,
    )


#: With fewer rows the sign-flip test cannot reach 5 %: 2 / 2^5 is above it, 2 / 2^6 below.
FEWEST_ROWS = 6

#: Up to 13 rows all flips are tried, beyond that so many drawn ones.
_RESAMPLES = 9_999

#: Errors below so much of the fitted values are rounding.
_ROUNDING = 1e-9

#: With more rows the mean is normal enough for Student's test, and flips would take long.
_MOST_FLIPPED = 2_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """The law of the least leave-one-out error against another.

    Parameters
    ----------
    better, worse
        Names of the laws.
    difference, low, high
        Mean of the paired differences of squared errors and its 95 % Student interval, unit of the response squared.
    p_value
        Of the sign-flip test; 1 where there is nothing to test.
    told_apart
        Whether that is at most 5 %.
    """

    better: str
    worse: str
    difference: float
    low: float
    high: float
    p_value: float
    told_apart: bool


def compare(fits: list[LawFit]) -> tuple[Comparison, ...]:
    """Compare the fit of the least leave-one-out error with each of the others, in the order of their errors."""
    ordered = sorted(fits, key=lambda fit: fit.left_out_error)
    return tuple(compare_two(ordered[0], other) for other in ordered[1:])


def compare_two(better: LawFit, worse: LawFit) -> Comparison:
    """Compare two fits of the same rows."""
    from scipy.stats import ttest_1samp

    differences = worse.left_out**2 - better.left_out**2
    rows = differences.size
    names = (better.law.name, worse.law.name)
    if not np.isfinite(differences).all():  # a row that one law cannot be judged on
        return Comparison(*names, float("nan"), float("-inf"), float("inf"), 1.0, False)
    mean = float(differences.mean())
    scale = float(np.abs(better.law.back(better.numbers.fitted)).max())
    if float(np.abs(differences).max()) <= (_ROUNDING * scale) ** 2:  # both are exact
        return Comparison(*names, mean, mean, mean, 1.0, False)
    half = half_width(differences)
    p_value = float(ttest_1samp(differences, 0.0).pvalue)
    if rows <= _MOST_FLIPPED:
        p_value = _sign_flips(differences)
    apart = p_value <= 1 - CONFIDENCE + 1e-12
    return Comparison(*names, mean, mean - half, mean + half, p_value, apart)


def _sign_flips(differences: NDArray[np.float64]) -> float:
    from scipy.stats import permutation_test

    test = permutation_test(
        (differences,),
        lambda d, axis: np.mean(d, axis=axis),
        permutation_type="samples",
        n_resamples=_RESAMPLES,
        batch=512,
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the other groups say of one; all errors are root mean squares in the unit of the response.

    Parameters
    ----------
    group, feature
        The group left out, and what the common slope multiplies.
    slope, own_slope
        Of the others, and of the group itself.
    level, level_bias
        Error with the mean intercept of the others, and its mean part (predicted less observed).
    anchored
        Error over the other rows with the row of largest x as anchor; `anchor` is its label.
    anchored_all
        The same over all ordered pairs of rows.
    no_change, no_change_all
        The same errors of predicting the anchor's own value.
    """

    group: str
    feature: str
    slope: float
    own_slope: float
    level: float
    level_bias: float
    anchor: str
    anchored: float
    anchored_all: float
    no_change: float
    no_change_all: float


def hold_out(rows: Rows, group: str) -> tuple[HeldOut, ...]:
    """Predict one group from all others, by every feature that all groups have."""
    held = rows.of(group)
    others = tuple(one for one in rows.groups if one.group != group)
    if not others:
        raise InputError(f"{rows.source} has one group; holding out '{group}' leaves nothing to learn from")
    if "x" not in rows.regressors:
        raise InputError(f"{rows.source} has no column imbalance or spread; groups are held out by such a measure")
    return tuple(_predict(held, others, feature) for feature in features_for(rows.groups))


def _predict(held: Observations, others: tuple[Observations, ...], feature: str) -> HeldOut:
    pooled = fit_pooled(feature, others)
    own = fit_pooled(feature, (held,))
    slope = pooled.slope[0]
    intercept = float(pooled.numbers.estimates[:-1].mean())
    f = feature_of(feature, held)
    level = intercept + slope * f - held.y
    step = held.y[:, None] - held.y[None, :]  # [row, anchor]: what the change of imbalance did
    missed = slope * (f[:, None] - f[None, :]) - step
    pairs = ~np.eye(held.y.size, dtype=bool)
    anchor = int(np.argmax(held.columns["x"]))
    return HeldOut(
        group=held.group,
        feature=feature,
        slope=slope,
        own_slope=own.slope[0],
        level=_rms(level),
        level_bias=float(level.mean()),
        anchor=held.labels[anchor],
        anchored=_rms(missed[pairs[:, anchor], anchor]),
        anchored_all=_rms(missed[pairs]),
        no_change=_rms(step[pairs[:, anchor], anchor]),
        no_change_all=_rms(step[pairs]),
    )


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))


#: Named instead of a group, every group is held out in turn.
ALL = "all"


@dataclass(frozen=True, slots=True)
class GroupCalibration:
    """One group: fits in the order of the laws, comparisons with the best, and why laws are missing."""

    observed: Observations
    fits: tuple[LawFit, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]

    @property
    def best(self) -> LawFit:
        """The fit of the least leave-one-out error."""
        return min(self.fits, key=lambda fit: fit.left_out_error)


@dataclass(frozen=True, slots=True)
class Calibration:
    """All groups of a source."""

    rows: Rows
    groups: tuple[GroupCalibration, ...]
    pooled: tuple[PooledFit, ...]
    held_out: tuple[HeldOut, ...]


def calibrate(rows: Rows, held: str | None = None) -> Calibration:
    """Fit and compare; `held` names a group to be predicted from the others, or "all".

    Raises
    ------
    InputError
        A group with too few rows for the simplest law with a slope, or with the same load in all of them; a group to
        hold out that is not there.
    """
    several = len(rows.groups) > 1
    predicted: tuple[HeldOut, ...] = ()
    if held is not None:
        if not several:
            rows.of(held)
        chosen = [one.group for one in rows.groups] if held == ALL and several else [held]
        for name in chosen:
            rows.of(name)
    groups = tuple(_group(rows, observed) for observed in rows.groups)
    if held is not None:
        predicted = tuple(found for name in chosen for found in hold_out(rows, name))
    pooled: tuple[PooledFit, ...] = ()
    if several and "x" in rows.regressors:
        pooled = tuple(fit_pooled(feature, rows.groups) for feature in features_for(rows.groups))
    return Calibration(rows, groups, pooled, predicted)


def _group(rows: Rows, observed: Observations) -> GroupCalibration:
    """Fit what can be fitted; the first law with a slope must be among it, or its refusal is the answer."""
    laws = laws_for(rows)
    fits, notes = [], []
    sloped = 0
    refusal: InputError | None = None
    for law in laws:
        try:
            fits.append(fit_law(law, observed))
            sloped += bool(law.needs)
        except InputError as error:
            refusal = refusal if refusal is not None or not law.needs else error
            notes.append(f"law '{law.name}' is left out: {error}")
    if not sloped:
        group = f", group '{observed.group}'" if observed.group else ""
        raise InputError(f"{rows.source}{group}: {refusal or 'no law has its columns: give max_load beside mean_load'}")
    return GroupCalibration(observed, tuple(fits), compare(fits), tuple(notes))
