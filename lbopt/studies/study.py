"""`Study`: what the command line, the report and `lbopt verify` have to know of a study to carry it out.

A study is a configuration, a function that runs it, an outcome, and the names of its tables and figures. How tables and
figures look is in `lbopt.report`; all studies are listed in `lbopt.studies.registry`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from lbopt import compile_time
from lbopt.display import Displayed

#: Fields of an outcome that are no results.
_NO_RESULTS = ("config", "notes", "trace")


@dataclass(slots=True, repr=False)
class Outcome(Displayed):
    """What a study found: its configuration, its rows, and how the run went.

    Parameters
    ----------
    config
        What was asked.
    notes
        Sentences for the user.
    interrupted
        Whether Ctrl-C ended the run; rows are what was done until then.
    seconds
        How long it took.
    """

    config: Any
    notes: list[str] = field(default_factory=list, kw_only=True)
    interrupted: bool = field(default=False, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)

    def __repr__(self) -> str:
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NO_RESULTS}
        counts = [f"{len(value)} {name}" for name, value in named.items() if isinstance(value, list | dict)]
        where = f" {trace['name']}:" if (trace := getattr(self, "trace", {})) and "name" in trace else ""
        return f"<{type(self).__name__}{where} {', '.join(counts).replace('_', ' ')}>"

    @contextmanager
    def clocked(self) -> Iterator[None]:
        """Add the seconds that are spent inside; Ctrl-C ends them, and the outcome says so and keeps what it has."""
        begin = compile_time.clock()
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.seconds += compile_time.clock() - begin


def always(_outcome: Any) -> bool:
    """Return True."""
    return True


def has_rows(outcome: Any) -> bool:
    """Whether an outcome has anything to write: one of its lists and dictionaries of results, if it has any."""
    named = {one.name: getattr(outcome, one.name) for one in fields(outcome) if one.name not in _NO_RESULTS}
    kept = [value for value in named.values() if isinstance(value, list | dict)]
    return not kept or any(kept)


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
    version
        Version of the schema of its folders.
    config
        The class of its configuration: a frozen dataclass with `to_dict` and `from_dict`.
    help
        Help of its command with an example; needed where the command is made of this record.
    folder
        Output folder of its command where none is named; None writes none.
    run
        ``run(config, progress)`` returns the outcome. One that runs tasks through a store, on an engine, also takes the
        keywords `store`, `engine` and `collect_only` of `run_stored`. Ctrl-C must not leave it: the outcome says
        `interrupted` and keeps what is done.
    facts
        Entries of `run.json` that only this study has, from the outcome. A repeated study must find the same.
    account
        Names of the attributes of the outcome that `run.json` keeps besides.
    named
        By which `run.json` names the folders of this study, where it is not ``lbopt-`` and the name.
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
    named: str | None = None
    version: int = 1
    config: type[Any]
    help: str = ""
    folder: str | None = None
    run: Callable[..., Any]
    facts: Callable[[Any], dict[str, Any]] = nothing
    account: tuple[str, ...] = ("interrupted", "notes", "seconds")
    config_key: str = "configuration"
    restore: Callable[[dict[str, Any], str], Any] | None = None
    has_results: Callable[[Any], bool] = has_rows
    holds: Callable[[Any], bool] = always
    timings: tuple[str, ...] = ("seconds",)

    @property
    def format(self) -> str:
        """The name of its folders in `run.json`."""
        return self.named or f"lbopt-{self.name}"

    @property
    def tasks(self) -> bool:
        """Whether it runs tasks through a store, on an engine."""
        return "store" in inspect.signature(self.run).parameters

    def config_of(self, account: dict[str, Any], source: str) -> Any:
        """Return the configuration that a `run.json` holds; `source` names it in errors."""
        if self.restore is not None:
            return self.restore(account, source)
        return self.config.from_dict(account[self.config_key], source=source)
