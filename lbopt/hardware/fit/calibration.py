"""A calibration: every law on every group, which laws the rows tell apart, one slope for all, and groups held out."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.hardware.fit.compare import Comparison, compare
from lbopt.hardware.fit.hold_out import HeldOut, hold_out
from lbopt.hardware.fit.law_fit import LawFit, fit_law, laws_for
from lbopt.hardware.fit.observations import Observations, Rows
from lbopt.hardware.fit.pooled import PooledFit, features_for, fit_pooled

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
