"""`lbopt show`: what lbopt knows, a list or one of it: rules, traces, problems, cards, tables, claims, a live fleet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from lbopt.cli.from_config import as_verb, refuse_others
from lbopt.exceptions import InputError
from lbopt.spec import unknown
from lbopt.studies.configuration import Configuration, Option, Without, from_words
from lbopt.studies.requests import RequestSource

if TYPE_CHECKING:
    from lbopt.instances.library import Entry
    from lbopt.instances.library.collection import StoredRun

_READ = ("format", "prompt_column", "output_column", "arrival_column", "named", "unit", "skip_malformed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Configuration):
    """What is to be shown, and how."""

    kind: Annotated[
        str,
        Option(
            "**policies**, **traces**, **problems**, **devices**, **models**, **claims**; **tables** of routing; or "
            "the **fleet** of a running router.",
            argument=True,
        ),
    ]
    name: Annotated[
        str | None,
        Option("One of them; a file that holds one; of a fleet the router's address.", argument=True, shown="a list"),
    ] = None
    as_json: Annotated[bool, Option("Print JSON.", names=("--json",), key="as_json", first=True)] = False
    problem_class: Annotated[
        str | None,
        Option("Only problems of this class, e.g. steady; run: whole small runs.", names=("--class",), first=True),
    ] = None
    workers: Annotated[int | None, Option("Only problems of so many workers.", names=("--workers", "-G"))] = None
    open: Annotated[bool, Option("Only problems whose optimum is not proved.", names=("--open",), first=True)] = False
    fetch: Annotated[
        bool, Option("Fetch a public trace, check it, and say where it is.", names=("--fetch",), first=True)
    ] = False
    base_url: Annotated[str | None, Option("Address of a mirror of public traces (also $LBOPT_TRACES_URL).")] = None
    count: Annotated[
        int | None,
        Option(
            "Requests of a trace: drawn from a family, or the first of a file.",
            names=("--count",),
            shown="10000 of a family, all of a file",
        ),
    ] = None
    seed: Annotated[int, Option("Seed of a family of requests.")] = 0
    requests: Annotated[RequestSource, Without.of("trace", "count", "draw", "train_share", "train_on")] = field(
        default_factory=RequestSource
    )
    every: Annotated[float, Option("Seconds between two readings of a fleet.", low=0.1, high=3600)] = 1.0
    once: Annotated[bool, Option("Read a fleet twice, print, and leave.", names=("--once",), first=True)] = False


def _show(**given: Any) -> None:
    """List what lbopt knows, or show one of it.

    Examples: `lbopt show policies`, `lbopt show policies br-h`, `lbopt show traces burstgpt-like`,
    `lbopt show problems --class steady`, `lbopt show devices h800` and `lbopt show fleet http://127.0.0.1:8000`
    """
    asked = from_words(Shown, given)
    if asked.kind not in _KINDS:
        raise unknown("kind of thing", asked.kind, _KINDS)
    found = _KINDS[asked.kind]
    refuse_others(asked, asked.kind, found.concerned)
    found.show(asked.name, asked)


show = as_verb(_show, "show", _show.__doc__ or "", (Shown,), {})


class _Kind(NamedTuple):
    show: Callable[[str | None, Shown], None]
    concerned: tuple[str, ...] = ()


def _policies(name: str | None, asked: Shown) -> None:
    """The routing rules: what they need to know of requests, when they bind them, their options, their source."""
    from lbopt.cli.console import print_table, say
    from lbopt.policies.table import describe_policies
    from lbopt.report.policy_tables import policy_list_table, policy_option_table

    rules = describe_policies(name)
    if asked.as_json:
        say(json.dumps([asdict(rule) for rule in rules], indent=2))
        return
    print_table(policy_list_table(rules) if name is None else policy_option_table(rules[0]))


def _traces(name: str | None, asked: Shown) -> None:
    from lbopt.cli.traces import show_traces

    show_traces(name, asked)


def _fleet(name: str | None, asked: Shown) -> None:
    from lbopt.cli.fleet import show_fleet

    show_fleet(name, asked)


def _claims(name: str | None, asked: Shown) -> None:
    from lbopt.cli.console import print_table
    from lbopt.report.theory_tables import ledger_table

    if name is not None:
        raise InputError(f"lbopt check {name} says of a claim whether it holds; leave the name out for the list")
    print_table(ledger_table())


def _tables(name: str | None, asked: Shown) -> None:
    from lbopt.cli.console import print_table
    from lbopt.locality.routing_table import read_table
    from lbopt.report.routing_fit_tables import routing_table_table

    if name is None:
        raise InputError("a routing table is a file, .npz; name one")
    print_table(routing_table_table(read_table(Path(name))))


def _devices(name: str | None, asked: Shown) -> None:
    """Every constant of a card with value, ends, unit, basis and source; of all devices whether they were measured."""
    from lbopt.cli.console import print_lines, print_table
    from lbopt.hardware import device_card, device_names
    from lbopt.report.card_tables import device_lines, device_list_table, device_table, source_lines

    cards = [device_card(one) for one in (device_names() if name is None else [name])]
    if asked.as_json:
        _say_json(cards, name)
    elif name is None:
        print_table(device_list_table(cards))
    else:
        print_lines(cards[0].name, device_lines(cards[0]))
        print_table(device_table(cards[0]))
        print_lines("sources", source_lines(cards[0].constants))


def _models(name: str | None, asked: Shown) -> None:
    """The architecture of a model, what follows from it, and the sources."""
    from lbopt.cli.console import print_lines, print_table
    from lbopt.hardware import model_card, model_names
    from lbopt.report.card_tables import model_list_table, model_tables, source_lines

    cards = [model_card(one) for one in (model_names() if name is None else [name])]
    if asked.as_json:
        _say_json(cards, name)
    elif name is None:
        print_table(model_list_table(cards))
    else:
        print_lines(cards[0].name, [("model", cards[0].title), ("attention", cards[0].attention)])
        for table in model_tables(cards[0]):
            print_table(table)
        print_lines("sources", source_lines(cards[0].quantities))


def _problems(name: str | None, asked: Shown) -> None:
    """Class, size, best known value, proved bound; of one what it is for, where it is from, and on whose word."""
    from lbopt.cli.console import print_lines, print_table, say
    from lbopt.instances import library
    from lbopt.instances.library.collection import RUN_KIND
    from lbopt.report import solve_tables as tables

    if name is not None:
        refuse_others(asked, "one problem", ("as_json",))
        entry: Any
        if name.startswith(f"{RUN_KIND}-"):
            entry = library.load_run(name)
            text, lines = tables.run_explanation(entry), tables.run_lines(entry)
        else:
            entry = library.load(name)
            text, lines = entry.explanation, tables.entry_lines(entry)
        if asked.as_json:
            say(json.dumps(entry.to_dict()))
        else:
            print_lines(name, lines, text)
        return
    entries, runs = _listed(asked)
    if asked.as_json:
        say(json.dumps([*map(tables.entry_facts, entries), *map(tables.run_facts, runs)], indent=2))
        return
    if asked.problem_class != RUN_KIND:
        print_table(tables.list_table(entries))
    if runs or asked.problem_class == RUN_KIND:
        print_table(tables.run_table(runs))


def _listed(asked: Shown) -> tuple[list[Entry], list[StoredRun]]:
    """Return the packaged problems and runs that the options leave."""
    from lbopt.instances import library
    from lbopt.instances.library.collection import RUN_KIND

    kind, workers = asked.problem_class, asked.workers
    runs = [] if asked.open or kind not in (None, RUN_KIND) else list(map(library.load_run, library.run_names()))
    names = [] if kind == RUN_KIND else library.names(kind)
    entries = [entry for entry in map(library.load, names) if not asked.open or entry.status != "proved"]
    if workers is not None:
        sizes = sorted({entry.problem.num_workers for entry in entries} | {run.workers for run in runs})
        entries = [entry for entry in entries if entry.problem.num_workers == workers]
        runs = [run for run in runs if run.workers == workers]
        if not entries and not runs:
            others = f"there are some with {', '.join(map(str, sizes))}"
            others = others if sizes else "--class and --open leave no entry at all"
            raise InputError(f"no such entry has {workers} workers; {others}")
    return entries, runs


_KINDS = {
    "policies": _Kind(_policies, ("as_json",)),
    "traces": _Kind(_traces, ("fetch", "base_url", "count", "seed", *_READ)),
    "problems": _Kind(_problems, ("as_json", "problem_class", "workers", "open")),
    "devices": _Kind(_devices, ("as_json",)),
    "models": _Kind(_models, ("as_json",)),
    "claims": _Kind(_claims),
    "tables": _Kind(_tables),
    "fleet": _Kind(_fleet, ("every", "once")),
}


def _say_json(cards: list[Any], name: str | None) -> None:
    from lbopt.cli.console import say

    found = [card.to_dict() for card in cards]
    say(json.dumps(found if name is None else found[0], indent=2))
