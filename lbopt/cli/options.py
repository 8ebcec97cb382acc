"""Options that several verbs share and no configuration has."""

from __future__ import annotations

from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(help="First seed.")]
Solver = Annotated[str, typer.Option(help="exact, search, auto, brute-force, cp-sat, highs or pulp.")]
Out = Annotated[str | None, typer.Option("--out", "-o", help="Output folder.", rich_help_panel="Output")]
