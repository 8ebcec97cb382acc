"""An engine that speaks OpenAI's API over a raw socket and has one fault.

`python -m tests.serving.faults.engine FAULT SPACING` prints its address and answers until its standard input closes; a
line there is another fault. It imports nothing but the standard library, so that it is there within a tenth of a
second. Its health and its metrics are always fine: a router has to find out from answers.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

#: What an engine can have; `none` is one that has nothing.
FAULTS = (
    *("none", "reset-before-head", "reset-before-body", "reset-after-event", "reset-in-event", "garbage"),
    *("401", "500", "503", "429", "429-retry-after", "slow", "every-other", "page", "nothing", "usage"),
)
#: Seconds before the first byte of a slow one, and what `Retry-After` says.
SLOW, RETRY_AFTER = 3.0, 2
#: Seconds that pass between what was sent and a reset, so that it is read before.
_READ = 0.03
_GARBAGE = b"\x16\x03\x01\x02\x00\x01 no HTTP at all \xff\xfe\r\n\r\n"


def text_of(number: int) -> str:
    """Return token `number` of every answer."""
    return f"t{number} "


def tokens_of(ask: dict[str, Any]) -> int:
    """Return how many tokens are asked for; a router may write the newer name of the two."""
    return int(ask.get("max_completion_tokens") or ask["max_tokens"])


def event_of(data: object) -> bytes:
    """Return an event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


@dataclass
class HostileEngine:
    """An engine with a fault.

    Parameters
    ----------
    fault
        Out of `FAULTS`.
    spacing
        Seconds between two tokens.
    """

    fault: str = "none"
    spacing: float = 0.005
    asked: int = 0  #: requests that have come
    running: int = 0  #: answers that are being made
    url: str = ""  #: its address, once it listens
    _server: asyncio.Server | None = field(default=None, repr=False)

    async def start(self) -> HostileEngine:
        """Listen on a free port of loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=2048, limit=2**22)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def stop(self) -> None:
        """Listen no more; connections end with the event loop."""
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer_next(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # the router has closed it
        finally:
            writer.close()

    async def _answer_next(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False where the connection is not to be used again."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        body = await reader.readexactly(length)
        method, path = head.split(b" ")[:2]
        if method == b"POST" and path in (b"/v1/completions", b"/v1/chat/completions"):
            self.running += 1
            try:
                return await self._fail_or_answer(reader, writer, path, json.loads(body))
            finally:
                self.running -= 1
        writer.write(self._beside(method, path))
        return True

    def _beside(self, method: bytes, path: bytes) -> bytes:
        """Answer what is no request for tokens. It names no model by a path: a router would fetch its tokenizer."""
        if (method, path) == (b"GET", b"/health"):
            return _whole(200, b"{}")
        if (method, path) == (b"GET", b"/running"):
            return _whole(200, str(self.running).encode())
        if (method, path) == (b"GET", b"/metrics"):
            lines = f"vllm:num_requests_running {self.running}\nvllm:num_requests_waiting 0\n"
            return _whole(200, (lines + "vllm:kv_cache_usage_perc 0.1\n").encode(), kind="text/plain")
        return _whole(404, b'{"error": {"message": "no such path"}}')

    async def _fail_or_answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: bytes, ask: dict[str, Any]
    ) -> bool:
        self.asked += 1
        fault = self.fault
        if fault == "slow":
            await _pass(SLOW, reader)
        if fault == "garbage":
            writer.write(_GARBAGE)
            return False
        if fault == "page":
            writer.write(_whole(200, b"<html>sign in</html>", kind="text/html"))
            return True
        if fault == "nothing":
            done = _whole(200, b"data: [DONE]\n\n", kind="text/event-stream")
            writer.write(done if ask.get("stream") else _whole(200, b"{}"))
            return True
        if fault[:3].isdigit() or (fault == "every-other" and self.asked % 2):
            more = f"Retry-After: {RETRY_AFTER}\r\n" if fault == "429-retry-after" else ""
            status = 500 if fault == "every-other" else int(fault[:3])
            writer.write(_whole(status, b'{"error": {"message": "the engine refuses"}}', more))
            return True
        head, parts, framed = self._answer(path, ask)
        if fault.startswith("reset-"):
            await self._break_off(writer, head, [framed(part) for part in (parts[0], parts[1][:20])])
            return False
        if not ask.get("stream"):
            await _pass(self.spacing * tokens_of(ask), reader)
        writer.write(head)
        for part in parts:
            writer.write(framed(part))
            await writer.drain()
            if part.startswith(b"data: {"):
                await asyncio.sleep(self.spacing)
        return True

    def _answer(self, path: bytes, ask: dict[str, Any]) -> tuple[bytes, list[bytes], Callable[[bytes], bytes]]:
        """Return the head of the right answer, the parts in which its body is sent, and how a part is framed."""
        tokens, is_chat = tokens_of(ask), b"chat" in path
        is_hostile = self.fault == "usage" and self.asked == 1
        usage = {"prompt_tokens": 10**30 if is_hostile else 7, "completion_tokens": tokens}
        if not ask.get("stream"):
            text = "".join(map(text_of, range(tokens)))
            told = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
            choice = {"index": 0, "finish_reason": "length", **told}
            body = json.dumps({"id": "x", "object": "answer", "choices": [choice], "usage": usage}).encode()
            return _head(200, f"Content-Length: {len(body)}\r\n"), [body[:20], body[20:60], body[60:]], bytes
        events = []
        for number in range(tokens):
            text = text_of(number)
            told = {"delta": {"content": text}} if is_chat else {"text": text}
            choice = {"index": 0, "finish_reason": "length" if number == tokens - 1 else None, **told}
            events.append(event_of({"id": "x", "object": "chunk", "choices": [choice]}))
        events.append(event_of({"id": "x", "object": "chunk", "choices": [], "usage": usage}))
        head = _head(200, "Transfer-Encoding: chunked\r\n", "text/event-stream")
        return head, [*events, b"data: [DONE]\n\n", b""], _chunk

    async def _break_off(self, writer: asyncio.StreamWriter, head: bytes, parts: list[bytes]) -> None:
        """Send as much as the fault lets through, and reset the connection."""
        sent = {"reset-before-head": 0, "reset-before-body": 1, "reset-after-event": 2, "reset-in-event": 3}
        writer.writelines([head, *parts][: sent[self.fault]])
        await writer.drain()
        await asyncio.sleep(_READ)
        if (raw := writer.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset instead of an end
        writer.transport.abort()


async def _pass(seconds: float, reader: asyncio.StreamReader) -> None:
    """Let time pass unless the router goes, as engines do that end a request whose connection is closed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            if not await reader.read(1):
                raise ConnectionResetError


def _chunk(data: bytes) -> bytes:
    """Frame a piece of a body; none is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, more: str, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\n{more}\r\n".encode()


def _whole(status: int, body: bytes, more: str = "", kind: str = "application/json") -> bytes:
    return _head(status, f"Content-Length: {len(body)}\r\n{more}", kind) + body


async def _main(fault: str, spacing: float) -> None:
    loop = asyncio.get_running_loop()
    engine = await HostileEngine(fault, spacing).start()
    print(engine.url, flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        engine.fault = line.strip()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], float(sys.argv[2])))
