"""Loads of ranks, known by their content, and read: logs, metrics, queries, tables; one file, several, or a folder."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.files import JsonFault, called, json_value, opened, read_bytes
from lbopt.instances.rank_log import lines, metrics, tables
from lbopt.instances.rank_log.lines import RankLine, Tally, clock_of
from lbopt.instances.rank_log.series import RankSeries, align

#: Bytes of a file in which its kind must show.
_BEGINNING = 2**24
#: Bytes of a log that are read.
LARGEST_LOG = 2**31
_PROMETHEUS = re.compile(metrics.SIGNATURE)
_QUERY = re.compile(metrics.QUERY)
_STATISTICS = re.compile(metrics.STATISTICS)
#: What errors and tables call the kinds of files.
_TITLES = {
    "log": "an engine's log",
    "metrics": "metrics in Prometheus' text",
    "query": "the answer of a Prometheus query",
    "statistics": "TensorRT-LLM's statistics of iterations",
    "table": "a table of ranks",
}
_EPOCH = re.compile(r"(?<!\d)(1\d{9})(\d{3})?(?!\d)")


def is_rank_log(path: str | os.PathLike[str]) -> bool:
    """Whether a file, or one of a folder, says what ranks hold; what cannot be read is for its reader to say."""
    return any(_kind(_plain(one, _BEGINNING)) for one in _files([path])[:20])


def read_rank_log(paths: Sequence[str | os.PathLike[str]]) -> RankSeries:
    """Read what ranks of one fleet held over time.

    Parameters
    ----------
    paths
        Files, plain or gzip, or folders of files: logs of one engine or of several nodes, scrapes of /metrics, answers
        of Prometheus' query API, tables. Order does not matter where they have times.

    Raises
    ------
    InputError
        Where a file says nothing of ranks.
    """
    found: list[tuple[str, RankLine]] = []
    tally, strangers, kinds = Tally(), 0, set[str]()
    files = _files(paths)
    named = {path: path.stem if len({one.stem for one in files}) == len(files) else str(path) for path in files}
    source = called(paths[0]) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    for path in files:
        data = _plain(path)
        kind = _kind(data)
        if not kind:
            strangers += 1
            continue
        kinds.add(kind)
        if len(kinds) > 1:
            raise InputError(
                f"{source} holds {' and '.join(sorted(_TITLES[one] for one in kinds))}, which would say the same "
                "twice; give files of one kind"
            )
        found += [(_file_of(kind, named[path]), one) for one in _read(data, kind, path, tally)]
    if not found and any("several" in one for one in tally.used):
        raise InputError(
            f"{source} has vLLM's lines of all engines together ('Engines Aggregated'), which do not tell ranks apart; "
            "start vLLM without --aggregate-engine-logging, or give its /metrics"
        )
    if not found:
        raise InputError(
            f"{source} says nothing of ranks; expected an engine's log lines, metrics in Prometheus' text, the answer "
            "of its query API, or a table with the columns time, rank, tokens (or share), running, waiting"
        )
    return _told(align(found, source), tally, strangers)


def read_scrapes(scrapes: Iterable[tuple[str, float, bytes]], source: str) -> RankSeries:
    """Read scrapes of /metrics.

    Parameters
    ----------
    scrapes
        Where each is from, when it was made (s), and its text.
    """
    found: list[tuple[str, RankLine]] = []
    tally = Tally()
    for where, seconds, data in scrapes:
        found += [(where, one) for one in _read(data, _kind(data), Path(source), tally, seconds)]
    if not found:
        raise InputError(
            f"{source} has no metric of running requests or of the KV cache by vLLM, SGLang, TensorRT-LLM or lbopt "
            "serve; give the address of the engine's metrics, such as http://host:8000/metrics"
        )
    return replace(align(found, source), formats=tally.used)


def _file_of(kind: str, name: str) -> str:
    """Return what tells servers apart: the file of a log; scrapes of one server are many files."""
    return name if kind == "log" else ""


def _read(data: bytes, kind: str, path: Path, tally: Tally, seconds: float | None = None) -> Iterable[RankLine]:
    if kind == "log":
        return lines.read_lines(data, tally)
    if not kind:
        return ()
    engines = " and ".join(name for prefix, name in metrics.ENGINES.items() if prefix.encode() in data[: 2**20])
    title = _TITLES[kind] + (f", {engines}" if engines else "")
    tally.used[title] = tally.used.get(title, 0) + 1
    if kind == "metrics":
        epoch = _EPOCH.search(path.stem)
        named = float(epoch[1]) + float(epoch[2] or 0) / 1e3 if epoch else clock_of(path.stem)
        return metrics.read_text(data, named if seconds is None else seconds)
    text = data.decode("utf-8", "replace")
    if kind == "statistics":
        return metrics.read_statistics(text, called(path))
    if kind == "query":
        try:
            return metrics.read_query(json_value(text), called(path))
        except JsonFault as fault:
            raise InputError(f"{called(path)}: {fault}; expected one answer of Prometheus' query API") from None
    return tables.read_table(text, called(path))


def _told(series: RankSeries, tally: Tally, strangers: int) -> RankSeries:
    notes = list(series.notes)
    if strangers:
        notes.append(f"{strangers:,} files say nothing of ranks and were left out")
    if tally.starts > 1:
        notes.append(f"the log holds {tally.starts} starts of an engine")
    if tally.ranks_asked > len(series.ranks):
        notes.append(
            f"the log asks for {tally.ranks_asked} ranks, and {len(series.ranks)} of them write lines; the others are "
            "not in the figures"
        )
    if len(tally.servers) > 1:
        notes.append(
            f"lines are of {len(tally.servers)} API servers, each of which may know a part of what a rank runs; "
            "vLLM's --api-server-count 1 writes whole ones"
        )
    return replace(series, formats=tally.used, unused=tally.unused, notes=tuple(notes))


def _files(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    found: list[Path] = []
    for path in map(Path, paths):
        if os.path.isdir(path):  # noqa: PTH112 - a path that cannot be is none, where pathlib would raise
            found += sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
        else:
            found.append(path)
    return found


def _plain(path: Path, most: int = 0) -> bytes:
    """Return a file's bytes without gzip, byte order mark or UTF-16; the first `most` of them, or all."""
    if most:
        try:
            with opened(path, largest=2**63) as stream:
                data = stream.read(most)
        except InputError:
            return b""
    else:
        data = read_bytes(path, largest=LARGEST_LOG, way_out="give a part of the log")
    if data[:2] == b"\x1f\x8b":
        unpacked = zlib.decompressobj(wbits=31)
        try:
            data = unpacked.decompress(data, most or LARGEST_LOG)
        except zlib.error:
            if not most:
                raise InputError(f"{called(path)} is no whole gzip file; copy it again") from None
            return b""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _kind(data: bytes) -> str:
    """Return "log", "metrics", "query" or "table"; nothing where it is none of them."""
    head = data[:_BEGINNING]
    if head.lstrip()[:1] in (b"{", b"[") and _QUERY.search(head[:4096] + head[-4096:]):
        return "query"
    if head.lstrip()[:1] in (b"{", b"[") and _STATISTICS.search(head[: 2**20]):
        return "statistics"
    if _PROMETHEUS.search(head[: 2**20]):
        return "metrics"
    if lines.SIGNATURE.search(head):
        return "log"
    return "table" if tables.columns_of(tables.header_of(head[: 2**16].decode("utf-8", "replace"))[0]) else ""
