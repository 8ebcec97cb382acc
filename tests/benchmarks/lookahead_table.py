"""What looking ahead is worth on the 100,000 requests behind Table 1 of the BF-IO paper (G = 16, B = 72, 64 waiting).

python -m tests.benchmarks.lookahead_table --shared ../shared --out lookahead-table

Every rule twice, as it is and with an age bound of 50 steps. Parameters were tuned on draw 43, the table is of draw 42;
survival forecasts learn from another draw again. A decision of bf-io ends by the work of its search, not by the clock;
what it left undecided is counted. The one-step gap is the imbalance after the rule's placement minus the least possible
one in that step, over 100 decisions spread evenly along its own run. Writes OUT.json after every row and goes on where
it was stopped (`--again` begins anew), and OUT.md.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.instances import read_trace
from lbopt.model import Fleet, objective
from lbopt.policies import make_policy
from lbopt.policies.replay import Replay
from lbopt.simulator import SimulationSetting, sample_states, simulate
from lbopt.solvers import solve
from lbopt.whole_file import write_file

SETTING = SimulationSetting(Fleet(16, 72))
EFFORT = "effort=20000,time_limit=none"
#: By the search of `lookahead_tuning` on draw 43.
TUNED = {
    ("oracle", 10): "beta=72.9,gamma=0.674,stage_switch=0,update=profile",
    ("oracle", 20): "beta=39.6,gamma=0.676,stage_switch=0,growth=0,update=profile",
    ("oracle", 40): "beta=18.3,gamma=0.697,stage_switch=0,growth=0,update=profile",
    ("oracle", 80): "beta=40.1,gamma=0.615,stage_switch=0,update=profile",
    ("survival", 10): "beta=464.1,gamma=0.406,stage_switch=0,growth=0,departures=weighted",
    ("survival", 20): "beta=723.2,gamma=0.528,stage_switch=0,growth=0,departures=weighted",
    ("survival", 40): "beta=475.1,gamma=0.512,stage_switch=0,departures=weighted",
    ("survival", 80): "beta=94.0,gamma=0.611,stage_switch=0,growth=0,departures=weighted",
}
HORIZONS = (10, 20, 40, 80)
MYOPIC = ("max-min", "br-0", "br-0:stage_switch=0", "br-h:horizon=0,beta=357.4,stage_switch=0")
FIGURES = (
    ("whole_run_tokens_per_second", "tokens / s, whole run", 1, 0),
    ("whole_run_share_of_ceiling", "of what no rule can pass, %", 100, 2),
    ("imbalance_tokens", "imbalance (tokens)", 1, 0),
    ("mean_load_tokens", "mean load", 1, 0),
    ("occupancy", "occupancy, %", 100, 2),
    ("throughput_tokens_per_second", "tokens / s, window", 1, 0),
    ("tpot_mean_seconds", "TPOT (ms)", 1e3, 3),
    ("waiting_mean_steps", "wait mean", 1, 2),
    ("waiting_p99_steps", "P99", 1, 0),
    ("waiting_max_steps", "max", 1, 0),
    ("one_step_gap", "one-step gap", 1, 0),
)
#: Told of the run with an age bound, too.
BOUNDED = ("whole_run_tokens_per_second", "imbalance_tokens")


def rows():
    """Return (group, policy) of every row without an age bound."""
    yield from (("H = 0", spec) for spec in MYOPIC)
    yield "H = 0", f"bf-io:{EFFORT}"
    for predictor, departures in (("oracle", ""), ("survival", ",departures=weighted")):
        for H in HORIZONS:
            yield predictor, f"br-h:horizon={H},predictor={predictor},{TUNED[predictor, H]}"
        for H in HORIZONS:
            yield predictor, f"bf-io:horizon={H},predictor={predictor}{departures},{EFFORT}"
        gamma = 0.7 if predictor == "oracle" else 0.5
        yield predictor, f"bf-io:horizon=10,gamma={gamma},predictor={predictor}{departures},{EFFORT}"
    bins = "predictor=memorised:bins=20"
    yield "bins", f"br-h:horizon=20,{bins},{TUNED['survival', 20]}"
    yield "bins", f"bf-io:horizon=10,gamma=0.5,{bins},departures=weighted,{EFFORT}"
    yield "oracle", f"bf-io:horizon=10,new=forecast,predictor=oracle,{EFFORT}"
    yield "oracle", f"bf-io:horizon=10,new=forecast,gamma=0.7,predictor=oracle,{EFFORT}"


def one_step_gap(run, count=100):
    """Return the mean gap of the run's own decisions to the best placement of the step, and how many were proved."""
    log = Replay(name=run.policy, worker=run.requests["worker"], start=run.requests["start_step"], by_time=False)
    states, _ = sample_states(run.trace, log, SETTING, count)
    gaps = []
    for state in states:
        if int((state.chosen >= 0).sum()) == state.problem.num_admitted:
            best = solve(state.problem, "search", time_limit=2)
            if best.proved:
                gaps.append(objective(state.problem, state.chosen) - best.objective)
    return float(np.mean(gaps)), len(gaps)


def measured(spec, trace, training, bar):
    """Return one row."""
    policy, told = make_policy(spec), [0]

    def show(ended, _total):
        bar.advance(ended - told[0])
        told[0] = ended

    simulate(trace.first(300), policy, SETTING, training=training)  # compile or load, outside the clock
    policy = make_policy(spec)
    begun = time.process_time()
    run = simulate(trace, policy, SETTING, training=training, progress=show)
    row = run.metrics().to_dict() | {"tally": run.tally, "decisions": run.decisions}
    row["processor_seconds"] = time.process_time() - begun
    row["one_step_gap"], row["one_step_states"] = one_step_gap(run)
    if run.tally:
        row["milliseconds_p50"], row["milliseconds_p99"] = (
            1e3 * np.quantile(policy.ledger.seconds, [0.5, 0.99])
        ).tolist()
    return row


def with_age_bound(spec):
    """Return the policy with an age bound of 50 steps; None where it has no such option."""
    if spec.startswith("max-min"):
        return None
    return spec + ("," if ":" in spec else ":") + "age_bound=50"


def short(spec):
    """Return a name that fits into a table."""
    name, _, rest = spec.partition(":")
    options = dict(part.split("=", 1) for part in rest.split(",")) if rest else {}
    words = [f"H = {options['horizon']}"] if "horizon" in options else []
    if name == "br-0" and "stage_switch" in options:
        words.append("stage 1 alone")
    if name == "br-h":
        words.append("tuned")
    if name == "bf-io" and "gamma" in options:
        words.append(f"γ = {options['gamma']}")
    if options.get("new") == "forecast":
        words.append("ends of waiting known")
    return ", ".join([f"`{name}`", *words])


def markdown(table, groups):
    """Return the table, and what was left undecided."""
    names = " | ".join(label for _, label, _, _ in FIGURES)
    lines = [f"| forecast | rule | {names} | bounded: tokens / s, whole run | imbalance |"]
    lines.append("|---" * (len(FIGURES) + 4) + "|")
    undecided = ["| forecast | rule | decisions | proved | left open | P50 ms | P99 ms |", "|---" * 7 + "|"]
    written = []
    for group, spec in groups:
        row = table.get(spec)
        if row is None:
            continue
        shown = short(spec)
        plain = spec.replace(f",{EFFORT}", "").replace(f":{EFFORT}", "")
        if plain.startswith("br-h"):
            written.append(plain)
        cells = [f"{row[key] * factor:,.{digits}f}" for key, _, factor, digits in FIGURES]
        bound = table.get(with_age_bound(spec) or "")
        cells += [f"{bound[key]:,.0f}" for key in BOUNDED] if bound else ["–", "–"]
        lines.append(f"| {group} | {shown} | " + " | ".join(cells) + " |")
        if row["tally"]:
            count = sum(row["tally"].values())
            undecided.append(
                f"| {group} | {shown} | {count:,} | {row['tally'].get('proved', 0) / count:.1%} "
                f"| {row['tally'].get('open', 0):,} | {row['milliseconds_p50']:.1f} | {row['milliseconds_p99']:.0f} |"
            )
    return "\n".join([*lines, "", *undecided, "", "```text", *written, "```"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="rows of your own instead")
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--count", type=int, default=100_000, help="requests")
    parser.add_argument("--draw", type=int, default=42, help="seed of the draw; 42 is that of Table 1")
    parser.add_argument("--again", action="store_true", help="do rows again that are there already")
    parser.add_argument("--only", choices=("plain", "bounded"), help="rows without, or with an age bound alone")
    parser.add_argument("--out", type=Path, default=Path("lookahead-table"), help="files begin with this")
    options = parser.parse_args()
    whole = read_trace(options.shared / "data" / "burstgpt_8000.json")
    trace, training = whole.resampled(options.count, options.draw), whole.resampled(20_000, options.draw + 1_000_003)
    groups = [("own", spec) for spec in options.policies] or list(rows())
    file = options.out.with_name(options.out.name + ".json")
    table = json.loads(file.read_text()) if file.exists() and not options.again else {}
    wanted = [] if options.only == "bounded" else [spec for _, spec in groups]
    if options.only != "plain":
        wanted += [bounded for _, spec in groups if (bounded := with_age_bound(spec))]
    for spec in wanted:
        make_policy(spec)  # a wrong name costs nothing
    try:
        with ProgressBar() as bar:
            for spec in wanted:
                if spec not in table:
                    bar.begin(spec[:60], len(trace))
                    table[spec] = measured(spec, trace, training, bar)
                    write_file(file, json.dumps(table, indent=2) + "\n")
    except KeyboardInterrupt:
        print("interrupted: rows that ended are kept")
    text = markdown(table, groups)
    print(text)
    write_file(options.out.with_name(options.out.name + ".md"), text)


if __name__ == "__main__":
    main()
