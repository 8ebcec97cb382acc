"""Every study by its name, and where it is. A study is imported when it is asked for, not before."""

from __future__ import annotations

from importlib import import_module

from lbopt.spec import unknown
from lbopt.studies.study import Study

#: Name -> module of the `Study`, whose name in the module is ``STUDY``.
STUDIES = {
    "gap": "lbopt.studies.gap.study",
    "batches": "lbopt.studies.batches.study",
    "simulation": "lbopt.studies.simulation",
    "misprediction": "lbopt.studies.misprediction.study",
    "prediction": "lbopt.studies.prediction.study",
    "prefill": "lbopt.studies.prefill.study",
    "scaling": "lbopt.studies.scaling.study",
    "staggered": "lbopt.studies.staggered.study",
    "locality": "lbopt.studies.locality.study",
    "placement": "lbopt.studies.placement.study",
    "reproduction": "lbopt.studies.reproduction.study",
    "cost": "lbopt.studies.cost.study",
    "check": "lbopt.studies.check.study",
    "race": "lbopt.studies.race.study",
}


def find_study(name: str) -> Study:
    """Return the study of that name.

    Raises
    ------
    InputError
        If there is no such study.
    """
    if name not in STUDIES:
        raise unknown("study", name, STUDIES)
    study: Study = import_module(STUDIES[name]).STUDY
    return study


def study_of_format(format: object) -> Study | None:
    """Return the study whose folders have this format; None where there is none."""
    return next((study for study in map(find_study, STUDIES) if study.format == format), None)
