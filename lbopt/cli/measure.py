"""`lbopt measure`: attention, products and power of this machine, against a forecast, and a card of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from lbopt.cli.carry_out import Told, conclude, target
from lbopt.cli.from_config import as_verb
from lbopt.cli.study_verb import OUT
from lbopt.exceptions import InputError
from lbopt.files import called, check_name, read_toml
from lbopt.studies.configuration import Configuration, Option, from_words

if TYPE_CHECKING:
    from lbopt.hardware.measure.card import Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(Configuration):
    backend: Annotated[
        str,
        Option("**torch** (accelerators), **numpy** (this processor), or **auto**: torch if installed.", first=True),
    ] = "auto"
    device: Annotated[
        str | None, Option("cuda, cuda:1, npu, xpu, mps or cpu.", first=True, shown="the first there is")
    ] = None
    dtype: Annotated[
        str | None,
        Option("bfloat16, float16 or float32.", shown="bfloat16 on accelerators, float32 on processors"),
    ] = None
    attention: Annotated[
        tuple[str, ...],
        Option("deepseek-v3, qwen3-30b-a3b or llama-3-70b; may be given again.", shown="the first two", empty=True),
    ] = ()
    batches: Annotated[
        tuple[int, ...], Option("Requests of a call; may be given again.", names=("--batch", "-b"), key="batch")
    ] = (1, 8)
    least: Annotated[int | None, Option("Least resident tokens of a call.", shown="1024; accelerators 16384")] = None
    most: Annotated[int | None, Option("Most resident tokens of a call.", shown="65536; accelerators 2097152")] = None
    points: Annotated[int, Option("Sizes between them, in geometric steps.")] = 9
    workers: Annotated[int, Option("Workers of the emulated barrier.", names=("--workers", "-G"))] = 8
    budget: Annotated[float, Option("Seconds for everything.", first=True)] = 60.0
    target: Annotated[float, Option("Relative half-width of a median at which repeating stops.")] = 0.02
    read: Annotated[bool, Option("Time a plain read of memory.", names=("--read/--no-read",))] = True
    barrier: Annotated[bool, Option("Emulate a barrier of workers.", names=("--barrier/--no-barrier",))] = True
    products: Annotated[
        bool | None,
        Option("Time the products of a layer.", names=("--products/--no-products",), shown="on accelerators"),
    ] = None
    layers: Annotated[
        tuple[str, ...],
        Option("Whose layer; may be given again.", key="model", shown="qwen3-30b-a3b, llama-3-70b", empty=True),
    ] = ()
    power: Annotated[
        bool, Option("Measure power, where the device counts its energy.", names=("--power/--no-power",))
    ] = True
    power_seconds: Annotated[float, Option("Length of a window of power, seconds.")] = 2.5
    against: Annotated[
        str | None, Option("Device card to forecast this device by, before it is measured.", first=True)
    ] = None
    forecast_only: Annotated[
        bool, Option("Print the forecast of --against and measure nothing.", names=("--forecast-only",))
    ] = False
    seed: Annotated[int, Option("First seed.")] = 0
    name: Annotated[str | None, Option("Name of the card.", first=True, shown="from the device's")] = None
    card: Annotated[str | None, Option("File for the card.", first=True, shown="NAME.toml, or in the folder")] = None


def _measure(**given: Any) -> None:
    """Measure this machine: attention by resident tokens, a barrier of workers, products of a layer, and power.

    Writes a device card (TOML) that other verbs take as a device. With --out, writes card.toml, samples.csv, power.csv,
    forecast.csv, the picture (png, svg) and run.json. Ctrl-C ends it with what has been measured.

    Example: `lbopt measure --backend numpy --budget 60 --out my-machine`
    """
    from lbopt.cli.console import ProgressBar, command_line, print_table
    from lbopt.hardware.cards.catalogue import device_card
    from lbopt.hardware.measure import MeasureConfig, card_text, compare, forecasts, layers_of, make_backend, make_card
    from lbopt.hardware.measure import measure as run
    from lbopt.hardware.measure.attention import DEFAULT_SHAPES, attention_shape
    from lbopt.hardware.measure.card import slug
    from lbopt.hardware.measure.measurement import DEFAULT_LAYERS
    from lbopt.report.measure_report import FORMAT, compared_table, forecast_table, measure_tables, write_measure_folder
    from lbopt.whole_file import write_file

    asked, out = from_words(_Asked, given), given["out"]
    name, card, against = asked.name, asked.card, asked.against
    if name is not None and slug(name) != name:
        raise InputError(
            f"name '{name}' is not one for a card; expected lower-case letters, digits and -: {slug(name)}"
        )
    same = ("batches", "least", "most", "points", "workers", "budget", "target", "read", "barrier", "products", "power")
    config = MeasureConfig(
        attention=asked.attention or DEFAULT_SHAPES,
        layers=asked.layers or DEFAULT_LAYERS,
        **{field: getattr(asked, field) for field in (*same, "power_seconds", "seed")},
    )
    folder = target(out, FORMAT)
    if card is not None:
        _check_card(Path(card))
    elif folder is None:
        _check_card(Path(f"{name or 'device'}.toml"))
    if asked.forecast_only and against is None:
        raise InputError("--forecast-only has no card to forecast by; name one with --against")
    other = None if against is None else device_card(against)
    chosen = make_backend(asked.backend, asked.device, asked.dtype)
    made_before: list[Forecast] = []
    if other is not None:
        shapes = [attention_shape(one) for one in config.attention]
        made_before = forecasts(
            other,
            shapes,
            layers_of(config, chosen),
            config.layer_batches,
            chosen.itemsize,
            config.tokens(chosen.is_host)[1],
        )
        print_table(forecast_table(other, made_before))
    if asked.forecast_only:
        return
    with ProgressBar() as bar:
        found = run(config, chosen, bar)
    made, missing = None, None
    try:
        made = make_card(found, name)
    except InputError as error:
        missing = str(error)
    text = None if made is None else card_text(made)
    file = None
    if made is not None and text is not None and (card or folder is None):
        file = Path(card or f"{made.name}.toml")
        _check_card(file)
        write_file(file, text)
    compared = compare(made_before, found)

    def told() -> Told:
        return Told(
            tables=[*measure_tables(found), *([] if other is None else [compared_table(other, compared)])],
            notes=[*found.notes, *filter(None, [missing])],
            lead=[] if file is None else [f"card: {file}"],
            written="" if folder is None else f"{'card, ' if text else ''}samples and picture: {folder}",
            interrupted=found.interrupted,
            holds=missing is None,
        )

    conclude(folder, lambda place: write_measure_folder(found, text, place, command_line(), compared), told)


measure = as_verb(_measure, "measure", _measure.__doc__ or "", (_Asked,), {"out": OUT})


def _check_card(path: Path) -> None:
    """Refuse, before any work, a file that cannot be written or is not an earlier measured card."""
    if path.suffix != ".toml":
        raise InputError(f"card '{path}' does not end in .toml; cards are TOML files")
    check_name(path, f"card '{called(path)}'")
    parent = path.resolve().parent
    if not parent.is_dir():
        raise InputError(f"card '{path}' cannot be written: its folder does not exist")
    if not os.access(parent, os.W_OK):
        raise InputError(f"card '{path}' cannot be written: its folder is not writable")
    if not path.exists():
        return
    try:
        measured = read_toml(path).get("origin") == "measurement"
    except InputError:
        measured = False
    if not measured:
        raise InputError(f"card '{path}' exists and is not a card that was measured; give another name")
