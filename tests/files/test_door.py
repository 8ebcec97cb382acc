"""The door for files from outside: what it lets in, and that it refuses the rest in one short sentence."""

import gzip
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from lbopt import files
from lbopt.exceptions import LONGEST_MESSAGE, CertificateError, InputError
from lbopt.files.blocks import HARMLESS, HARMLESS_TEXT
from lbopt.files.json_text import DEEPEST, LARGEST_VALUES
from lbopt.files.npz import NpzFile, ZipMembers


def test_messages_hold_nothing_that_acts_on_a_terminal():
    error = InputError("a\x1b[2Jb\0c\n\u202ed\ud800 Φ")
    assert str(error) == "a\\x1b[2Jb\\x00c\\n\\u202ed\\ud800 Φ"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_long_messages_keep_both_ends():
    for length in (LONGEST_MESSAGE + 1, 10**6):
        text = str(CertificateError("the thing is " + "x" * length + "; expected another"))
        assert len(text) <= LONGEST_MESSAGE
        assert text.startswith("the thing is x")
        assert text.endswith("; expected another")
    whole = "y" * LONGEST_MESSAGE
    assert str(InputError(whole)) == whole


def test_values_are_shown_short():
    for value in ("x" * 10**6, 10**5000, [[10**5000] * 50] * 10**5, {"a" * 999: [1] * 999}, b"\0" * 999):
        assert len(files.shown(value)) <= 40
        assert files.shown(value).isprintable()


def test_names_are_listed_short():
    assert files.listed(["a", "b\n", "c"]) == "a, 'b\\n', c"
    assert len(files.listed(["x" * 500] * 100)) <= 200


def special_files(folder):
    os.mkfifo(folder / "pipe")
    (folder / "large").write_bytes(b"x" * 101)
    (folder / "closed").write_bytes(b"x")
    return {
        folder / "gone": "No such file or directory",
        folder: "it is a folder; expected a regular file",
        folder / "pipe": "it is a device or a pipe; expected a regular file",
        "/dev/zero": "it is a device or a pipe; expected a regular file",
        folder / ("n" * 300): "File name too long",
        f"{folder}/a\0b": "its path holds a NUL byte or is no text",
        folder / "large": "it has 101 bytes; expected at most 100",
        "/proc/self/maps": "it has more than 100 bytes, which are the most that are read",
    }


def test_only_regular_files(tmp_path):
    for path, why in special_files(tmp_path).items():
        with pytest.raises(InputError) as caught:
            files.read_bytes(path, "the thing", largest=100)
        assert str(caught.value) == f"cannot read the thing: {why}"
        with pytest.raises(InputError) as caught:
            list(files.TextBlocks(path, "the thing", 100, "text"))
        assert str(caught.value) == f"cannot read the thing: {why}"
        assert not files.starts_with(path, b"no such beginning")
    assert files.starts_with(tmp_path / "large", b"xx")


def test_text():
    assert files.text_bytes(b"\xef\xbb\xbfa,b", "f") == b"a,b"
    refusals = {
        "a".encode("utf-16"): "f is UTF-16 text; expected text in UTF-8: save it as UTF-8",
        b"a\nb\0": "f, line 2: a NUL byte; expected text in UTF-8",
        b"a\n\n\xff": "f, line 3: byte 0xff is not UTF-8 text",
        b"PAR1": "f is a Parquet file; expected text in UTF-8",
    }
    for data, message in refusals.items():
        with pytest.raises(InputError) as caught:
            files.text_bytes(data, "f")
        assert str(caught.value) == message


def test_gzip():
    text = os.urandom(3 * 2**20)
    assert files.gunzipped(gzip.compress(text[:10]) + gzip.compress(text[10:]), "f", largest=2**30) == text
    packed = gzip.compress(b"\0" * (HARMLESS_TEXT + 2**21))
    with pytest.raises(InputError, match=r"f unpacks from .* to more than"):
        files.gunzipped(packed, "f", largest=2**30)
    with pytest.raises(InputError, match="f unpacks"):
        files.gunzipped(gzip.compress(text), "f", largest=2**20)
    for data, match in (
        (gzip.compress(text)[:-9], "ends too early"),
        (b"\x1f\x8b\x08\0" + b"\xff" * 40, "damaged gzip"),
    ):
        with pytest.raises(InputError, match=match):
            files.gunzipped(data, "f", largest=2**30)


def nested(depth):
    return "[" * depth + "]" * depth


JSON = {
    nested(DEEPEST + 1): "f is not usable JSON (nested deeper than 100 lists or objects)",
    nested(10**5): "f is not usable JSON (nested deeper than 100 lists or objects)",
    "[1e400]": "f is not usable JSON (1e400 is beyond every number)",
    "[-3.5E+0308]": "f is not usable JSON (-3.5E+0308 is beyond every number)",
    "[NaN]": "f is not usable JSON (NaN is no number)",
    '{"a": 1, "b": 2, "a": 3}': "f is not usable JSON (the field 'a' stands twice in one object)",
    "9" * 200: "f is not valid",  # too short a text to be looked at
    "1" * 5000: "f is not usable JSON (a number of 5,000 characters; expected fewer than 200)",
    "1." + "1" * 5000: "f is not usable JSON (a number of 5,002 characters; expected fewer than 200)",
    '["' + "1" * 5000 + '", NaN]': "f is not usable JSON (NaN is no number)",
    '["a\\u0000"]': "f is not usable JSON (the text 'a\\x00' holds a NUL or half of a character)",
    '{"\\ud83d": 1}': "f is not usable JSON (the text '\\ud83d' holds a NUL or half of a character)",
    "[" + "{}," * (LARGEST_VALUES // 272) + "{}]": "f is not usable JSON (its values would take",
    "": "f is not valid JSON (column 1: Expecting value)",
    "{\n\n": "f is not valid JSON (line 3, column 1:",
}


def test_json_is_bounded():
    assert files.parse_json(nested(DEEPEST), "f") is not None
    assert files.parse_json(b'\xef\xbb\xbf["' + b"1" * 5000 + b'", 7, 0.5, "\\ud83d\\ude00"]', "f")[1:] == [
        7,
        0.5,
        "😀",
    ]
    for text, message in JSON.items():
        if text == "9" * 200:
            assert files.parse_json(text, "f") == int(text)
            continue
        with pytest.raises(InputError) as caught:
            files.parse_json(text, "f")
        assert str(caught.value).startswith(message)


def test_json_lines():
    assert list(files.json_lines('1\n\n{"a": 2}\n', "f")) == [(1, 1), (3, {"a": 2})]
    with pytest.raises(InputError, match="f, line 2 is not valid JSON"):
        list(files.json_lines("1\n{\n", "f"))


def test_csv():
    assert files.csv_table('a, b\n\n1,"x\ny"\n', "f") == (["a", "b"], [(4, ["1", "x\ny"])])
    refusals = {
        "": "f has no rows",
        "a,b\n": "f has a header but no rows",
        "a,b\n1\n": r"f, line 2: 1 fields under 2 columns \(a, b\)",
        "a,b\n1,2\na,b\n": "f, line 3: the header is repeated",
        "a,a\n1,2\n": "f has the column 'a' twice",
        "a;b\n1,5;2\n": "f, line 1: the columns are separated by ';'; expected commas: .* and points in decimals",
        "\n a\tb \n1\t2\n": r"f, line 2: the columns are separated by '\\t'; expected commas",
        'a,b\n1,"2\n': "f, line 2: not a CSV row",
        "a,b\n1," + "2" * 10**6: "f, line 2: not a CSV row",
    }
    for text, match in refusals.items():
        with pytest.raises(InputError, match=match):
            files.csv_table(text, "f")


def test_toml():
    assert files.parse_toml("a.b = [1.5, 2.5]\n", "f") == {"a": {"b": [1.5, 2.5]}}
    assert files.parse_toml(f"a = {2**63 - 1}\nb = {-(2**63)}", "f") == {"a": 2**63 - 1, "b": -(2**63)}
    huge = [f"a = [1, {{b = {number}}}]" for number in (2**63, -(2**63) - 1, 10**400)]
    for text in ("a = ", "a = " + "[" * 10**4, "a = " + "9" * 5000, "a." * 10**5 + "a = 1", "a = 2024-02-31", *huge):
        with pytest.raises(InputError, match=r"f is not (valid|usable) TOML"):
            files.parse_toml(text, "f")


def saved(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream


def test_npz_reads_what_numpy_writes():
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "t": np.array('{"x": 1}'),
        "e": np.zeros((0, 4), np.int8),
        "b": np.array([True, False]),
        "big": np.arange(3, dtype=">i4"),
    }
    for write in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        write(stream, **arrays)
        found = NpzFile(stream, "f")
        assert found.names == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found.array(name), array)


def test_npz_texts_hold_characters():
    for code in (0xD800, 0x110000, 0xFFFFFFFF):
        stream = with_header("{'descr': '<U1', 'fortran_order': False, 'shape': (), }", code.to_bytes(4, "little"))
        with pytest.raises(InputError, match="no characters"):
            NpzFile(stream, "f").array("a")


def with_header(header, content=b""):
    text = header.encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
    return stream


HEADERS = (
    "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 1000000000000), }",
    "{'descr': '<U999999999', 'fortran_order': False, 'shape': (), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('x', '<i8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), 'x': 1}",
    "{'descr': '<i8', 'shape': (1,), 'shape': (1,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (" + "(" * 900,
    "",
)


@pytest.mark.parametrize("header", HEADERS)
def test_npz_headers_are_no_programs(header):
    with pytest.raises(InputError, match=r"f: 'a\.npy' is damaged"):
        NpzFile(with_header(header, b"\0" * 8), "f").array("a")


def zipped(members, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip():
    assert ZipMembers(zipped([("a", b"1")]), "f").read("a") == b"1"
    refusals = {
        "not a zip archive": io.BytesIO(b"PK\x03\x04" + b"x" * 50),
        "two members called 'a'": zipped([("a", b"1"), ("a", b"2")]),
        "compressed by method 14": zipped([("a", b"1")], zipfile.ZIP_LZMA),
        "would unpack from": zipped([("a", b"\0" * HARMLESS), ("b", b"1")]),
    }
    for match, stream in refusals.items():
        with pytest.raises(InputError, match=match):
            ZipMembers(stream, "f")
    broken = bytearray(zipped([("a", b"abcdefgh")], zipfile.ZIP_STORED).getvalue())
    broken[broken.index(b"abc")] ^= 1
    with pytest.raises(InputError, match="f: 'a' is damaged"):
        ZipMembers(io.BytesIO(bytes(broken)), "f").read("a")
