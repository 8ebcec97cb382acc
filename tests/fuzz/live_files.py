"""Files of the live router: fleet files and records, small and valid, and how they are read."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path


def fleet_files() -> list[bytes]:
    """Fleet files with groups, prefillers and options."""
    ranks = '[[group]]\nname = "a"\nmodel = "m"\nslots = 8\nendpoint = "http://127.0.0.1:8001"\nranks = 2\n'
    workers = '[[group]]\nname = "b"\nmodel = "n"\nslots = 4\nkv_capacity = 90000\nworkers = ["http://10.0.0.1:80"]\n'
    more = '[[prefiller]]\nmodel = "n"\nurl = "http://10.0.0.2:80"\nthreshold = 0.8\nmost = 3\n'
    return [f"{ranks}[router]\nttl = 30\nretries = 2\ntokenize = true\n".encode(), (workers + more).encode()]


def read_fleet_file(path: Path) -> object:
    """Read a fleet file with the options of its router."""
    from lbopt.serving.router.fleet_file import read_fleet
    from lbopt.serving.router.options import options_from

    plan = read_fleet(path)
    return options_from(plan.options, {})


def record_files() -> list[bytes]:
    """A record of two decisions and their endings."""
    head = {"kind": "head", "format": "lbopt-decisions", "version": 1, "began": 1.0, "prefixes": {"bytes": 512}}
    one = {"kind": "decision", "at": 5.5, "group": "g", "rule": "r", "step": 3, "workers": ["a", "b"], "loads": [7, 8]}
    one |= {"free": [1, 1], "running": [0, 0], "requests": [1, 2], "sizes": [5, 6], "waited": [0, 0], "chosen": [0, 1]}
    end = {"kind": "outcome", "request": 1, "ending": "finished", "prompt": 5, "output": 9, "prompt_bytes": 2000}
    end |= {"arrival": 5.0, "start": 5.5, "first": 5.7, "finish": 6.0, "streams": True, "prefix": ["a", "b", "c"]}
    rows = [head, one, one | {"shadow": True}, end, end | {"request": 2, "ending": "failed"}]
    return ["".join(json.dumps(row) + "\n" for row in rows).encode()]


def read_record(path: Path) -> object:
    """Seal a record, and read what is made of it as its readers do."""
    from lbopt.serving.record.seal import seal
    from lbopt.studies.gap.decisions import read_states

    with tempfile.TemporaryDirectory() as out:
        sealed = seal(str(path.parent), out)
        if sealed.steps:
            read_states(Path(out) / "steps.jsonl")
        return sealed.to_dict()
