"""`lbopt audit` of ranks: where its log is an engine's own lines, metrics, a table of loads, or the URL of /metrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lbopt.cli.from_config import refuse_others
from lbopt.exceptions import InputError
from lbopt.files import exists
from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.ranks import RankOptions, RanksConfig, RanksOutcome, run_ranks
from lbopt.studies.configuration import from_words

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress


def is_of_ranks(given: Mapping[str, Any]) -> bool:
    """Whether the log of an audit says what ranks hold.

    Raises
    ------
    InputError
        Where options of ranks, or several files, are given for a log of requests.
    """
    from lbopt.instances.rank_log import is_rank_log

    log = given["log"]
    if log.startswith(("http://", "https://")) or is_rank_log(log):
        return True
    if re.fullmatch(r"[\w.-]+:\d+(?:/\S*)?", log) and not exists(log):
        raise InputError(f"there is no file '{log}'; if it is an address, give http://{log}")
    asked = from_words(RankOptions, given)
    if asked.more:
        raise InputError(f"several files are read of engines' logs, and '{log}' is none; a router's log is one file")
    if asked != RankOptions():
        raise InputError(
            f"--kv-capacity, --for, --device and --model are of engines' logs, and '{log}' is none; leave them out"
        )
    return False


def audit_of_ranks(given: Mapping[str, Any]) -> tuple[RanksConfig, Callable[[Progress], RanksOutcome]]:
    """Return the configuration of an audit of ranks, and what runs it; a URL is watched first."""
    refuse_others(from_words(AuditConfig, given), "the log of engines", ("price", "gpus", "currency"))
    config = from_words(RanksConfig, given)
    urls = [one for one in config.logs if one.startswith(("http://", "https://"))]
    if urls and len(urls) < len(config.logs):
        raise InputError("files and URLs were given together; give one kind")
    return config, lambda progress: _watched(config, progress) if urls else run_ranks(config, progress)


def _watched(config: RanksConfig, progress: Progress) -> RanksOutcome:
    from lbopt.instances.rank_log import read_scrapes
    from lbopt.serving.process import require_serving
    from lbopt.serving.watch import watch

    require_serving("lbopt audit of a URL")
    seconds, every = config.watched
    progress.begin("scrapes", int(seconds / every) + 1)
    scrapes, stopped = watch(config.logs, seconds, every, lambda _count: progress.advance())
    outcome = run_ranks(config, progress, read=lambda: read_scrapes(scrapes, config.log))
    outcome.interrupted = stopped
    return outcome
