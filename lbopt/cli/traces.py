"""`lbopt show traces`: what traces there are, what one looks like, and how to get the public ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbopt.columns import UNITS
from lbopt.exceptions import InputError
from lbopt.instances import CATALOGUE, Reading, TraceDescription, describe, families, fetch, open_reading
from lbopt.instances.sources import cache_folder
from lbopt.table import Table

if TYPE_CHECKING:
    from lbopt.cli.show import Shown

_BAR_WIDTH = 40


def show_traces(name: str | None, asked: Shown) -> None:
    """List the traces there are, fetch one, or show it in numbers: lengths, pace, correlation, load of a busy slot."""
    if name is None:
        if asked.fetch:
            raise InputError("no trace is named; see: lbopt show traces")
        _list()
    elif asked.fetch:
        _fetch(name, asked.base_url)
    else:
        _describe(name, asked)


def _list() -> None:
    from lbopt.cli.console import print_table, say

    known = [families.family_table(name) for name in families.NAMES]
    rates = ["no times" if one.rate is None else f"{one.rate:.2f}" for one in known]
    rows = [
        (name, rate, one.provenance.source, one.provenance.licence)
        for name, rate, one in zip(families.NAMES, rates, known, strict=True)
    ]
    about = "facts published with ELDR; requests use experts"
    rows += [(name, f"{families.EXPERT_RATE:.2f}", about, "none") for name in families.EXPERT_NAMES]
    headers = ("name", "requests/s", "fitted to", "licence")
    print_table(Table(title="families (drawn from a seed)", caption="", headers=headers, rows=rows))
    folder = cache_folder()
    public = [
        (
            entry.name,
            entry.about,
            entry.licence,
            "pinned" if entry.sha256 else "first use",
            "yes" if (folder / entry.file).is_file() else "no",
        )
        for entry in CATALOGUE.values()
    ]
    title, shown = "public traces (lbopt show traces NAME --fetch)", ("name", "what", "licence", "SHA-256", "here")
    print_table(Table(title=title, caption="", headers=shown, rows=public))
    say(f"fetched traces are kept in {folder}")


def _describe(trace: str, asked: Shown) -> None:
    from lbopt.cli.console import out, print_table

    count = 10_000 if trace in families.ALL_NAMES and asked.count is None else asked.count
    given = asked.requests
    reading = open_reading(
        trace,
        count=count,
        seed=asked.seed,
        format=given.format,
        columns=given.columns(),
        unit=given.unit,
        skip_malformed=given.skip_malformed,
    )
    found = describe(reading.trace)
    title = f"{found.name} ({reading.format}{f', seed {asked.seed}' if reading.format == 'family' else ''})"
    print_table(Table(title=title, caption="", headers=("", ""), rows=_facts(found, reading)))
    print_table(Table(title="tokens of a request", caption="", headers=("", "prompt", "output"), rows=_lengths(found)))
    block = "█" if out.encoding.startswith("utf") else "#"
    for name, spread in (("prompt", found.prompt), ("output", found.output)):
        tallest = int(spread.counts.max())
        bars = [max(round(_BAR_WIDTH * count / tallest), 1 if count else 0) for count in spread.counts.tolist()]
        lows, counts = spread.edges[:-1].tolist(), spread.counts.tolist()
        rows = [
            (f"{f'{low:,}+':>10} {block * bar}", f"{count:,}")
            for low, bar, count in zip(lows, bars, counts, strict=True)
        ]
        print_table(Table(title=f"{name} tokens", caption="", headers=("", ""), rows=rows))


def _fetch(name: str, base_url: str | None) -> None:
    from lbopt.cli.console import say

    found = fetch(name, base_url=base_url)
    say(f"{'fetched' if found.downloaded else 'already here'}: {found.path}")
    say(f"SHA-256: {found.sha256}")
    if not found.pinned:
        say("not pinned: lbopt knows no SHA-256 of this file; the first download was trusted, later uses must match it")
    say(f"licence: {CATALOGUE[name].licence}")
    say(f"look at it with: lbopt show traces {name}")


def _facts(found: TraceDescription, reading: Reading) -> list[tuple[str, str]]:
    facts = [("requests", f"{found.rows:,}")]
    facts += [(f"left out: {reason}", f"{count:,}") for reason, count in found.left_out.items()]
    facts += [("moved into time order", f"{reading.reordered:,}")] if reading.reordered else []
    if found.span is None:
        facts.append(("arrival times", "none"))
        facts += [("requests that come after an answer", f"{reading.later:,}")] if reading.later else []
    else:
        facts += [("unit of arrival times in the file", UNITS[reading.unit][-1])] if reading.unit else []
        facts += [
            ("span (s)", f"{found.span:,.1f}"),
            ("requests per second", _number(found.rate, ".4g")),
            ("  over the first tenth of the requests", _number(found.opening_rate, ".4g")),
        ]
    if reading.trace.prefixes is not None:
        facts.append(("tokens of a prefix block", f"{reading.trace.prefixes.block_tokens:,}"))
    facts += [(f"column of {quantity}", name) for quantity, name in reading.columns.items()]
    facts += [("note", note) for note in reading.notes]
    return [
        *facts,
        ("correlation of prompt and output (Pearson)", _number(found.pearson, ".3f")),
        ("  of their ranks (Spearman)", _number(found.spearman, ".3f")),
        ("mean tokens in a busy slot", f"{found.tokens_per_slot:,.1f}"),
    ]


def _lengths(found: TraceDescription) -> list[tuple[str, ...]]:
    both = (found.prompt, found.output)
    return [
        ("mean", *(f"{spread.mean:,.1f}" for spread in both)),
        ("standard deviation", *(f"{spread.std:,.1f}" for spread in both)),
        ("smallest", *(f"{spread.minimum:,}" for spread in both)),
        *(
            (f"{percent}% are at most", *(f"{spread.percentiles[percent]:,.0f}" for spread in both))
            for percent in found.prompt.percentiles
        ),
        ("largest", *(f"{spread.maximum:,}" for spread in both)),
    ]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
