"""``lbopt hardware``: what lbopt knows of devices and models, fits to measured step times, and measuring."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lbopt.cli.hardware_fit import fit
from lbopt.cli.hardware_measure import measure

app = typer.Typer(no_args_is_help=True, help="Cards of devices and models, fits to measured step times, measuring.")

app.command()(fit)
app.command()(measure)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Card = Annotated[str, typer.Argument(help="A name of the list, or the path of a card of your own that ends in .toml.")]


@app.command()
def devices(as_json: AsJson = False) -> None:
    """List the devices, and whether their cards were measured or are from documents.

    Example: `lbopt hardware devices`
    """
    from lbopt.cli.console import print_table, say
    from lbopt.hardware import device_card, device_names
    from lbopt.report.card_tables import device_list_table

    cards = [device_card(name) for name in device_names()]
    if as_json:
        say(json.dumps([card.to_dict() for card in cards], indent=2))
    else:
        print_table(device_list_table(cards))


@app.command()
def device(name: Card, as_json: AsJson = False) -> None:
    """Show the card of one device: every constant with value, ends, unit, basis and source.

    Example: `lbopt hardware device ascend-910c`
    """
    from lbopt.cli.console import print_table, say
    from lbopt.hardware import device_card
    from lbopt.report.card_tables import device_lines, device_table, source_lines

    card = device_card(name)
    if as_json:
        say(json.dumps(card.to_dict(), indent=2))
        return
    _print_lines(card.name, device_lines(card))
    print_table(device_table(card))
    _print_lines("sources", source_lines(card.constants))


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models.

    Example: `lbopt hardware models`
    """
    from lbopt.cli.console import print_table, say
    from lbopt.hardware import model_card, model_names
    from lbopt.report.card_tables import model_list_table

    cards = [model_card(name) for name in model_names()]
    if as_json:
        say(json.dumps([card.to_dict() for card in cards], indent=2))
    else:
        print_table(model_list_table(cards))


@app.command()
def model(name: Card, as_json: AsJson = False) -> None:
    """Show the card of one model: its architecture, what follows from it, and the sources.

    Example: `lbopt hardware model deepseek-v3`
    """
    from lbopt.cli.console import print_table, say
    from lbopt.hardware import model_card
    from lbopt.report.card_tables import model_tables, source_lines

    card = model_card(name)
    if as_json:
        say(json.dumps(card.to_dict(), indent=2))
        return
    _print_lines(card.name, [("model", card.title), ("attention", card.attention)])
    for table in model_tables(card):
        print_table(table)
    _print_lines("sources", source_lines(card.quantities))


def _print_lines(title: str, lines: list[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from lbopt.cli.console import out

    grid = Table.grid(padding=(0, 2))
    for what, is_so in lines:
        grid.add_row(Text(what, style="dim"), Text(is_so, overflow="fold"))
    out.print(title, style="bold", soft_wrap=True)
    out.print(grid)
    out.print()
