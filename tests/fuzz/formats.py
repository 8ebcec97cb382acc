"""The formats of files that lbopt reads: small valid files, how they are damaged, and how they are read."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.live_files import fleet_files, read_fleet_file, read_record, record_files
from tests.fuzz.mutators import changed_json, json_file, mutated_bytes, text_file, zip_file
from tests.fuzz.texts import POLICY_FILE, SPECS, router_columns
from tests.instances import logs, texts

STORED = Path(__file__).resolve().parents[1] / "stored"


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Parameters
    ----------
    seeds
        Gives small valid files.
    read
        Reads a file as a user would have it read.
    mutate
        Damages the bytes of a seed.
    file
        Name of the file.
    """

    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    mutate: Callable[[bytes, random.Random], bytes] = text_file
    file: str = "f"


def read_trace_both_ways(path: Path) -> None:
    """Read a trace; one that is read without skipping rows is the same when rows may be skipped."""
    from lbopt.exceptions import InputError
    from lbopt.instances.readers import Columns, read_trace

    columns = Columns("num_prefill_tokens", "num_decode_tokens", "arrived_at")
    given = columns if b"num_prefill" in path.read_bytes()[:200] else None
    refusal, whole = None, None
    try:
        whole = read_trace(path, columns=given)
    except InputError as error:
        refusal = error
    part = read_trace(path, columns=given, skip_malformed=True)
    if refusal is not None:
        raise refusal
    assert whole is not None and whole.digest == part.digest


def read_replay(path: Path) -> object:
    """Read a log to be replayed."""
    from lbopt.policies.replay import load_replay

    return load_replay(path)


def read_states(path: Path) -> object:
    """Read frozen states."""
    from lbopt.studies.gap.decisions import read_states

    return read_states(path)


def problem() -> Any:
    """A step problem with a window."""
    from lbopt.model import StepProblem

    return StepProblem(base=[[9, 3], [4, 4], [1, 0]], slots=[1, 2, 0], work=[[4, 5], [7, 8], [9, 0]])


def problem_files() -> list[bytes]:
    """Problems with and without a digest."""
    data = problem().to_dict()
    return [json.dumps(one).encode() for one in (data, {k: v for k, v in data.items() if k != "digest"})]


def read_problem(path: Path) -> object:
    """Read a step problem."""
    from lbopt.model import StepProblem

    return StepProblem.from_json(path)


@cache
def conditioned() -> Any:
    """The problem under conditions of every kind."""
    from lbopt.model import Conditions

    return problem().under(
        Conditions(
            capacity=[20, 30, 9],
            need=[4, 5, 6],
            allowed=[[1, 1, 0], [1, 1, 1], [0, 1, 1]],
            credit=[[0, 2, 0], [0, 0, 7], [3, 3, 0]],
            pace=[5, 4, 4],
            prefill_budget=[9, 20, 9],
            waiting_cost=[3, 0, 50],
            overdue_first=True,
            running_worker=[0, 1],
            running_work=[[5, 1], [2, 2]],
            pause_cost=[4, 6],
        )
    )


def conditioned_files() -> list[bytes]:
    """Problems under conditions with and without a digest."""
    data = conditioned().to_dict()
    return [json.dumps(one).encode() for one in (data, {k: v for k, v in data.items() if k != "digest"})]


def conditioned_results() -> list[bytes]:
    """A result with stages and pauses."""
    from lbopt.solvers import solve

    return [json.dumps(solve(conditioned()).to_dict() | {"seconds": 0.5}).encode()]


def read_conditioned_result(path: Path) -> None:
    """Read a result and check it against its problem under conditions."""
    from lbopt.solvers import verify
    from lbopt.solvers.result import Result

    verify(conditioned(), Result.from_json(path))


@cache
def proved() -> tuple[Any, dict[str, Any]]:
    """The smallest problem of the library with a certificate, and the certificate."""
    from lbopt.instances import library

    certificate = library.certificate("tiny-parity")
    assert certificate is not None
    return library.load("tiny-parity"), certificate


def result_files() -> list[bytes]:
    """A result with a certificate, and one without."""
    entry, certificate = proved()
    objective = entry.best
    data = {
        **{"format": "lbopt-result", "version": 1, "assignment": [int(w) for w in entry.record.assignment]},
        **{"objective": objective, "bound": objective, "gap": 0, "relative_gap": 0.0, "barrier_gap": 0.0},
        **{"status": "optimal", "proof": "certificate", "stop_reason": "proved", "solver": "exact", "seconds": 0.5},
        **{"tie": "any", "problem_digest": entry.problem.digest},
    }
    return [json.dumps(one).encode() for one in (data, data | {"certificate": certificate})]


def read_result(path: Path) -> None:
    """Read a result and check it against its problem."""
    from lbopt.solvers import verify
    from lbopt.solvers.result import Result

    verify(proved()[0].problem, Result.from_json(path))


def mutated_certificate(data: bytes, rng: random.Random) -> bytes:
    """A damaged certificate; half of them have the digest of what they now say, so that the checker reads on."""
    if rng.random() < 0.5:
        return json_file(data, rng)
    content = changed_json({name: value for name, value in json.loads(data).items() if name != "digest"}, rng)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


def read_certificate(path: Path) -> None:
    """Read a certificate and check it against its problem."""
    from lbopt.solvers.certificates import Certificate, check

    check(proved()[0].problem, Certificate.from_json(path))


def written(write: Callable[[Any, Path], None], *things: Any) -> list[bytes]:
    """The bytes of files that a function writes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "f"
        found = []
        for thing in things:
            write(thing, place)
            found.append(place.read_bytes())
        return found


def capture_files() -> list[bytes]:
    """A capture as it is written, and one that is compressed."""
    from lbopt.locality.capture import Capture, write_capture

    counts = np.array([[[2, 1, 1], [0, 2, 2]], [[1, 1, 0], [1, 0, 1]]])
    decode = np.array([[[1.0, 0.5, 0.5], [1.0, 0.25, 0.75]], [[0.0, 1.0, 1.0], [2 / 3, 2 / 3, 2 / 3]]])
    capture = Capture("qwen", 2, counts, decode, gate_prob=decode / 2, domain=np.array([3, 0]))
    plain = written(write_capture, capture)[0]
    return [plain, packed(plain)]


def packed(data: bytes) -> bytes:
    """The same archive with its members compressed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return stream.getvalue()


def read_capture(path: Path) -> object:
    """Read a capture."""
    from lbopt.locality.capture import read_capture

    return read_capture(path)


def table_files() -> list[bytes]:
    """A routing table with weights, and one without."""
    from lbopt.locality import IdfTable, MoEShape
    from lbopt.locality.routing_table import RoutingTable, write_table

    shape, mask = MoEShape(2, 3, 2), np.array([1])
    weights = IdfTable(np.arange(6.0).reshape(2, 3), 9)
    one = RoutingTable("qwen", shape, "count-idf", weights, mask, np.eye(3))
    other = RoutingTable("", shape, "gate-logit", None, mask, np.eye(3))
    return written(write_table, one, other)


def read_table(path: Path) -> object:
    """Read a routing table."""
    from lbopt.locality.routing_table import read_table

    return read_table(path)


def replay_arrays() -> list[bytes]:
    """Logs of steps and of seconds."""
    log = {"worker": np.array([0, 1, 0]), "start_step": np.array([0, 0, 2]), "prompt": np.array([5, 6, 7])}
    timed = {"req_worker": np.array([0, 1]), "req_start_time": np.array([0.0, 1.5])}
    found = []
    for arrays in (log, timed):
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        found.append(stream.getvalue())
    return found


def state_files() -> list[bytes]:
    """States as `lbopt gap` writes them, and bare problems."""
    one = problem().at_step(0) if hasattr(problem(), "at_step") else problem()
    state = {"problem": one.to_dict(), "behaviour": "fcfs", "step": 7, "running": [1, 0, 2], "waited": [0, 1, 2]}
    with_choice = {**state, "chosen": [0, 1, -1]}
    bare = {k: v for k, v in one.to_dict().items() if k != "digest"}
    return ["".join(json.dumps(record) + "\n" for record in (state, with_choice, bare)).encode()]


def card_files() -> list[bytes]:
    """A card of a device and a card of a model."""
    from importlib.resources import files

    home = files("lbopt.hardware.cards")
    return [home.joinpath(*place).read_bytes() for place in (("devices", "h100.toml"), ("models", "deepseek-v3.toml"))]


def read_card(path: Path) -> None:
    """Read a card as one of a device or of a model, as its text says."""
    from lbopt.hardware.cards.catalogue import device_card, model_card

    (model_card if b"parameters" in path.read_bytes() else device_card)(path)


def measurement_files() -> list[bytes]:
    """Measurements of steps, with and without groups."""
    return [
        b"spread_tokens,tpot_ms\n1000,21.5\n2000,22.5\n4000,25\n8000,31.25\n",
        b"max_load,mean_load,step_time_ms,group\n900,800,20,a\n1000,700,21,a\n2000,900,22,b\n",
        b"load_0,load_1,step_time_s\n100,200,0.02\n300,250,0.021\n",
    ]


def read_measurements(path: Path) -> object:
    """Read measurements."""
    from lbopt.hardware.fit.read_rows import read_rows

    return read_rows(str(path))


def read_spec(path: Path) -> object:
    """Make the policy that the text names."""
    from lbopt.policies import make_policy

    return make_policy(path.read_bytes().decode("utf-8", "surrogateescape"))


def read_policy_file(path: Path) -> object:
    """Load a function of a Python file."""
    from lbopt.policies.python_file import load_callable

    return load_callable(f"{path}:route")


def router_csv() -> list[bytes]:
    """Logs of a router with other delimiters and other times."""
    data = logs.requests(count=12)
    return [
        logs.csv_text(logs.plain(data)).encode(),
        logs.csv_text(router_columns(data), ";").encode(),
    ]


def router_json() -> list[bytes]:
    """Logs of a router as JSON lines, as an array, and as spans."""
    data = logs.requests(count=8)
    lines = logs.json_lines(logs.plain(data))
    array = json.dumps([json.loads(line) for line in lines.splitlines()])
    return [lines.encode(), array.encode(), spans(data).encode()]


def spans(data: dict[str, Any]) -> str:
    """The requests as spans of OpenTelemetry, one group a worker."""
    groups = []
    for worker in np.unique(data["worker"]).tolist():
        rows = np.flatnonzero(data["worker"] == worker).tolist()
        groups.append(
            {
                "resource": {"attributes": [{"key": "service.instance.id", "value": {"stringValue": f"w{worker}"}}]},
                "scopeSpans": [{"spans": [_span(data, row) for row in rows]}],
            }
        )
    return json.dumps({"resourceSpans": groups})


def _span(data: dict[str, Any], row: int) -> dict[str, Any]:
    first = float(data["start"][row] - data["arrival"][row])
    attributes = {
        "gen_ai.usage.input_tokens": {"intValue": str(data["prompt"][row])},
        "gen_ai.usage.output_tokens": {"intValue": str(data["output"][row])},
        "gen_ai.latency.time_to_first_token": {"doubleValue": first},
    }
    return {
        "traceId": f"{row:032x}",
        "spanId": f"{row:016x}",
        "startTimeUnixNano": str(round((logs.EPOCH + float(data["arrival"][row])) * 1e9)),
        "endTimeUnixNano": str(round((logs.EPOCH + float(data["finish"][row])) * 1e9)),
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }


def router_parquet() -> list[bytes]:
    """A log of a router as Parquet, with and without compression."""
    import pandas as pd

    data = logs.requests(count=12)
    frame = pd.DataFrame(logs.plain(data))
    return [frame.to_parquet(None, engine="pyarrow", index=False, compression=how) for how in (None, "snappy", "gzip")]


def mutated_parquet(data: bytes, rng: random.Random) -> bytes:
    """A damaged Parquet file; some have whole pages and odd values."""
    import pandas as pd

    if rng.random() < 0.9:
        return mutated_bytes(data, rng)
    frame = pd.read_parquet(io.BytesIO(data))
    column = rng.choice(list(frame.columns))
    values: list[Any] = [[[1]] * 12, [{"a": 1}] * 12, [None] * 12, [b"\xff"] * 12, [True] * 12, [2.0**62] * 12]
    frame[column] = pd.Series(rng.choice(values), dtype=object)
    return bytes(frame.to_parquet(None, engine="pyarrow", index=rng.random() < 0.5))


def read_router_log(path: Path) -> object:
    """Read a router's log."""
    from lbopt.instances.router_log import read_router_log

    return read_router_log(path)


def library_files() -> list[bytes]:
    """A file of the library with two entries, one of them with a certificate."""
    from lbopt.instances import library
    from tools.library.archive import write_archive

    names = ("tiny-parity", library.names("tiny")[0])
    entries = [library.load(name) for name in dict.fromkeys(names)]
    certificates = {name: found for name in names if (found := library.certificate(name))}
    return written(lambda thing, path: write_archive(path, thing, certificates), entries)


def read_library(path: Path) -> None:
    """Read all entries and certificates of a file of the library."""
    from lbopt.files import read_bytes
    from lbopt.instances.library.collection import Archive

    archive = Archive(read_bytes(path), str(path))
    for name in archive.names:
        archive.entry(name)
        archive.certificate(name)


def run_files() -> list[bytes]:
    """The run.json of one run of each study."""
    return [path.read_bytes() for path in sorted((STORED / "runs").glob("*.json"))]


def read_run(path: Path) -> None:
    """Read the account of a folder, and the configuration in it."""
    from lbopt.report.study_report import read_account

    study, account = read_account(path.parent)
    study.config_of(account, str(path))


def store_files() -> list[bytes]:
    """Stores that earlier versions wrote."""
    return [(STORED / "stores" / f"{name}.sqlite").read_bytes() for name in ("scaling", "check")]


def mutated_store(data: bytes, rng: random.Random) -> bytes:
    """A damaged store; half of them are whole as a database, with one odd cell."""
    if rng.random() < 0.5:
        return mutated_bytes(data, rng)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(data)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
    column = rng.choice(columns)
    keys = [row[0] for row in connection.execute("SELECT rowid FROM results")]
    place = rng.choice(keys)
    old = connection.execute(f"SELECT {column} FROM results WHERE rowid = ?", (place,)).fetchone()[0]
    values = [None, -1, 2**62, 0.5, "", "x", b"\xff\x00", "[" * 2000, "9" * 5000, '{"a": NaN}', "\x1b[2J"]
    new = text_file(old.encode(), rng).decode(errors="replace") if isinstance(old, str) and old else None
    value = new if new is not None and rng.random() < 0.5 else rng.choice(values)
    try:
        connection.execute(f"UPDATE results SET {column} = ? WHERE rowid = ?", (value, place))
        connection.commit()
    except sqlite3.IntegrityError:  # NOT NULL
        pass
    found = connection.serialize()
    connection.close()
    return found


def read_store(path: Path) -> None:
    """Read all rows of a store."""
    from lbopt.runner.store import Store

    with Store(path, read_only=True) as store:
        for _ in store.rows():
            pass
        store.statuses()


def trace_files() -> list[bytes]:
    """Traces as CSV."""
    found = (texts.AZURE_2023, texts.AZURE_2024, texts.BURSTGPT_OLD, texts.BURSTGPT_NEW, texts.USER_CSV)
    return [text.encode() for text in found]


FORMATS: dict[str, Format] = {
    "trace as CSV": Format(trace_files, read_trace_both_ways),
    "trace as JSON lines": Format(lambda: [texts.MOONCAKE.encode()], read_trace_both_ways, json_file),
    "trace as JSON": Format(lambda: [texts.LENGTHS.encode()], read_trace_both_ways, json_file),
    "replay log as CSV": Format(lambda: [b"worker,start_step,prompt\n0,0,5\n1,0,6\n0,2,7\n"], read_replay),
    "replay log as NPZ": Format(replay_arrays, read_replay, zip_file),
    "steps.jsonl": Format(state_files, read_states, json_file),
    "problem": Format(problem_files, read_problem, json_file),
    "problem under conditions": Format(conditioned_files, read_problem, json_file),
    "result": Format(result_files, read_result, json_file),
    "result under conditions": Format(conditioned_results, read_conditioned_result, json_file),
    "certificate": Format(lambda: [json.dumps(proved()[1]).encode()], read_certificate, mutated_certificate),
    "capture": Format(capture_files, read_capture, zip_file),
    "routing table": Format(table_files, read_table, zip_file),
    "card": Format(card_files, read_card, text_file, "card.toml"),
    "measurements": Format(measurement_files, read_measurements),
    "policy spec": Format(lambda: [spec.encode() for spec in SPECS], read_spec),
    "policy file": Format(lambda: [POLICY_FILE.encode()], read_policy_file, text_file, "policy.py"),
    "router log as CSV": Format(router_csv, read_router_log),
    "router log as JSON": Format(router_json, read_router_log, json_file),
    "router log as Parquet": Format(router_parquet, read_router_log, mutated_parquet),
    "library": Format(library_files, read_library, zip_file),
    "run.json": Format(run_files, read_run, json_file, "run.json"),
    "fleet file": Format(fleet_files, read_fleet_file),
    "record of a router": Format(record_files, read_record, json_file, "decisions.jsonl"),
    "store": Format(store_files, read_store, mutated_store, "f.sqlite"),
}
