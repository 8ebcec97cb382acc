"""`lbopt show fleet`: the fleet of a running router in the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from lbopt.exceptions import InputError

if TYPE_CHECKING:
    from lbopt.cli.show import Shown
    from lbopt.serving.scrape import FleetView

_BAR = 40
_LARGEST = 2**23


def show_fleet(url: str | None, asked: Shown) -> None:
    """Show tokens of every worker, imbalance, pool and rates of a router that `lbopt serve` runs."""
    url, every = url or "http://127.0.0.1:8000", asked.every
    from lbopt.cli.console import out

    before = _read(url)
    if asked.once:
        time.sleep(every)
        out.print(_picture(_read(url), before))
        return
    from rich.live import Live

    try:
        with Live(_picture(before, None), console=out, auto_refresh=False, screen=out.is_terminal) as live:
            while True:
                time.sleep(every)
                view = _read(url)
                live.update(_picture(view, before), refresh=True)
                before = view
    except KeyboardInterrupt:
        return


def _read(url: str) -> FleetView:
    """Read the metrics of a router."""
    from http.client import HTTPException
    from urllib.request import urlopen

    from lbopt.serving.scrape import read_view

    if not url.startswith(("http://", "https://")):
        raise InputError(f"the address is '{url}'; expected http://host:port of a router")
    try:
        with urlopen(url.rstrip("/") + "/metrics", timeout=5) as answer:
            text = answer.read(_LARGEST).decode("utf-8", "replace")
    except (OSError, HTTPException, ValueError) as error:
        raise InputError(f"no router answers at '{url}': {error}; start one with lbopt serve") from None
    view = read_view(text, time.monotonic())
    if not view.workers:
        raise InputError(f"what answers at '{url}' is no router of lbopt: its metrics name no worker")
    return view


def _picture(view: FleetView, before: FleetView | None) -> Any:
    """Return the view as a table of bars under lines of numbers."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def number(value: float | None, form: str = ",.0f") -> str:
        return "-" if value is None else format(value, form)

    waiting, oldest = sum(view.pool.values()), max(view.oldest.values(), default=0.0)
    head = (
        f"idle at the barrier {number(view.idle_share(before), '.1%')}   imbalance "
        f"{sum(view.imbalance.values()):,.0f} tokens   tokens/s {number(view.rate('output_tokens', before))}   "
        f"requests/s {number(view.rate('requests', before), ',.1f')}"
    )
    pool = (
        f"pool {waiting:,.0f} waiting, oldest {oldest:.1f} s   retries {view.counters.get('retries', 0):,.0f}   "
        f"pre-empted {view.counters.get('recomputations', 0):,.0f}   "
        f"refused {view.counters.get('refused_requests', 0):,.0f}"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, justify in (("worker", "left"), ("", "left"), ("tokens", "right"), ("running", "right")):
        table.add_column(header, justify="left" if justify == "left" else "right")
    table.add_column("queued", justify="right")
    peak = max((worker.tokens for worker in view.workers), default=0)
    for worker in view.workers:
        length = round(_BAR * worker.tokens / peak) if peak else 0
        state = "" if worker.up == 1 else " (drains)" if worker.up else " (down)"
        name = f"{worker.group} {worker.name}{state}"
        bar = Text("█" * length, style="red" if worker.tokens == peak and peak else "green")
        table.add_row(Text(name), bar, f"{worker.tokens:,}", f"{worker.running}", f"{worker.queued}")
    return Group(Text(head), Text(pool), Text(""), table)
