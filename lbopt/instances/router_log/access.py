"""Access logs of gateways as text: lines of Envoy, Istio and kthena as columns.

A line begins with `[date-time] "METHOD path protocol" status`; a layout says which fields follow, quoted or bare.
What somebody added behind the default format counts where it says its name: `name=value`, `name="value"`, or one object
of JSON, as Higress' ai-statistics writes. Lines in front of, between and behind them are counted.

Sources: envoyproxy/envoy, docs, access log default format; Istio, pilot/pkg/model/accesslog.go; volcano-sh/kthena,
pkg/kthena-router/accesslog/logger.go.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from lbopt.files import JsonFault, json_value
from lbopt.instances.router_log.cells import Table, table_of

#: Lines that are looked at to tell an access log.
_SAMPLE = 200

#: Why lines are left out.
OTHER_LINES = "lines of another format"

_HEAD = re.compile(
    r'\[(?P<start_time>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<method>[A-Z]+|-) (?P<path>[^"]*?) ?(?P<protocol>[^" ]+)" '
    r"(?P<response_code>\d{1,3}|-)(?= |$)"
)
_FIELD = re.compile(r' ("(?:[^"\\]|\\.)*"|\S+)')
_SERVED = 'bytes_received bytes_sent duration upstream_service_time "x_forwarded_for" "user_agent" "request_id" '
_SERVED += '"authority" "upstream_host"'
_ROUTED = "upstream_cluster upstream_local_address downstream_local_address downstream_remote_address "
_ROUTED += "requested_server_name route_name"
#: What follows the status, the longest first.
_LAYOUTS = tuple(
    layout.split()
    for layout in (
        f'response_flags response_code_details connection_termination_details "failure_reason" {_SERVED} {_ROUTED}',
        f'response_flags "policy_status" "failure_reason" {_SERVED} {_ROUTED}',
        f'response_flags "policy_status" {_SERVED} {_ROUTED}',
        f"response_flags {_SERVED}",
    )
)
_NUMBERS = {"bytes_received", "bytes_sent", "duration", "upstream_service_time"}

_NAMED = re.compile(r'(?:^|\s)([A-Za-z_][\w.]*)[=:]("(?:[^"\\]|\\.)*"|[^\s"]*)(?=\s|$)')
_KTHENA = re.compile(r" timings=(\d+)(?:ms)?\((\d+)\+(\d+)\+(\d+)\)(?:ms)?$")
_TIMINGS = (
    "duration_total",
    "duration_request_processing",
    "duration_upstream_processing",
    "duration_response_processing",
)


def access_table(text: str, source: str) -> Table | None:
    """Return the requests of an access log as text; None where none of the first lines is of one."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not any(_record(line) for _, line in islice(lines, _SAMPLE)):
        return None
    found = [(number, record) for number, line in lines if (record := _record(line))]
    cut = text[-1:].isdigit() and len(found) > 1  # a gateway ends each line that it writes
    table = table_of(found[: len(found) - cut], source, "text", len(text))
    counts = {OTHER_LINES: len(lines) - len(found), "last line without its end": int(cut)}
    table.left_out.update({reason: count for reason, count in counts.items() if count})
    return table


#: What collectors put in front of a line: a pod, a service, a date-time, a stream.
_PREFIX = re.compile(
    r'\s*(\[[\w./-]+\] +|[\w.-]+ +\| +)?(\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d) +)?(std(out|err) [FP] +)?(?=\{")'
)


def only_objects(text: str) -> tuple[str, int]:
    """Return a text of mostly JSON lines without what else a process printed, and how many lines were something else.

    Lines keep their numbers; a line that begins like an object stays, whole or not.
    """
    lines = text.split("\n")
    sample = list(islice((line for line in lines if line.strip()), _SAMPLE))
    whole = sum(bool(_PREFIX.match(line)) and line.rstrip().endswith("}") for line in sample)
    if 2 * whole <= len(sample) or whole < 2 or all(line.lstrip().startswith("{") for line in lines if line.strip()):
        return text, 0
    bare = [_PREFIX.sub("", line, count=1) for line in lines]
    kept = [line if line.lstrip().startswith("{") else "" for line in bare]
    return "\n".join(kept), sum(bool(line.strip()) and not left for line, left in zip(lines, kept, strict=True))


def _record(line: str) -> dict[str, Any] | None:
    """Return the fields of a line by name; None of a line that is none of an access log, or breaks off."""
    head = _HEAD.search(line)
    if head is None:
        return None
    rest = line[head.end() :].rstrip()
    if timings := _KTHENA.search(rest):
        record = dict(zip(_TIMINGS, timings.groups(), strict=True)) | _named(rest[: timings.start()])
        tokens = str(record.pop("tokens", "")).partition("/")
        record |= {"input_tokens": tokens[0], "output_tokens": tokens[2]} if tokens[2] else {}
        return {"timestamp": head["start_time"], "status_code": head["response_code"], **record}
    fields = _FIELD.findall(rest)
    for layout in _LAYOUTS:
        if len(fields) >= len(layout) and all(map(_is_such, layout, fields)):
            end = re.match(rf"(?:{_FIELD.pattern}){{{len(layout)}}}", rest)
            record = {name.strip('"'): field.strip('"') for name, field in zip(layout, fields, strict=False)}
            return head.groupdict() | record | (_named(rest[end.end() :]) if end else {})
    return None


def _is_such(name: str, field: str) -> bool:
    if name.strip('"') in _NUMBERS and not re.fullmatch(r"\d+|-", field):
        return False
    return name.startswith('"') == field.startswith('"')


def _named(text: str) -> dict[str, Any]:
    """Return what a text says as name=value, and the object of JSON in it."""
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        for inner in (text[begin : end + 1], text[begin : end + 1].replace('\\"', '"')):
            try:
                value = json_value(inner)
            except JsonFault:
                continue
            return _named(text[:begin]) | (value if isinstance(value, dict) else {})
    return {name: value.strip('"') for name, value in _NAMED.findall(text)}
