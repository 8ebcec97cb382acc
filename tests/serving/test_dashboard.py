"""The dashboard asks for metrics that exist, and the manual names all options."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from serving.engines import Engine, fleet, run, stream

from lbopt.serving.router.options import RouterOptions

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_dashboard_asks_for_metrics_that_are_there():
    """Every name in an expression is in `/metrics` of a router with a shadow."""
    text = run(served())
    dashboard = json.loads((DOCS / "_static" / "lbopt-serve-dashboard.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"lbopt_\w+", target["expr"])
    }
    assert len(asked) > 20
    assert sorted(name for name in asked if f"# TYPE {name.removesuffix('_bucket')}" not in text) == []


async def served():
    """Return the metrics of a router that has served one request."""
    async with fleet([Engine()], shadow="jsq") as (_, client, base):
        await stream(client, base)
        async with client.get(base + "/metrics") as answer:
            return await answer.text()


def test_the_manual_names_every_option():
    """In the table, in the text, or as an option of the verb."""
    page = (DOCS / "serve.md").read_text()
    named = {"policy", "seed", "train_on", "host", "port", "record", "shadow", "api_key", "admin_token", "route_token"}
    assert [f.name for f in fields(RouterOptions) if f.name not in named and f"`{f.name}`" not in page] == []
    for option in ("--fleet", "--shadow", "--record", "--policy", "--tls-cert", "LBOPT_API_KEY", "LBOPT_ADMIN_TOKEN"):
        assert option in page
