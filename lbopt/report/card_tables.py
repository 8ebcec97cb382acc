"""The tables of hardware cards: all devices, one device, all models, one model; every constant with ends and source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.ticker import EngFormatter

from lbopt.hardware import DeviceCard, ModelCard, Quantity
from lbopt.hardware.cards import ARCHITECTURE, CONSTANTS
from lbopt.hardware.cards.model import QUANTITIES
from lbopt.numbers import UNKNOWN
from lbopt.table import Table

_ORIGIN = {"documents": "from documents", "measurement": "measured"}
_LISTED = ("memory_capacity", "flops_16bit", "peak_power")
_LISTED_WITH_ENDS = ("memory_bandwidth", "step_overhead", "rental")
#: Units that are read with a prefix: 3.35 TB/s, 20 ms.
_SCALED = ("B", "B/s", "FLOP/s", "s")


def amount(value: float, unit: str) -> str:
    """Return a number with its unit as people read it."""
    if unit in _SCALED and value:
        shown: str = EngFormatter(unit=unit)(float(f"{value:.4g}"))
        return shown
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


def device_list_table(cards: Sequence[DeviceCard]) -> Table:
    """Return one line per device."""
    rows = []
    for card in cards:
        shown = [_listed(card, name, ends=False) for name in _LISTED]
        shown += [_listed(card, name, ends=True) for name in _LISTED_WITH_ENDS]
        rows.append((card.name, card.part, _ORIGIN[card.origin], *shown))
    measured = sum(card.origin == "measurement" for card in cards)
    return Table(
        title=f"{len(cards)} devices: {measured} measured, {len(cards) - measured} from documents",
        caption="A card from documents says what vendors and papers say; nothing of it was measured by lbopt. In "
        "brackets the ends; those of the other constants, and all sources: lbopt show devices NAME.",
        headers=("name", "a device is a", "card", "memory", "16-bit", "power", "bandwidth", "overhead", "rental"),
        rows=rows,
    )


def device_lines(card: DeviceCard) -> list[tuple[str, str]]:
    """Return what the card is, as (what, is so)."""
    origin = "measured on the machine itself" if card.origin == "measurement" else "from documents, nothing measured"
    lines = [("device", card.title), ("one device is a", card.part), ("card", origin)]
    lines += [("note", card.note)] if card.note else []
    return lines + [(what, str(so)) for what, so in card.account.items()]


def device_table(card: DeviceCard) -> Table:
    """Return one line per constant of a device."""
    missing = [name for name in CONSTANTS if name not in card.constants]
    return quantity_table(
        f"constants of {card.name}",
        f"Not on the card: {', '.join(missing)}." if missing else "The card has every constant.",
        card.constants,
        CONSTANTS,
    )


def quantity_table(
    title: str, caption: str, quantities: Mapping[str, Quantity], meanings: Mapping[str, tuple[str, str]]
) -> Table:
    """Return one line per quantity: value, ends, unit, basis, meaning.

    Parameters
    ----------
    meanings
        Unit and meaning of each constant by name.
    """
    rows = []
    for name, one in quantities.items():
        ends = (amount(number, one.unit) for number in (one.value, one.low, one.high))
        rows.append((name, *ends, one.unit, one.basis, meanings[name][1]))
    return Table(
        title=title,
        caption=caption,
        headers=("constant", "value", "low", "high", "unit", "basis", "meaning"),
        rows=rows,
    )


def source_lines(quantities: Mapping[str, Quantity]) -> list[tuple[str, str]]:
    """Return where each quantity is from, as (name, source)."""
    return [(name, one.source) for name, one in quantities.items()]


def model_list_table(cards: Sequence[ModelCard]) -> Table:
    """Return one line per model."""
    rows = []
    for card in cards:
        experts = f"{card['experts_per_token']} of {card['experts']}" if card["experts"] else "none"
        counts = (card.total_parameters, card.active_parameters, card.common_parameters)
        rows.append(
            (
                card.name,
                card.attention,
                str(card["layers"]),
                experts,
                *(f"{count / 1e9:.1f} B" for count in counts),
                f"{card.kv_values_per_token:,}",
                f"{card.attention_flops / 1e6:.2f} M",
            )
        )
    return Table(
        title=f"{len(cards)} models",
        caption="Parameters in billions: all, those that a token uses, those that every worker reads in every step. "
        "Attention: FLOP per cached token and query token.",
        headers=("name", "attention", "layers", "experts", "total", "active", "common", "KV values / token", "FLOP"),
        rows=rows,
    )


def model_tables(card: ModelCard) -> list[Table]:
    """Return the architecture, what follows from it, and what the card says beside it."""
    integers = [
        (name, f"{value:,}", card.entries[name], ARCHITECTURE[name]) for name, value in card.architecture.items()
    ]
    kv = card.quantities["kv_bytes"]
    ends = dict.fromkeys((kv.low, kv.high))
    weights = card.quantities["weight_bytes"].value
    derived = [
        ("KV values of a token", f"{card.kv_values_per_token:,}"),
        ("KV bytes of a token", " – ".join(f"{card.kv_values_per_token * end:,.0f}" for end in ends)),
        ("attention per cached and query token", f"{card.attention_flops / 1e6:.2f} MFLOP"),
        ("parameters, all", f"{card.total_parameters:,}"),
        ("parameters, used by a token", f"{card.active_parameters:,}"),
        ("parameters, read by every worker", f"{card.common_parameters:,}"),
        ("parameters, one expert of one layer", f"{card.expert_parameters:,}"),
        ("bytes of it", f"{card.expert_parameters * weights:,.0f}"),
    ]
    return [
        Table(f"architecture of {card.name}", card.source, ("integer", "value", "entry", "meaning"), integers),
        Table("what follows from it", card.note, ("", "value"), derived if card["experts"] else derived[:-2]),
        quantity_table("beside it", "Sources are below.", card.quantities, QUANTITIES),
    ]


def _listed(card: DeviceCard, name: str, *, ends: bool) -> str:
    if name not in card.constants:
        return UNKNOWN
    one = card.constants[name]
    value = amount(one.value, one.unit)
    if not ends or one.low == one.high:
        return value
    return f"{value} ({amount(one.low, one.unit)} – {amount(one.high, one.unit)})"
