"""A small log in memory and writers of it, for the tests of the reader of routers' logs."""

import csv
import io
import json

import numpy as np

EPOCH = 1_735_689_600  # 2025-01-01


def requests(count=40, workers=3, seed=0):
    """Return columns of floats and whole numbers: arrival, start, finish, prompt, output, worker; no two alike."""
    rng = np.random.default_rng(seed)
    arrival = np.round(np.cumsum(rng.uniform(0.01, 0.5, count)), 3)
    arrival -= arrival[0]
    output = rng.integers(2, 300, count)
    start = np.round(arrival + rng.uniform(0.001, 0.2, count), 3)
    finish = np.round(start + output * rng.uniform(0.01, 0.05, count), 3)
    worker = np.concatenate([np.arange(workers), rng.integers(0, workers, count - workers)])
    return {
        "id": np.array([f"r{i}" for i in range(count)]),
        "arrival": np.round(arrival, 3),
        "start": start,
        "finish": finish,
        "prompt": rng.integers(1, 5000, count),
        "output": output,
        "worker": worker,
    }


def csv_text(columns, delimiter=","):
    """Return columns by name as CSV text."""
    stream = io.StringIO()
    table = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return stream.getvalue()


def plain(data, **changes):
    """Return a router's table: the columns of `requests` under plain names, some of them changed, added or None."""
    columns = {
        "request_id": data["id"],
        "arrival": data["arrival"],
        "start": data["start"],
        "finish": data["finish"],
        "prompt_tokens": data["prompt"],
        "output_tokens": data["output"],
        "worker": data["worker"],
    }
    columns.update(changes)
    return {name: list(column) for name, column in columns.items() if column is not None}


def json_lines(columns):
    """Return columns by name as one JSON object a line."""
    rows = zip(*columns.values(), strict=True)
    return "".join(
        json.dumps(
            {name: getattr(cell, "item", lambda cell=cell: cell)() for name, cell in zip(columns, row, strict=True)}
        )
        + "\n"
        for row in rows
    )


def check(log, data, atol=1e-6):
    """Compare a log with what was written, whatever the order of the rows."""
    order = np.lexsort((data["arrival"], data["start"]))
    first = data["arrival"].min()
    for name in ("arrival", "start", "finish"):
        np.testing.assert_allclose(getattr(log, name), data[name][order] - first, rtol=0, atol=atol)
    for name in ("prompt", "output", "worker"):
        np.testing.assert_array_equal(getattr(log, name), data[name][order])
