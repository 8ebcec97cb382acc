"""Options of the verbs that run tasks: where they run, where their results are kept, whether to run at all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Engine = Annotated[
    str,
    typer.Option(
        help="Where tasks run: **serial**, **joblib** or `joblib:jobs=8`, **isolated**, **dask** (processes of this "
        "machine), `dask://host:port` or `dask+tls://host:port`."
    ),
]
StorePath = Annotated[
    Path | None,
    typer.Option("--store", help="SQLite file of results; what it holds is not run again [default: none is kept]."),
]
CollectOnly = Annotated[
    bool, typer.Option("--collect-only", help="Run nothing: take the results that the store holds.")
]
