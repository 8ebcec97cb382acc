"""Plain requests over HTTP: what was said to the byte, for comparisons, and streams that the caller may leave."""

from __future__ import annotations

import http.client
import json
import re
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(slots=True)
class Answer:
    """An answer; status 0 where there was none, and the body then says why.

    Parameters
    ----------
    status, headers, body
        As they came, names of headers in lower case.
    seconds
        From sending to the end.
    gaps
        s between two pieces of the body.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0
    gaps: list[float] = field(default_factory=list)

    @property
    def events(self) -> list[str]:
        """Data of the events of a stream."""
        lines = self.body.decode("utf-8", "replace").splitlines()
        return [line[6:] for line in lines if line.startswith("data: ")]

    @property
    def is_whole(self) -> bool:
        """Whether it is 200, without an error, and a stream has its end."""
        if self.status != 200 or b'"error": {' in self.body or b'"error":{' in self.body:
            return False
        return not self.headers.get("content-type", "").startswith("text/event-stream") or self.events[-1:] == [
            "[DONE]"
        ]

    @property
    def told(self) -> str:
        """Status and the message of an error, shortly."""
        found = re.search(rb'"message": ?"([^"]{0,80})', self.body)
        return f"{self.status} {found[1].decode('utf-8', 'replace') if found else ''}".strip()


def send(
    base: str,
    path: str,
    body: bytes | dict[str, object] | None = None,
    *,
    method: str = "",
    seconds: float = 120.0,
    **h: str,
) -> Answer:
    """Send a request and read its answer to the end.

    Parameters
    ----------
    base, path
        Address, and what comes behind it.
    body
        Bytes, or what is written as JSON; None = a GET, unless `method` is named.
    seconds
        Limit for each read.
    h
        Headers, with `_` for `-`; an empty one is left out. Content-Type is JSON's where there is a body.
    """
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    headers = {"Content-Type": "application/json"} if data is not None else {}
    headers |= {name.replace("_", "-"): value for name, value in h.items()}
    parts, answer, began = urlsplit(base), Answer(), time.monotonic()
    wire = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
    try:
        wire.request(method or ("GET" if data is None else "POST"), path, data, {k: v for k, v in headers.items() if v})
        got = wire.getresponse()
        answer.status, answer.headers = got.status, {k.lower(): v for k, v in got.getheaders()}
        last = time.monotonic()
        while piece := got.read1(65536):
            answer.body += piece
            answer.gaps.append(time.monotonic() - last)
            last += answer.gaps[-1]
    except (OSError, http.client.HTTPException) as error:
        answer.status = 0
        answer.body += f"{type(error).__name__}: {error}".encode()
    finally:
        wire.close()
        answer.seconds = time.monotonic() - began
    return answer


def metric(base: str, pattern: str) -> float:
    """Return the sum of a metric's values; `pattern` is a regular expression of name and labels."""
    return value_of(send(base, "/metrics").body, pattern)


def value_of(metrics: bytes, pattern: str) -> float:
    """Return the same of metrics that were read."""
    found = re.findall(rf"^{pattern}(?:\{{[^}}]*\}})? (\S+)", metrics.decode("utf-8", "replace"), re.MULTILINE)
    return sum(map(float, found))
