"""Loads of ranks over time, from what engines write of themselves: log lines, metrics, or a table of either."""

from lbopt.instances.rank_log.read import is_rank_log, read_rank_log, read_scrapes
from lbopt.instances.rank_log.series import RankSeries

__all__ = ["RankSeries", "is_rank_log", "read_rank_log", "read_scrapes"]
