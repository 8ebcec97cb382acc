"""A text in blocks is the text, and its faults are those of the text as a whole, wherever it is cut."""

import gzip
import random

import pytest

from lbopt import files
from lbopt.exceptions import InputError
from lbopt.files import TextBlocks, blocks, without_blank_end
from lbopt.files import text as csv_text

SIZES = (1, 2, 3, 7, 50, 2**20)

TEXTS = [
    b"",
    b"a",
    b"a,b\n1,2\n\n3,4",
    b"a,b\r\n1,2\r\n",
    b"\xef\xbb\xbfa,b\n1,2\n",
    "Größe,Φ\n𝄞,2\n€".encode(),
    b"\n\n\n",
    b"x" * 200 + b"\n" + b"y" * 100,
]

FAULTS = [
    "a\nb".encode("utf-16"),
    b"PAR1\n",
    b"a\nb\0\nc\0",
    b"a\n\n\xff\n\xfe",
    b"a\n\xe2\x82\n\xac",
    b"a\n\xe2\x82",
    b"a\n\xff\nb\n\0",  # the NUL byte is named, as it is where the file is read as a whole
    b"PK\x03\x04\0\n\0",
]


def cut_to(monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK", size)
    monkeypatch.setattr(blocks, "_BLOCK", size)


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def written(request, tmp_path):
    """A function that writes bytes, packed or not, and returns how they are read."""

    def write(data):
        (tmp_path / "f").write_bytes(gzip.compress(data) if request.param else data)
        return TextBlocks(tmp_path / "f", "f", 10**6, "a table")

    return write


@pytest.mark.parametrize("size", SIZES)
def test_blocks_are_the_text(monkeypatch, written, size):
    cut_to(monkeypatch, size)
    for data in TEXTS:
        text = written(data)
        for _ in range(2):
            found = list(text)
            assert b"".join(found) == files.text_bytes(data, "f")
            assert all(block.endswith(b"\n") for block in found[:-1])
            assert b"" not in found
        assert b"".join(found).startswith(text.head(1))
        assert b"\n" in text.head(1).lstrip() or text.head(1) == b"".join(found)
        text.check()


@pytest.mark.parametrize("size", SIZES)
def test_faults_are_those_of_the_whole(monkeypatch, written, size):
    cut_to(monkeypatch, size)
    for data in FAULTS:
        with pytest.raises(InputError) as whole:
            files.text_bytes(data, "f", "a table")
        text = written(data)
        for read in (list, TextBlocks.check):
            with pytest.raises(InputError) as caught:
                read(text)
            assert str(caught.value) == str(whole.value)


def test_damaged_gzip_goes_first(monkeypatch, tmp_path):
    cut_to(monkeypatch, 2)
    (tmp_path / "f").write_bytes(gzip.compress(b"a\0\n" * 50)[:-3])
    with pytest.raises(InputError, match="gzip file that ends too early"):
        list(TextBlocks(tmp_path / "f", "f", 10**6, "a table"))


def test_a_file_that_changes_in_between(monkeypatch, written):
    text = written(b"a\0")
    monkeypatch.setattr(TextBlocks, "check", lambda self: None)
    with pytest.raises(InputError, match="f was changed while it was read; read it again"):
        list(text)


def in_pieces(text, draw):
    """The text, cut after some of its line feeds."""
    *ended, last = text.split("\n")
    pieces = [""]
    for line in ended:
        pieces[-1] += line + "\n"
        pieces += [""] * (draw.random() < 0.5)
    return [piece for piece in (*pieces[:-1], pieces[-1] + last) if piece]


def test_the_blank_end_is_left_out():
    draw = random.Random(1)
    for _ in range(2000):
        text = "".join(draw.choices("ab,\n\n\n \r\x0b\u2028\xa0", k=draw.randrange(1, 12)))
        found = list(without_blank_end(in_pieces(text, draw)))
        assert "".join(found) == text.rstrip()
        assert all(piece.endswith("\n") for piece in found[:-1])
        assert "" not in found
    assert list(without_blank_end([b"a\n", b"\n", b" \n", b"b\n", b"\n"])) == [b"a\n\n \n", b"b"]


def test_a_line_without_end_is_named(monkeypatch):
    """By its number, whatever the pieces, after the rows before it."""
    monkeypatch.setattr(csv_text, "LONGEST_LINE", 10)
    lines = ["a,b\n", "1,2\n", "3,456789\n", "5," + "6" * 9 + "\n", "7,8\n"]
    for text in ("".join(lines), lines, ["".join(lines[:3]), "".join(lines[3:])]):
        for size in (1, 2**18):
            monkeypatch.setattr(csv_text, "_PIECE", size)
            rows = files.csv_records(text, "f")
            assert [next(rows) for _ in range(3)][2] == (3, ["3", "456789"])
            with pytest.raises(InputError, match="f, line 4 has more than 10 characters; expected a row of a table"):
                next(rows)
