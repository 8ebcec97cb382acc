"""Ways to damage a file, each from its own random numbers, so that a mutant is known by its number alone.

`mutated_text` damages text, `mutated_bytes` any bytes, `mutated_json` one value of a document or of a line, and
`mutated_zip` one member of an archive, which is packed again so that its checksum is right.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import zipfile
from typing import Any

MARKS = [*"\0,;\t\n\r\"'-+.eE_ #\\[]{}", "\r\n", ",,", "\n\n", '""', "[]", "{}", "1,2"]
UNUSUAL = [
    "\ufeff",
    "é",
    "\x1a",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "\x1f\x8b",
    "٣",
    "\x1b[2J",
    "\u202e",
    "\x00",
    "\x7f",
]
NUMBERS = ["0", "00", "-1", "-0", "0.5", "12.0", "1e3", "1e15", "1e400", "0x1", "1_0", "9223372036854775808", "9" * 20]
HUGE = ["9" * 500, "9" * 5000, "1e-400", "-1e308", str(2**62), str(2**63 - 1), "0." + "3" * 500, "1" + "0" * 30]
WORDS = ["NaN", "nan", "inf", "True", "null", "None", "NaT", "now", "today", "2023", "2023-13-01", "2024-02-29"]
PIECES = MARKS + UNUSUAL + NUMBERS + WORDS

#: Values of another type than the one that stands there.
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, 1e308, -0.0, 2**31, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, -(10**30)),
    *("", "x", "x" * 300, "\x1b[2J\x00", "\ud800", "nan", "9" * 40, "٣"),
    *([], {}, [[]], [None], [0, "x"], {"a": {}}, [1.5], [[1], [2, 3]], {"": 0}),
]

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def mutated_text(text: str, rng: random.Random) -> bytes:
    """A text with one to four changes; sometimes with a changed byte, or packed and cut."""
    data = text
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        a = rng.randrange(len(data) + 1)
        b = min(len(data), a + rng.choice((0, 0, 1, 2, 3, 10)))
        kind = rng.randrange(8)
        if kind < 4:
            data = data[:a] + rng.choice(PIECES) + data[b:]
        elif kind == 4:
            data = data[:a] + data[b:]
        elif kind == 5:
            data = data[:a] if rng.random() < 0.5 else data[a:]
        elif kind == 6:  # a whole field
            fields = data.split(",")
            fields[rng.randrange(len(fields))] = rng.choice(PIECES)
            data = ",".join(fields)
        else:
            lines = data.splitlines(keepends=True)
            data = "".join(rng.sample(lines, len(lines)))
        data = data or "x"
    raw = data.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        place = rng.randrange(len(raw))
        raw = raw[:place] + bytes([rng.randrange(256)]) + raw[place + 1 :]
    if rng.random() < 0.05:
        raw = gzip.compress(raw, 1)
        raw = raw[: rng.randrange(1, len(raw) + 1)]
    return raw


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes with flipped bits, without an end, or with a piece that is gone, doubled, moved or foreign."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not raw:
            break
        a = rng.randrange(len(raw))
        b = min(len(raw), a + rng.choice((1, 2, 4, 8, 64, 512)))
        kind = rng.randrange(7)
        if kind < 2:
            raw[a] ^= 1 << rng.randrange(8)
        elif kind == 2:
            raw[a:b] = rng.choice((b"\0", b"\xff", b"\x7f")) * (b - a)
        elif kind == 3:
            del raw[a:]
        elif kind == 4:
            del raw[a:b]
        elif kind == 5:
            raw[a:a] = raw[a:b]
        else:
            raw[a:a] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 16))))
    return bytes(raw)


def reshaped_text(text: str, rng: random.Random) -> bytes:
    """A text of unusual form: another encoding, huge numbers, deep nesting, long lines, twice itself."""
    kind = rng.randrange(10)
    found = list(_NUMBER.finditer(text))
    if kind < 4 and found:
        one = rng.choice(found)
        new = rng.choice(HUGE + NUMBERS) if kind < 2 else rng.choice(found).group()
        return (text[: one.start()] + new + text[one.end() :]).encode("utf-8", "surrogatepass")
    if kind < 6:
        one, depth = rng.randrange(len(text) + 1), rng.choice((99, 101, 1000, 20_000))
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ("(", ")")))
        inner = opening * depth + "1" + closing * (depth if rng.random() < 0.5 else 0)
        return (text[:one] + inner + text[one:]).encode("utf-8", "surrogatepass")
    if kind == 6:
        place = rng.randrange(len(text) + 1)
        return (text[:place] + rng.choice("x9 ,\t[") * rng.choice((1000, 140_000)) + text[place:]).encode()
    if kind == 7:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7")), "replace")
    if kind == 8:
        return (text + text).encode("utf-8", "surrogatepass")
    packed = gzip.compress(text.encode("utf-8", "surrogatepass") * rng.choice((1, 2)), 1)
    return mutated_bytes(packed, rng) if rng.random() < 0.5 else packed


def changed_json(value: Any, rng: random.Random) -> Any:
    """A copy of a JSON value in which one inner value is odd, gone, doubled, or exchanged with another."""
    copy = json.loads(json.dumps(value))
    holder = copy
    while True:
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not places:
            return copy
        place = rng.choice(places)
        inner = holder[place]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            holder = inner
            continue
        kind = rng.randrange(6)
        if kind < 3:
            holder[place] = rng.choice(ODD)
        elif kind == 3:
            del holder[place]
        elif kind == 4:
            other = rng.choice(places)
            holder[place], holder[other] = holder[other], holder[place]
        elif isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), inner)
        else:
            holder[f"{place}_"] = holder.pop(place)
        return copy


def mutated_json(text: str, rng: random.Random) -> bytes:
    """A JSON document, or JSON lines, in which one value is changed."""
    try:
        document = [json.loads(text)]
    except ValueError:
        document = [json.loads(line) for line in text.splitlines() if line.strip()]
    place = rng.randrange(len(document))
    document[place] = changed_json(document[place], rng)
    return "".join(json.dumps(one) + "\n" for one in document).encode()


def mutated_zip(data: bytes, rng: random.Random) -> bytes:
    """A zip archive of which one member is changed, gone, empty, doubled or renamed; checksums are right."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = [(name, old.read(name)) for name in old.namelist()]
    place = rng.randrange(len(members))
    name, content = members[place]
    kind = rng.randrange(8)
    if kind < 4:
        members[place] = (name, mutated_npy(content, rng) if name.endswith(".npy") else any_text(content.decode(), rng))
    elif kind == 4:
        members[place] = (name, b"" if rng.random() < 0.5 else content[: len(content) // 2])
    elif kind == 5:
        del members[place]
    elif kind == 6:
        members[place] = (rng.choice(("x", "../../x.json", "/etc/x.json", "a" * 300, "\x1b[2J.json", "é.npy")), content)
    else:
        members.append((f"{name}x", content))
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(stream, "w", method, compresslevel=1) as new:
        for one, inside in members:
            new.writestr(one, inside)
    return stream.getvalue()


def mutated_npy(data: bytes, rng: random.Random) -> bytes:
    """An array of NumPy's format with a changed header or changed numbers."""
    start = 10 + int.from_bytes(data[8:10], "little")
    if rng.random() < 0.5:
        return data[:start] + mutated_bytes(data[start:], rng)
    header = data[10:start].decode("latin-1")
    changes = {
        "<i8": ["|O", "<f8", "<U3", "<U99999999", "|V8", "<M8[s]", ">i8", "<c16", "<f3", "|i1", "<i4"],
        "<f8": ["<i8", "<f2", "|O", "|b1", "<f16"],
        "(": ["(1, ", "(-1, ", "(0, ", "(99999999999, ", "((((", "(" + "1, " * 70, "(3L, "],
        "False": ["True", "None", "1", "__import__('os')"],
        "'shape'": ["'shpe'", "'descr'"],
        "}": [", 'x': 1}", "", "}" * 50, "} + {}"],
    }
    old = rng.choice([one for one in changes if one in header])
    text = header.replace(old, rng.choice(changes[old]), 1).encode()
    return data[:8] + len(text).to_bytes(2, "little") + text + data[start:]


def any_text(text: str, rng: random.Random) -> bytes:
    """One of the ways to damage a text that need no structure."""
    return rng.choice((mutated_text, mutated_text, reshaped_text))(text, rng)


def text_file(data: bytes, rng: random.Random) -> bytes:
    """A damaged text file."""
    return mutated_bytes(data, rng) if rng.random() < 0.2 else any_text(data.decode(), rng)


def json_file(data: bytes, rng: random.Random) -> bytes:
    """A damaged file of JSON or JSON lines."""
    return mutated_json(data.decode(), rng) if rng.random() < 0.5 else text_file(data, rng)


def zip_file(data: bytes, rng: random.Random) -> bytes:
    """A damaged zip archive."""
    return mutated_zip(data, rng) if rng.random() < 0.6 else mutated_bytes(data, rng)
