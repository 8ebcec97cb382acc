"""The command of a study, made of its record: options from its configuration, help from its text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lbopt.cli import options, running
from lbopt.cli.brief_help import HelpAll, brief
from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import first_of, parameters, signature
from lbopt.studies.configuration import from_words
from lbopt.studies.registry import find_study

#: A command with more options than this shows the first ones alone, and all of them by `--help-all`.
MOST_SHOWN = 16


def study_verb(name: str) -> Callable[..., None]:
    """Return the command of the study `name`: it asks for the configuration, where to run, and the folder."""
    study = find_study(name)

    def verb(**given: Any) -> None:
        execution = {key: given[key] for key in ("store", "engine", "collect_only")} if study.tasks else {}
        carry_out(name, from_words(study.config, given), given["out"], **execution)

    more = {"engine": "serial", "store": None, "collect_only": False} if study.tasks else {}
    given = parameters(study.config) | by_hand(more)
    return as_verb(verb, name, study.help, given.values(), first_of(study.config))


def by_hand(defaults: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that say how tasks run, with these defaults."""
    kinds = {"engine": running.Engine, "store": running.StorePath, "collect_only": running.CollectOnly}
    return {name: option(name, kinds[name], default) for name, default in defaults.items()}


def option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def as_verb(
    function: Callable[..., None],
    name: str,
    text: str,
    of: Iterable[inspect.Parameter],
    first: frozenset[str] = frozenset(),
    out: Any = options.Out,
) -> Callable[..., None]:
    """Let typer see a function of any keywords as one with these parameters, `--out` and `--help-all`.

    Parameters
    ----------
    first
        Names of those that `--help` shows where there are many; none for all of them.
    out
        The annotation of `--out`.
    """
    rest = [option("out", out, None)]
    of = list(of)
    if first and len(of) > MOST_SHOWN:
        rest.append(option("help_all", HelpAll, False))
        function.brief = brief(first | {"out"})  # type: ignore[attr-defined]
    function.__name__, function.__doc__ = name, text
    function.__annotations__ = {}
    function.__signature__ = signature([*of, *rest])  # type: ignore[attr-defined]
    return function
