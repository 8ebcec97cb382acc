"""Small runs of every verb and study, and what is frozen of each: exit codes, files, keys, columns and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from frozen.command_line import typed
from frozen.digests import documents, keys, tables

_FLEET = "-n 300 -G 3 -B 4"
_GAP = f"gap burstgpt-like {_FLEET} --states 3 --time-limit 60 --seed 1"
_ENDS = "-H 4 --new ends --behaviour fcfs -p br-0 -p bf-io"

#: Every policy that needs nothing but a trace; options after the name.
_POLICIES = {
    **{name: name for name in ("fcfs", "round-robin", "random", "power-of-two", "jsq", "jsq-load", "vllm", "max-min")},
    **{name: name for name in ("auto", "br-0", "br-h", "br-0-bypass", "iqr", "bf-io", "fast-phi")},
    **{name: name for name in ("count-then-load", "level-then-load", "barrier-time")},
    "br-0-aged": "br-0:age_bound=50",
    "br-h-survival": "br-h:predictor=survival --train-on azure-like",
    "fast-phi-ahead": "fast-phi --horizon 4 --predictor oracle",
    "bf-io-ahead": "bf-io --horizon 3 --predictor oracle",
    "jsq-pooled": "jsq:admission=pooled",
    "vllm-2025": "vllm:version=2025",
    **{name: name for name in ("sglang", "tensorrt-llm", "tpu-inference", "smg", "dynamo", "llm-d", "lmdeploy")},
    **{name: name for name in ("lightllm", "vllm-ascend")},
}

#: Name of a run, and the commands that make it; folders are named after what they hold.
RUNS: dict[str, tuple[str, ...]] = {
    **{f"simulate {name}": (f"simulate {_FLEET} --seed 1 -p {policy} -o out",) for name, policy in _POLICIES.items()},
    **{
        f"simulate {name} timed": (
            f"simulate azure-like -n 400 -G 4 -B 6 --seed 2 --arrivals trace --load 0.9 -p {name} -o out",
        )
        for name in ("fcfs", "jsq", "vllm", "br-0", "fast-phi")
    },
    "simulate theory order": (f"simulate {_FLEET} --event-order theory -p fcfs --window 5:40 -o out",),
    "simulate roofline": (f"simulate {_FLEET} --step-time roofline:device=h800 --power mfu -p br-0 -o out",),
    "gap": (f"{_GAP} --behaviour fcfs --behaviour br-0 --seeds 2 -p fcfs -p random -p br-0 -p bf-io -o out",),
    "gap ahead": (f"{_GAP} --horizon 3 --behaviour fcfs -p br-0 -p br-h --predictor oracle --no-long-runs -o out",),
    "gap with ends": (f"{_GAP} {_ENDS} --no-long-runs -o out",),
    "gap cp-sat": (f"{_GAP} --behaviour fcfs -p fcfs --solver cp-sat --no-long-runs -o out",),
    "gap frozen problems, and again": (
        f"{_GAP} --behaviour fcfs -p fcfs --no-long-runs -o first",
        "gap --problems first/steps.jsonl -p max-min -p fcfs --time-limit 60 -o second",
        "rerun second",
        "solve first/steps.jsonl --line 2 --tie leximax --write a.lp --out r.json",
    ),
    "gap prefill": (
        "gap --side prefill -n 300 -G 3 --instances 2 --chunk 1500 --load 0.8 --states 2 --seed 1 --time-limit 60 "
        "-p pbaa -p longest-first -p round-robin -o out",
        "rerun out",
    ),
    "prefill": (
        "prefill azure-like -n 300 --load 0.8 -N 2 -D 3 -p round-robin -p jsq "
        "-p staggered:window=50/pbaa -p staggered:window=50/longest-first --seed 1 -o out",
    ),
    "prefill back-to-back": (
        "prefill burstgpt-like -n 300 --load 0.7 -N 2 -D 3 --engine back-to-back -p round-robin "
        "-p staggered:window=50/pbaa --seed 1 -o out",
    ),
    "prefill by default": ("prefill burstgpt-like -n 300 --seed 3 -o out",),
    "predict": (
        "predict azure-like -n 400 --horizon 20 --predictor survival --predictor memorised:bins=20 --seed 1 -o out",
    ),
    "cost of numbers": ("cost --mean-load 85000 --imbalance 200000 -G 8 --running 35 --draws 100 --seed 1 -o out",),
    "cost of a run": (
        f"simulate {_FLEET} -p fcfs -o run",
        "cost run -d h800 --what-if workers=2,4 --draws 100 -o out",
    ),
    "cost of a gap study": (
        f"{_GAP} --behaviour fcfs -p fcfs -p br-0 -o gap",
        "cost gap --router br-0 -d h800 --draws 100 -o out",
    ),
    "check": ("check lemma-8 berry-esseen-rate:rounds=yes fcfs-exact:G=4,p=0.3 lemma-2-printed --seed 1 -o out",),
    "check lemma 1": ("check lemma-1-printed lemma-3-size lemma-2-event --seed 1 -o out",),
    "check adversaries": ("check jsq-adversary round-robin-adversary waiting-reference-values -o out",),
    "check chains": ("check lemma-4-printed lemma-4 waiting-lattice waiting-spacing --seed 1 -o out",),
    "hardware fit": ("hardware fit published:balance-route --hold-out all --residuals --out out",),
    "library": (
        "library solve --class tiny --time-limit 60 --out results",
        "library export tiny-makespan --format json --out p.json",
        "library export tiny-known-ends --format mps --out p.mps",
        "verify p.json results/tiny-makespan.result.json",
    ),
    "library adversarial": (
        "library solve adversarial-br-0-g3-n6 adversarial-br-0-g4-n10 adversarial-max-min-g3-n6 "
        "adversarial-largest-first-g4-n10 adversarial-greedy-g5-n14 adversarial-elementary-bound-g5-n14 "
        "adversarial-pattern-bound-g3-n9 adversarial-effort-g4-n18 --time-limit 60 --out results",
    ),
    "library steady": (
        "library solve steady-rich-burstgpt-g8-b72-r512-h0 steady-leftover-burstgpt-g16-b72-r512-h0 "
        "steady-rich-azure-g32-b72-r512-h0 partition-n20-g3-16bit-a cold-exact-burstgpt-g4-b24-n96-h0 "
        "--time-limit 60 --out results",
    ),
    "locality": (
        "locality draw task -n 60 --layers 3 --experts 16 --per-token 2 --gate --seed 1 -o capture.npz",
        "locality fit capture.npz -G 4 --pairs 500 --seed 1 -o table.npz",
        "locality fit capture.npz -G 4 --pairs 500 --vanilla --all-layers -o plain.npz",
        "locality show table.npz",
        "locality show plain.npz",
    ),
    "study placement": (
        "study placement -R 2 -R 4 --worlds 1 --clusters 3 -E 8 --top-k 2 --layers 2 --requests 60 --batch 8 "
        "--draws 20 -k task -k uniform --time-limit 60 --seed 1 -o out --store s.sqlite",
        "study export s.sqlite",
    ),
    "study scaling": ("study scaling -G 2 -G 3 -B 2 -B 4 --p 0.4 --s-max 4 -p fcfs -p bf-io-replete --seed 1 -o out",),
    "study locality": (
        "study locality --prompts 120 --seconds 6 --warm-up 2 --layers 2 --rates 20 --seeds 2 --workload task "
        "signatures band clusters -o out",
    ),
    "study staggered": (
        "study staggered law load limit split --place short-3k --requests 500 --waits 1000 --seeds 2 --instances 2 "
        "-o out",
    ),
    "study misprediction": (
        f"study misprediction azure-like {_FLEET} -p br-h --horizon 4 --states 2 --seeds 2 --noise 0.3 --bias 2 "
        "--shuffled 0.5 --time-limit 60 --seed 1 -o out",
    ),
}


#: Runs of more than ten seconds on an idle core.
SLOW = ("study staggered",)


def file_name(name: str) -> str:
    """What the file of a run is called."""
    return name.replace(",", "").replace(" ", "-")


def frozen_of(name: str, folder: Path) -> dict[str, Any]:
    """Carry a run out in an empty folder and describe what it left."""
    codes = []
    for words in RUNS[name]:
        code, _, said = typed(words, folder)
        if code > 1:
            raise AssertionError(f"lbopt {words}: exit code {code}: {said}")
        codes.append(code)
    notes = sorted(folder.rglob("run.json"))
    return {
        "exit": codes,
        "files": sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()),
        "keys": {path.parent.name: sorted(keys(json.loads(path.read_text(encoding="utf-8")))) for path in notes},
        "tables": tables(folder),
        "documents": documents(folder),
    }
