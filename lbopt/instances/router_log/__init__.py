"""Logs of routers: one row a request with the worker that served it, from CSV, Parquet, JSON lines or spans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.instances.router_log.log import ENDINGS, FINISHED, RUNNING, ColumnReading, RouterLog

__all__ = ["ENDINGS", "FINISHED", "RUNNING", "ColumnReading", "RouterLog", "read_router_log"]


def read_router_log(
    path: str | Path, *, columns: Mapping[str, str] | None = None, unit: str | None = None, name: str | None = None
) -> RouterLog:
    """Read a log."""
    raise InputError(f"log '{name or path}' cannot be read yet (columns {columns}, unit {unit})")
