"""Server-sent events, parsed as events: a piece of the network may hold several of them, or a part of one.

The rules are those of the HTML standard, section 9.2.6: lines end with LF, CR LF or CR; a blank line ends an event;
lines of data are joined by LF; lines that begin with a colon are comments. Only data is kept.
"""

from __future__ import annotations


class EventParser:
    """Takes pieces, gives the data of whole events."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # pieces of a line that has not ended, each looked at once
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of every event that ends in `piece`."""
        if b"\n" not in piece and b"\r" not in piece and not (self._rest and self._rest[-1].endswith(b"\r")):
            self._rest.append(piece)
            return []
        text = b"".join((*self._rest, piece))
        held = b""
        if text.endswith(b"\r"):  # its LF may come in the next piece
            text, held = text[:-1], b"\r"
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = [rest + held]
        found = []
        for line in lines:
            if not line:
                if self._data:
                    found.append(b"\n".join(self._data))
                    self._data.clear()
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        return found
