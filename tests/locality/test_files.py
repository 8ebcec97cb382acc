"""Files of routing tables and captures: what is written comes back, and whatever else lies there is one sentence."""

import json
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.locality import IdfTable, MoEShape, draw_workload, task_workload
from lbopt.locality import capture as captures
from lbopt.locality import routing_table as tables
from lbopt.locality.capture import capture_of, read_capture, write_capture
from lbopt.locality.routing_table import (
    DriftReference,
    Made,
    RoutingTable,
    check_model,
    check_workers,
    read_table,
    write_table,
)

TABLE = RoutingTable(
    "qwen", MoEShape(2, 3, 2), "count-idf", IdfTable(np.arange(6.0).reshape(2, 3), 9), np.array([1]), np.eye(3)
)
COUNTS = np.array([[[2, 1, 1], [0, 2, 2]], [[1, 1, 0], [1, 0, 1]]])
DECODE = np.array([[[1.0, 0.5, 0.5], [1.0, 0.25, 0.75]], [[0.0, 1.0, 1.0], [2 / 3, 2 / 3, 2 / 3]]])
CAPTURE = captures.Capture("qwen", 2, COUNTS, DECODE, domain=np.array([3, 0]))


def changed(path, arrays=None, **about):
    """Write the file at `path` anew, with other entries."""
    with np.load(path) as archive:
        inside = {name: archive[name] for name in archive.files}
    said = {**json.loads(str(inside["about"])), **about}
    inside["about"] = np.array(json.dumps({name: value for name, value in said.items() if value != "gone"}))
    inside.update(arrays or {})
    with path.open("wb") as stream:
        np.savez(stream, **{name: array for name, array in inside.items() if array is not None})


@pytest.mark.parametrize("transform", ["count-idf", "gate-logit"])
def test_a_table_comes_back(tmp_path, transform):
    table = TABLE if transform == "count-idf" else replace(TABLE, transform=transform, idf=None)
    place = tmp_path / "table.npz"
    write_table(table, place)
    write_table(table, place)  # takes the place of its like
    back = read_table(place)
    assert [p.name for p in tmp_path.iterdir()] == ["table.npz"]
    assert (back.model, back.shape, back.transform) == (table.model, table.shape, table.transform)
    for name in ("layers", "centroids"):
        assert np.array_equal(getattr(back, name), getattr(table, name))
    if table.idf is None:
        assert back.idf is None
    else:
        assert np.array_equal(back.idf.weights, table.idf.weights) and back.idf.num_requests == 9


def test_a_capture_comes_back(tmp_path):
    activity = draw_workload(task_workload(shape=MoEShape(2, 8, 2), requests=5), seed=1)[1]
    for one in (CAPTURE, capture_of(activity, 2, "toy")):
        write_capture(one, tmp_path / "capture.npz")
        back = read_capture(tmp_path / "capture.npz")
        assert (back.model, back.experts_per_token, back.shape) == (one.model, one.experts_per_token, one.shape)
        for name in ("counts", "decode", "gate_prob", "gate_logit", "domain"):
            assert np.array_equal(getattr(back, name), getattr(one, name))
        assert back.counts.dtype == np.int64 and back.decode.dtype == np.float64
        assert back.gate_prob is None or back.gate_prob.dtype == np.float64


NAMED = replace(
    TABLE,
    workers=("a", "b", "c"),
    made=Made("0123456789abcdef", "2026-01-02T03:04:05Z"),
    drift=DriftReference(np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.8]]), np.array([0.0, 0.25]), np.array([[1, 1, 0]])),
)


def test_what_a_table_is_of_comes_back(tmp_path):
    write_table(NAMED, tmp_path / "t.npz")
    back = read_table(tmp_path / "t.npz")
    assert (back.workers, back.made, back.table_id) == (NAMED.workers, NAMED.made, NAMED.table_id)
    assert back.unknown == "" and back.names == ("a", "b", "c") and TABLE.names == ("0", "1", "2")
    for name in ("cosines", "strange", "used"):
        assert np.array_equal(getattr(back.drift, name), getattr(NAMED.drift, name))


def test_a_table_is_known_by_what_decides():
    same = replace(TABLE, made=NAMED.made, drift=NAMED.drift, centroids=np.eye(3))
    assert same.table_id == TABLE.table_id and len(TABLE.table_id) == 16
    others = [
        replace(TABLE, centroids=np.eye(3)[::-1]),
        replace(TABLE, workers=NAMED.workers),
        replace(TABLE, model=""),
    ]
    others += [replace(TABLE, layers=np.array([0])), replace(TABLE, idf=IdfTable(np.ones((2, 3)), 9))]
    assert len({table.table_id for table in (TABLE, *others)}) == 6


def test_a_file_of_the_first_version_is_read_and_says_what_it_does_not_tell(tmp_path, caplog):
    place = tmp_path / "old.npz"
    write_table(TABLE, place)
    changed(place, version=1, workers="gone", table_id="gone", calibration="gone", fitted="gone")
    with caplog.at_level("WARNING", logger="lbopt.locality"):
        back = read_table(place)
    assert np.array_equal(back.centroids, TABLE.centroids) and back.drift is None
    assert caplog.messages == [
        f"routing table '{place}' is of version 1: routing table {TABLE.table_id} does not tell the names of its "
        "workers, its calibration requests, the date of the fit and what drift is held against; fit it again to know"
    ]


@pytest.fixture
def table_file(tmp_path):
    write_table(NAMED, tmp_path / "t.npz")
    return tmp_path / "t.npz"


@pytest.fixture
def capture_file(tmp_path):
    write_capture(CAPTURE, tmp_path / "c.npz")
    return tmp_path / "c.npz"


def test_what_is_no_table(table_file, capture_file, tmp_path):
    other = tmp_path / "other"
    np.savez(tmp_path / "plain.npz", a=np.ones(3))
    other.write_text("hello")
    for place in (capture_file, other, tmp_path / "plain.npz"):
        with pytest.raises(InputError, match="is no routing table of lbopt; make one with `lbopt fit`"):
            read_table(place)
        with pytest.raises(InputError, match="exists and is no routing table of lbopt; give another name"):
            write_table(TABLE, place)
    with pytest.raises(InputError, match=r"cannot read routing table '.*nowhere': No such file"):
        read_table(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a folder"):
        write_table(TABLE, tmp_path)
    with pytest.raises(InputError, match=r"cannot be written: '.*no' does not exist"):
        write_table(TABLE, tmp_path / "no" / "t.npz")


@pytest.mark.parametrize("cut", [10, 200, 500, -1, -30])
def test_a_cut_file_is_damaged(table_file, cut):
    whole = table_file.read_bytes()
    table_file.write_bytes(whole[:cut])
    with pytest.raises(InputError, match="damaged"):
        read_table(table_file)


def test_a_flipped_byte_is_noticed(table_file):
    whole = table_file.read_bytes()
    at = whole.index(np.eye(3).tobytes()) + 7  # inside the centroids, whose checksum no longer holds
    table_file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(InputError, match="damaged"):
        read_table(table_file)


@pytest.mark.parametrize(
    ("arrays", "about", "words"),
    [
        ({}, {"version": 3}, "is of version 3; this lbopt reads up to version 2: update lbopt"),
        ({}, {"version": None}, "is damaged: it says that it is of version None"),
        ({}, {"version": 0}, "is damaged: it says that it is of version 0"),
        ({}, {"version": -3}, "is damaged: it says that it is of version -3"),
        ({}, {"version": True}, "is damaged: it says that it is of version True"),
        ({}, {"table_id": "gone"}, "is damaged: it says that it is table None"),
        ({}, {"calibration_requests": -5}, "it was fitted to -5 calibration requests; expected 1 or more"),
        ({}, {"calibration_requests": 2.5}, "it was fitted to 2.5 calibration requests"),
        ({}, {"workers": "ab"}, "its workers are 'ab'; expected a list of names"),
        ({}, {"format": "lbopt-expert-capture"}, "is no routing table"),
        ({}, {"shape": "gone"}, r"damaged \(entry 'shape'\)"),
        ({}, {"shape": [2, 3]}, "experts_per_token is 8, but a layer has 3 experts"),
        ({}, {"num_workers": 4}, "it says 4 workers and 1 layers, and holds 3 and 1"),
        ({"layers": np.array([], dtype=np.int64)}, {}, "keeps no layer"),
        ({"layers": np.array([2])}, {}, r"the layer mask is \[2\]"),
        ({"layers": np.array([0.0])}, {}, "'layers' is 1-D of type float64; expected 1-D whole numbers"),
        ({"layers": None}, {}, "holds no 'layers'; write it again"),
        ({"idf": None}, {}, "has no IDF weights"),
        ({"centroids": 2 * np.eye(3)}, {}, "centroid 0 has the length 2"),
        ({"centroids": np.eye(3)[::-1]}, {}, "it says that it is table .*, and holds table"),
        ({}, {"workers": ["a"]}, "1 workers are named and the table has 3 centroids"),
        ({}, {"workers": 7}, "its workers are 7; expected a list of names"),
        ({"drift_used": None}, {}, "holds no 'drift_used'"),
        ({"drift_strange": np.zeros(5, np.float32)}, {}, r"shares of shape \(5,\)"),
        ({"centroids": np.array([[{}]], dtype=object)}, {}, "damaged"),
    ],
)
def test_tables_that_were_tampered_with(table_file, arrays, about, words):
    changed(table_file, arrays, **about)
    with pytest.raises(InputError, match=words) as caught:
        read_table(table_file)
    assert "t.npz" in str(caught.value)


def with_entry(path, name, content):
    """Write the file at `path` anew, with these bytes as one entry."""
    with zipfile.ZipFile(path) as archive:
        inside = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for one, old in inside.items():
            archive.writestr(one, content if one == name else old)


def of_shape(text):
    """Return an entry whose header claims this shape and that holds next to nothing."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {text}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("centroids.npy", b"hello", r"'centroids\.npy' is damaged \(it is no NumPy array\)"),
        ("layers.npy", b"", r"is damaged"),
        (
            "centroids.npy",
            of_shape("(99999999, 99999, 9)"),
            r"is damaged \(its header asks for 719,992,792,800,072 bytes",
        ),
        ("centroids.npy", of_shape("(-1, 3)"), "is damaged"),
    ],
)
def test_entries_that_are_no_arrays(table_file, name, content, words):
    with_entry(table_file, name, content)
    with pytest.raises(InputError, match=words):
        read_table(table_file)


def test_an_entry_with_a_password_is_refused(table_file):
    whole = bytearray(table_file.read_bytes())
    at = whole.index(b"PK\x01\x02")  # the directory's first entry; bit 0 of its flags says encrypted
    whole[at + 8] |= 1
    table_file.write_bytes(bytes(whole))
    with pytest.raises(InputError, match="is encrypted; expected a plain or deflated member"):
        read_table(table_file)


def test_an_entry_of_another_compression_is_refused(table_file):
    with zipfile.ZipFile(table_file) as archive:
        inside = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(table_file, "w", zipfile.ZIP_LZMA) as archive:
        for one, old in inside.items():
            archive.writestr(one, old)
    with pytest.raises(InputError, match="is compressed by method 14"):
        read_table(table_file)


def test_about_that_is_nested_too_deep_or_counts_too_far(table_file):
    changed(table_file, {}, calibration_requests=float("inf"))
    with pytest.raises(InputError, match="is not usable JSON"):
        read_table(table_file)
    changed(table_file, {"about": np.array("[" * 100_000)})
    with pytest.raises(InputError, match="is not usable JSON"):
        read_table(table_file)


def test_a_pickle_is_not_opened(table_file):
    table_file.write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(InputError, match="is no routing table"):
        read_table(table_file)


def test_a_table_of_another_model_or_fleet():
    check_model(TABLE, TABLE.shape, "qwen")
    check_model(TABLE, TABLE.shape)
    check_model(replace(TABLE, model=""), TABLE.shape, "gemma")
    with pytest.raises(InputError, match=r"table is of 'qwen' \(2 layers, 3 experts, 2 a token\), the requests are of"):
        check_model(TABLE, TABLE.shape, "gemma")
    with pytest.raises(InputError, match=r"the requests are of a model without a name \(2 layers, 3 experts, 1 a tok"):
        check_model(TABLE, MoEShape(2, 3, 1))
    check_workers(TABLE, 3)
    with pytest.raises(InputError, match="the table has 3 centroids, the fleet 8 workers; fit again with --workers 8"):
        check_workers(TABLE, 8)


def but(array, place, value):
    other = np.array(array)
    other[place] = value
    return other


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": but(COUNTS, (1, 1, 0), 2)}, "counts of request 1 sum to 3 at layer 1 and to 2 at layer 0"),
        ({"counts": but(but(COUNTS, (0, 0, 0), 1), (0, 1, 1), 1)}, "counts of request 0 sum to 3 at layer 0"),
        (
            {"counts": but(COUNTS, (0, 0), (3, 1, 0))},
            "expert 0 at layer 0 was chosen 3 times by request 0, which has 2",
        ),
        ({"counts": but(COUNTS, (0, 0), (5, -1, 0))}, "counts of request 0, layer 0, expert 1 are -1; expected >= 0"),
        ({"counts": COUNTS / 1}, "counts are of type float64; expected whole numbers of tokens"),
        ({"counts": COUNTS[:0], "decode": DECODE[:0]}, "none of them 0"),
        ({"decode": DECODE[:1]}, r"decode is of shape \(1, 2, 3\), and counts of \(2, 2, 3\)"),
        ({"decode": but(DECODE, (1, 0, 2), np.nan)}, "decode of request 1, layer 0, expert 2 is nan"),
        ({"decode": but(DECODE, (1, 0), (-1, 1, 2))}, "decode of request 1, layer 0, expert 0 is -1; expected 0 to 1"),
        ({"decode": but(DECODE, (0, 1, 2), 0.5)}, "decode of request 0 sums to 1.75 at layer 1; expected 2"),
        ({"gate_prob": DECODE + np.inf}, "gate_prob of request 0"),
        ({"domain": np.array([1])}, r"domain is of shape \(1,\); expected one for each of 2"),
        ({"experts_per_token": 4}, "experts_per_token is 4, but a layer has 3"),
    ],
)
def test_captures_that_cannot_be(changes, words):
    with pytest.raises(InputError, match=words), np.errstate(invalid="ignore"):
        replace(CAPTURE, **changes)


@pytest.mark.parametrize(
    ("arrays", "about", "words"),
    [
        ({}, {"version": 9}, "is of version 9"),
        ({}, {"model": "gone"}, "does not say its model and experts_per_token"),
        ({}, {"experts_per_token": "two"}, "does not say its model"),
        ({"counts": COUNTS / 2}, {}, "'counts' is 3-D of type float64; expected 3-D whole numbers"),
        ({"decode": DECODE / 2}, {}, "c.npz': decode of request 0 sums to 1 at layer 0"),
        ({"decode": None}, {}, "holds no 'decode'"),
    ],
)
def test_capture_files_that_cannot_be(capture_file, arrays, about, words):
    changed(capture_file, arrays, **about)
    with pytest.raises(InputError, match=words):
        read_capture(capture_file)


def test_formats_are_told_apart():
    assert tables.FORMAT.name != captures.FORMAT.name
