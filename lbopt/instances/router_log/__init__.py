"""Logs of routers: one row a request with the worker that served it, from CSV, Parquet, JSON lines or spans."""

from lbopt.instances.router_log.beside import with_record
from lbopt.instances.router_log.endings import ENDINGS, FINISHED, RUNNING, ColumnReading, RouterLog
from lbopt.instances.router_log.read import read_router_log

__all__ = ["ENDINGS", "FINISHED", "RUNNING", "ColumnReading", "RouterLog", "read_router_log", "with_record"]
