"""Every study by its name, and where it is. A study is imported when it is asked for, not before."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from lbopt.spec import unknown

if TYPE_CHECKING:
    from lbopt.studies.study import Study


class Listed(NamedTuple):
    """A study of the table: the module with its ``STUDY``, a line of help, and whether it is ``lbopt study NAME``."""

    module: str
    help: str
    in_group: bool = False


STUDIES = {
    "audit": Listed("lbopt.studies.audit.whole_log", "Would another rule serve a log's requests faster?"),
    "ranks": Listed("lbopt.studies.audit.ranks", "What does the imbalance in an engine's own log cost?"),
    "gap": Listed("lbopt.studies.gap.study", "How far is each routing rule from the best placement?"),
    "hindsight": Listed("lbopt.studies.hindsight.study", "How far were rules from the best with all lengths known?"),
    "batches": Listed(
        "lbopt.studies.batches.study", "How far is each allocation of a prefill batch from the best?", True
    ),
    "simulation": Listed("lbopt.studies.simulation", "What does one policy do over a trace?"),
    "misprediction": Listed("lbopt.studies.misprediction.study", "What does a wrong forecast cost?", True),
    "prediction": Listed("lbopt.studies.prediction.evaluation", "What is known of how long a request will run?"),
    "prefill": Listed("lbopt.studies.prefill.study", "Which rule gives the shortest times to first token?"),
    "placement": Listed("lbopt.studies.placement.study", "What does placing experts exactly gain over greedy?", True),
    "locality": Listed("lbopt.studies.locality.study", "Does routing by expert locality pay?", True),
    "scaling": Listed("lbopt.studies.scaling.study", "How does the imbalance grow with slots and workers?", True),
    "stale": Listed("lbopt.studies.stale.study", "What does it cost that a router's sight is old?", True),
    "staggered": Listed("lbopt.studies.staggered.study", "What is holding prompts back worth?", True),
    "cost": Listed("lbopt.studies.cost.study", "What does imbalance cost in time, energy and money?"),
    "check": Listed("lbopt.studies.check.study", "Does the theory hold?"),
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
    study: Study = import_module(STUDIES[name].module).STUDY
    return study


def study_of_format(format: object) -> Study | None:
    """Return the study whose folders have this format; None where there is none."""
    return next((study for study in map(find_study, STUDIES) if study.format == format), None)
