"""`Study`: what the command line, the report and `lbopt rerun` have to know of a study to carry it out.

A study is a configuration, a function that runs it, an outcome, and the names of its tables and figures. How tables and
figures look is in `lbopt.report`; all studies are listed in `lbopt.studies.registry`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Outcome(Protocol):
    """What every outcome has beside its results."""

    notes: list[str]
    interrupted: bool


def always(_outcome: Any) -> bool:
    """Return True."""
    return True


def nothing(_outcome: Any) -> dict[str, Any]:
    """Return no facts."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study.

    Parameters
    ----------
    name
        Its key in `STUDIES`.
    format, version
        By which `run.json` names the folders of this study, and the version of their schema.
    config
        The class of its configuration: a frozen dataclass with `to_dict` and `from_dict`.
    help
        Help of its command with an example; needed where the command is made of this record.
    run
        ``run(config, progress)`` returns the outcome. A study of `tasks` also takes the keywords `store`, `engine` and
        `collect_only` of `run_stored`. Ctrl-C must not leave it: the outcome says `interrupted` and keeps what is done.
    tables, figures
        Names of the CSV files and of the figures in its folder, without their endings. A figure that is drawn once for
        each of several things, such as rules, ends in ``*``.
    tasks
        Whether it runs tasks through a store, on an engine.
    facts
        Entries of `run.json` that only this study has, from the outcome. A repeated study must find the same.
    account
        Names of the attributes of the outcome that `run.json` keeps besides.
    config_key
        The key of the configuration in `run.json`.
    restore
        Returns the configuration of a `run.json`, given with a name for errors; None = by `config.from_dict`.
    has_results
        Whether an outcome has anything to write.
    holds
        Whether the answer is yes; where not, the command line ends with exit code 1.
    timings
        Columns and fields that measure the machine and the moment; a repeated study may differ in them.
    """

    name: str
    format: str
    version: int = 1
    config: type[Any]
    help: str = ""
    run: Callable[..., Any]
    tables: tuple[str, ...]
    figures: tuple[str, ...] = ()
    tasks: bool = False
    facts: Callable[[Any], dict[str, Any]] = nothing
    account: tuple[str, ...] = ("interrupted", "notes", "seconds")
    config_key: str = "configuration"
    restore: Callable[[dict[str, Any], str], Any] | None = None
    has_results: Callable[[Any], bool] = always
    holds: Callable[[Any], bool] = always
    timings: tuple[str, ...] = ("seconds",)

    def config_of(self, account: dict[str, Any], source: str) -> Any:
        """Return the configuration that a `run.json` holds; `source` names it in errors."""
        if self.restore is not None:
            return self.restore(account, source)
        return self.config.from_dict(account[self.config_key], source=source)
