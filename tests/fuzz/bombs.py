"""Files that are small and ask for much: ``python -m tests.fuzz.bombs`` reads each in a process of its own.

It prints the largest memory of each process, of which Python with NumPy, pandas and pyarrow take about a third, the
seconds, and what the reader said.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lbopt.exceptions import LbOptError
from tests.fuzz.formats import FORMATS

GIB = 2**30

#: Memory that reading a bomb may take.
MOST_MEBIBYTES = 512


def zeros(size: int, unit: bytes = b"\0") -> bytes:
    """A gzip file of so many bytes, equal pieces of about a MiB; beyond a GiB its checksum, never reached, is 0."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = unit * (2**20 // len(unit))
    piece = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)  # after a full flush a piece stands for itself
    count, checksum = size // len(block), 0
    for _ in range(count if size < GIB else 0):
        checksum = zlib.crc32(block, checksum)
    tail = struct.pack("<II", checksum, count * len(block) % 2**32)
    return b"\x1f\x8b\x08" + bytes(7) + piece * count + packer.flush() + tail


def zip_of(name: str, size: int, head: bytes = b"") -> bytes:
    """A zip archive with one member of so many bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w", force_zip64=True) as to:
        to.write(head)
        for _ in range(size // 2**20):
            to.write(b"\0" * 2**20)
    return stream.getvalue()


def header(shape: str, descr: str = "<f8") -> bytes:
    """The begin of an array of NumPy's format."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def lying_zip(name: str) -> bytes:
    """A zip archive whose directory claims a member of 100 bytes that unpacks to a GiB."""
    data = bytearray(zip_of(name, GIB))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.start_dir
    data[start + 24 : start + 28] = (100).to_bytes(4, "little")
    return bytes(data)


def names(form: bytes, count: int) -> bytes:
    """So many different names, with commas between them."""
    return b",".join(form % i for i in range(count))


def fleet_of(count: int) -> bytes:
    """A fleet file of one group with so many workers, the last two of one name."""
    workers = ",".join(f'{{name="w{min(i, count - 2)}",url="http://10.0.0.1:{i % 65535 + 1}"}}' for i in range(count))
    return f'[[group]]\nmodel = "m"\nslots = 1\nworkers = [{workers}]\n'.encode()


def gap_of(rules: bytes) -> bytes:
    """The run.json of a gap study of these rules."""
    data = (Path(__file__).resolve().parents[1] / "stored" / "runs" / "gap.json").read_bytes()
    return re.sub(rb'"policies": ?\[[^]]*\]', lambda _: b'"policies":[' + rules + b"]", data, count=1)


def parquet_of(rows: int, text: str = "x") -> bytes:
    """A Parquet file of many equal rows."""
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array([text]))
    with parquet.ParquetWriter(stream, pa.schema([("worker", column.type)]), compression="zstd") as writer:
        block = pa.table({"worker": pa.chunked_array([column.take(pa.array([0] * 10**6))])})
        for _ in range(rows // 10**6):
            writer.write_table(block)
    return stream.getvalue()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip of 4 GiB of zeros": ("trace as CSV", lambda: zeros(4 * GIB)),
    "gzip of gzip": ("trace as CSV", lambda: gzip.compress(zeros(GIB))),
    "gzip of one long line": ("trace as CSV", lambda: zeros(15 * 2**20, b"1,")),
    "gzip of empty objects": ("trace as JSON", lambda: zeros(15 * 2**20, b"{},")),
    "gzip of openings": ("trace as JSON", lambda: zeros(15 * 2**20, b'[{"a":')),
    "gzip of a router log of one column": ("router log as CSV", lambda: zeros(15 * 2**20, b"a\n")),
    "gzip of short rows": ("router log as CSV", lambda: zeros(15 * 2**20, b"a,b\n")),
    "gzip of short records": ("router log as JSON", lambda: zeros(15 * 2**20, b'{"a":1}\n')),
    "records of different names": (
        "router log as JSON",
        lambda: b"".join(b'{"%d":1}\n' % i for i in range(10**6)),
    ),
    "openings": ("problem", lambda: b"[" * (50 * 2**20)),
    "empty lists": ("problem", lambda: b"[" + b"[]," * (50 * 2**20 // 3) + b"[]]"),
    "digits": ("problem", lambda: b'{"base": [' + b"9" * (50 * 2**20) + b"]}"),
    "dotted names": ("card", lambda: b"a." * 500_000 + b"a = 1\n"),
    "openings in TOML": ("card", lambda: b"a = " + b"[" * 900_000),
    "one long row": ("measurements", lambda: b"spread_tokens,tpot_ms\n" + b"1," * (30 * 2**20)),
    "member of 4 GiB": ("capture", lambda: zip_of("counts.npy", 4 * GIB, header("(536870912,)"))),
    "shape without numbers": ("capture", lambda: zip_of("about.npy", 0, header("(99999999999,)"))),
    "text without letters": ("capture", lambda: zip_of("about.npy", 0, header("()", "<U999999999"))),
    "header of 4 GiB": ("capture", lambda: zip_of("about.npy", 0, b"\x93NUMPY\x02\x00\xff\xff\xff\xff")),
    "member that says 100 bytes": ("replay log as NPZ", lambda: lying_zip("worker.npy")),
    "member of the library": ("library", lambda: zip_of("x.json", 2 * GIB, b"[")),
    "Parquet of 100,000,000 rows": ("router log as Parquet", lambda: parquet_of(100 * 10**6)),
    "Parquet of long texts": ("router log as Parquet", lambda: parquet_of(10**6, "x" * 10**6)),
    "one field twice of very many": ("run.json", lambda: b"{" + names(b'"%d":1', 400_000) + b',"399999":1}'),
    "one column twice of very many": (
        "measurements",
        lambda: names(b"k%d", 400_000) + b",k399999\n" + names(b"%d", 400_001) + b"\n",
    ),
    "workers of a fleet": ("fleet file", lambda: fleet_of(22_000)),
    "run.json of very many rules": ("run.json", lambda: gap_of(b'"fcfs",' * 500_000 + b'"jsq"')),
    "run.json of empty objects": ("run.json", lambda: b"[" + b"{}," * (50 * 2**20 // 3) + b"{}]"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the reader said of a bomb; the largest memory of its process, MiB; and the seconds that it took."""

    said: str
    mebibytes: int
    seconds: float


def measured(name: str, folder: Path) -> Outcome:
    """Read a bomb in a process of its own; another one makes it, so that its memory does not count."""
    home, make = BOMBS[name]
    form = FORMATS[home]
    path = folder / form.file
    _forked(lambda: str(path.write_bytes(make())), folder)
    began = time.monotonic()
    said, mebibytes = _forked(lambda: _said(form.read, path), folder)
    path.unlink()
    return Outcome(said, mebibytes, time.monotonic() - began)


def _said(read: Callable[[Path], object], path: Path) -> str:
    try:
        read(path)
    except LbOptError as error:
        return str(error)
    return ""


def _forked(work: Callable[[], str], folder: Path) -> tuple[str, int]:
    """Return the text that a function returns in a forked process, and the largest memory of that process in MiB."""
    answer = folder / "answer"
    process = os.fork()
    if process == 0:
        try:
            text = work()
        except BaseException:
            text = f"FAILED {traceback.format_exc()}"
        answer.write_text(text)
        os._exit(0)
    _, status, usage = os.wait4(process, 0)
    text = answer.read_text() if status == 0 else f"FAILED with status {status}"
    return text, round(usage.ru_maxrss / 1024)


def main() -> int:
    """Read all bombs, or those that are named, and print a table; the exit code is 1 where one is not refused."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or BOMBS:
            found = measured(name, Path(folder))
            good &= bool(found.said) and not found.said.startswith("FAILED") and found.mebibytes <= MOST_MEBIBYTES
            print(f"{name:<36} {found.mebibytes:>5} MiB {found.seconds:6.1f} s  {found.said}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
