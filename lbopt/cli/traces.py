"""``lbopt traces``: what traces there are, what one looks like, and how to get the public ones."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lbopt.cli.console import Terminal
from lbopt.exceptions import InputError
from lbopt.instances import CATALOGUE, Columns, Spread, TraceDescription, describe, families, fetch, open_reading
from lbopt.instances.download import URL_VARIABLE, cache_folder
from lbopt.instances.readers import FORMATS

app = typer.Typer(no_args_is_help=True, help="List, describe and fetch request traces.")

_BAR_WIDTH = 40


@app.command("list")
def list_traces() -> None:
    """List the families and the public traces, and which of these are on this machine.

    Example: lbopt traces list
    """
    console = Terminal()
    table = Table(title="families (drawn from a seed)", title_justify="left")
    for heading in ("name", "requests/s", "fitted to", "licence"):
        table.add_column(heading, no_wrap=heading == "name")
    for name in families.NAMES:
        known = families.family_table(name)
        rate = "no times" if known.rate is None else f"{known.rate:.2f}"
        table.add_row(name, rate, known.provenance.source, known.provenance.licence)
    for name in families.EXPERT_NAMES:
        table.add_row(name, f"{families.EXPERT_RATE:.2f}", "facts published with ELDR; requests use experts", "none")
    console.print(table)
    table = Table(title="public traces (lbopt traces fetch NAME)", title_justify="left")
    for heading in ("name", "what", "licence", "SHA-256", "here"):
        table.add_column(heading, no_wrap=heading == "name")
    folder = cache_folder()
    for entry in CATALOGUE.values():
        here = "yes" if (folder / entry.file).is_file() else "no"
        table.add_row(entry.name, entry.about, entry.licence, "pinned" if entry.sha256 else "first use", here)
    console.print(table)
    console.print(f"fetched traces are kept in {folder}", soft_wrap=True, markup=False, highlight=False)


@app.command("describe")
def describe_trace(
    trace: Annotated[str, typer.Argument(help="A file, a family, or the name of a fetched public trace.")],
    count: Annotated[
        int | None, typer.Option(help="Requests: drawn from a family (10000), or the first of a file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of a family.")] = 0,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")] = "auto",
    prompt_column: Annotated[str | None, typer.Option(help="CSV column of the prompt tokens.")] = None,
    output_column: Annotated[str | None, typer.Option(help="CSV column of the output tokens.")] = None,
    arrival_column: Annotated[
        str | None, typer.Option(help="CSV column of the arrival, seconds or date-times.")
    ] = None,
    skip_malformed: Annotated[
        bool, typer.Option("--skip-malformed", help="Leave out bad rows, and count them.")
    ] = False,
) -> None:
    """Show a trace in numbers: lengths, pace, correlation, and the load that a busy slot carries.

    Example: lbopt traces describe burstgpt-like
    """
    if trace in families.ALL_NAMES and count is None:
        count = 10_000
    columns = _columns(prompt_column, output_column, arrival_column)
    reading = open_reading(trace, count=count, seed=seed, format=format, columns=columns, skip_malformed=skip_malformed)
    summary = describe(reading.trace)
    console = Terminal()
    title = f"{escape(summary.name)} ({reading.format}{f', seed {seed}' if reading.format == 'family' else ''})"
    console.print(_facts(summary, title, reading.reordered))
    console.print(_lengths(summary))
    for name, spread in (("prompt", summary.prompt), ("output", summary.output)):
        console.print(_histogram(name, spread, "█" if console.encoding.startswith("utf") else "#"))


@app.command("fetch")
def fetch_trace(
    name: Annotated[str, typer.Argument(help="Name of a public trace; see: lbopt traces list")],
    base_url: Annotated[str | None, typer.Option(help=f"Address of a mirror (also ${URL_VARIABLE}).")] = None,
) -> None:
    """Fetch a public trace into the cache, check it, and say where it is.

    Example: lbopt traces fetch azure-2023-conv
    """
    found = fetch(name, base_url=base_url)
    say = Terminal(soft_wrap=True, markup=False, highlight=False).print
    say(f"{'fetched' if found.downloaded else 'already here'}: {found.path}")
    say(f"SHA-256: {found.sha256}")
    if not found.pinned:
        say("not pinned: lbopt knows no SHA-256 of this file; the first download was trusted, later uses must match it")
    say(f"licence: {CATALOGUE[name].licence}")
    say(f"look at it with: lbopt traces describe {name}")


def _columns(prompt: str | None, output: str | None, arrival: str | None) -> Columns | None:
    if prompt is None and output is None and arrival is None:
        return None
    if prompt is None or output is None:
        raise InputError("--prompt-column and --output-column must be given together")
    return Columns(prompt, output, arrival)


def _facts(summary: TraceDescription, title: str, reordered: int) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("requests", f"{summary.rows:,}")
    for reason, count in summary.left_out.items():
        table.add_row(f"left out: {reason}", f"{count:,}")
    if reordered:
        table.add_row("moved into time order", f"{reordered:,}")
    if summary.span is None:
        table.add_row("arrival times", "none")
    else:
        table.add_row("span (s)", f"{summary.span:,.1f}")
        table.add_row("requests per second", _number(summary.rate, ".4g"))
        table.add_row("  over the first tenth of the requests", _number(summary.opening_rate, ".4g"))
    table.add_row("correlation of prompt and output (Pearson)", _number(summary.pearson, ".3f"))
    table.add_row("  of their ranks (Spearman)", _number(summary.spearman, ".3f"))
    table.add_row("mean tokens in a busy slot", f"{summary.tokens_per_slot:,.1f}")
    return table


def _lengths(summary: TraceDescription) -> Table:
    table = Table(title="tokens of a request", title_justify="left")
    for heading in ("", "prompt", "output"):
        table.add_column(heading, justify="right" if heading else "left")
    both = (summary.prompt, summary.output)
    table.add_row("mean", *(f"{spread.mean:,.1f}" for spread in both))
    table.add_row("standard deviation", *(f"{spread.std:,.1f}" for spread in both))
    table.add_row("smallest", *(f"{spread.minimum:,}" for spread in both))
    for percent in summary.prompt.percentiles:
        table.add_row(f"{percent}% are at most", *(f"{spread.percentiles[percent]:,.0f}" for spread in both))
    table.add_row("largest", *(f"{spread.maximum:,}" for spread in both))
    return table


def _histogram(name: str, spread: Spread, block: str) -> Table:
    table = Table(title=f"{name} tokens", title_justify="left", box=None, show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    tallest = int(spread.counts.max())
    for low, count in zip(spread.edges[:-1].tolist(), spread.counts.tolist(), strict=True):
        width = max(round(_BAR_WIDTH * count / tallest), 1 if count else 0)
        table.add_row(f"{low:,}+", block * width, f"{count:,}")
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
