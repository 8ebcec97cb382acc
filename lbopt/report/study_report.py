"""How a study's outcome is shown: `StudyReport`, and the folder of every study, written and read in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbopt.exceptions import InputError
from lbopt.files import exists, read_json, shown
from lbopt.report.contents import Contents, Made, write_folder
from lbopt.report.folder import MARK
from lbopt.studies.registry import find_study, study_of_format
from lbopt.studies.study import Study
from lbopt.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lbopt.report.contents import Rows
    from lbopt.report.views import View

#: Name of a study -> module of its `StudyReport`, whose name in the module is ``REPORT``.
REPORTS = {
    "audit": "lbopt.report.audit_report",
    "ranks": "lbopt.report.ranks_report",
    "gap": "lbopt.report.gap_report",
    "hindsight": "lbopt.report.hindsight_report",
    "batches": "lbopt.report.batch_gap_report",
    "simulation": "lbopt.report.simulation_report",
    "misprediction": "lbopt.report.misprediction_report",
    "prediction": "lbopt.report.prediction_report",
    "prefill": "lbopt.report.prefill_report",
    "scaling": "lbopt.report.scaling_report",
    "stale": "lbopt.report.stale_report",
    "staggered": "lbopt.report.staggered_report",
    "locality": "lbopt.report.locality_report",
    "placement": "lbopt.report.placement_report",
    "cost": "lbopt.report.cost_report",
    "check": "lbopt.report.check_report",
}


def _nothing(_outcome: Any) -> Any:
    return ()


#: Returns the rows of a table, as records or as a frame.
RowsOf = Callable[[Any], "Rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport:
    """How the outcome of one study is shown.

    Parameters
    ----------
    tables
        The tables that a terminal shows.
    csv
        Functions that return the rows of a CSV file, by its name without ending; None leaves the file out. They are
        the data frames of the outcome, too, the first by default.
    records
        Functions that return the records of a file of JSON lines, by its name without ending.
    figures
        Returns the pictures by name; None leaves one out.
    others
        Returns the other files of the folder, see `Contents`.
    draw
        Draws the leading picture on axes; None = there is none.
    frames
        Data frames that are others than the rows of the CSV files, or that no CSV file has.
    aliases
        Further names of data frames.
    heading, lead
        Sentences above and below the tables.
    warnings
        Sentences after everything else that need attention.
    written
        What the last line calls the contents of the folder.
    page
        The file that the last line names; None for the folder itself.
    packages
        Packages whose versions are recorded besides the usual ones.
    digests
        Whether `run.json` holds the SHA-256 of every file.
    """

    tables: Callable[[Any], Sequence[Table]]
    csv: Mapping[str, RowsOf] = field(default_factory=dict)
    records: Mapping[str, Callable[[Any], Iterable[dict[str, Any]]]] = field(default_factory=dict)
    figures: Callable[[Any], Mapping[str, Figure | None]] = _nothing
    others: Callable[[Any, Made], Mapping[str, str | bytes | dict[str, Any]]] | None = None
    draw: Callable[[Any, Axes], None] | None = None
    frames: Mapping[str, RowsOf] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    heading: Callable[[Any], Sequence[str]] = _nothing
    lead: Callable[[Any], Sequence[str]] = _nothing
    warnings: Callable[[Any], Sequence[str]] = _nothing
    written: str = "tables and pictures"
    page: str | None = None
    packages: tuple[str, ...] = ()
    digests: bool = False

    def contents(self, outcome: Any, made: Made) -> Contents:
        """Return the files of the output folder."""
        return Contents(
            tables={name: rows(outcome) for name, rows in self.csv.items()},
            records={name: records(outcome) for name, records in self.records.items()},
            figures=dict(self.figures(outcome)),
            others={} if self.others is None else self.others(outcome, made),
        )

    def view(self) -> View[Any]:
        """Return how the outcome shows itself in Python."""
        import pandas as pd

        from lbopt.report.views import View

        rows = {**self.frames, **{name: of for name, of in self.csv.items() if name not in self.frames}}
        rows |= {name: rows[known] for name, known in self.aliases.items()}

        def frame(of: RowsOf) -> Callable[[Any], pd.DataFrame]:
            return lambda outcome: pd.DataFrame(of(outcome))

        return View({name: frame(of) for name, of in rows.items()}, self.draw)


#: Entries of `run.json` that readers rely on, where they are there.
_KINDS: dict[str, type[Any]] = {"command": str, "trace": dict, "versions": dict, "code": dict, "files": list}
#: Bytes of a `run.json`; the longest that a study writes has some thousands.
_LARGEST = 2**24

_NAMES: dict[Any, str] = {str: "a text", dict: "an object", list: "a list"}


def report_of(name: str) -> StudyReport:
    """Return how the study of that name is shown."""
    report: StudyReport = import_module(REPORTS[name]).REPORT
    return report


def write_study_folder(name: str, outcome: Any, folder: Path, command: str) -> None:
    """Write the folder of an outcome of the study `name`, whole or not at all."""
    from lbopt.policies.python_file import code_in  # the policies take a third of a second to import

    study, report = find_study(name), report_of(name)
    account = {study.config_key: outcome.config.to_dict(), **study.facts(outcome)}
    account |= {key: getattr(outcome, key) for key in study.account}
    code = code_in(account[study.config_key])
    if code:
        account["code"] = code
    write_folder(
        folder,
        study.format,
        study.version,
        command,
        lambda made: report.contents(outcome, made),
        account,
        packages=report.packages,
        digests=report.digests,
    )


def read_account(folder: Path, name: str | None = None) -> tuple[Study, dict[str, Any]]:
    """Return the study that wrote a folder, and its `run.json`.

    Parameters
    ----------
    name
        The study that must have written it; None for any.

    Raises
    ------
    InputError
        If no such study wrote the folder, or in another version of the schema.
    """
    path = folder / MARK
    if not exists(path):
        raise InputError(f"'{folder}' is not an output folder of lbopt: it has no {MARK}")
    data = read_json(path, largest=_LARGEST)
    study = study_of_format(data.get("format")) if isinstance(data, dict) else None
    if study is None or name not in (None, study.name):
        raise InputError(f"'{path}' was not written by {'a study' if name is None else f'the study {name}'} of lbopt")
    if data.get("version") != study.version:
        raise InputError(f"'{path}' has version {shown(data.get('version'))}; this lbopt reads version {study.version}")
    kept = (key for key in ("interrupted", "trace") if key in study.account)
    missing = [key for key in (study.config_key, *kept, "command", "versions") if key not in data]
    if missing:
        raise InputError(f"'{path}' lacks {', '.join(missing)}; run the study again")
    for key, kind in _KINDS.items():
        if not isinstance(data.get(key, kind()), kind):
            raise InputError(f"'{path}': {key} is {shown(data[key])}; expected {_NAMES[kind]}")
    for key in ("versions", "code"):
        odd = next((value for value in data.get(key, {}).values() if not isinstance(value, str)), None)
        if odd is not None:
            raise InputError(f"'{path}': {key} holds {shown(odd)}; expected texts by name")
    return study, data


def read_config(folder: Path, name: str) -> tuple[Any, dict[str, Any]]:
    """Return the configuration of a folder that the study `name` wrote, and its `run.json`."""
    study, data = read_account(folder, name)
    return study.config_of(data, str(folder / MARK)), data
