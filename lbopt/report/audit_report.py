"""How an audit is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.numbers import fixed, milliseconds, share, tokens, whole
from lbopt.report.contents import Made
from lbopt.report.figures import COLOURS, GREY, legend_below, new_figure, of_counts, unit_of_axis
from lbopt.report.page import Picture, files_of, render_page
from lbopt.report.study_report import StudyReport
from lbopt.studies.audit import AuditOfGroups, AuditOutcome
from lbopt.studies.audit.rules import RuleRun
from lbopt.table import Table

_percent = fixed(1, 100, " %")


_INTERVALS = ("change_interval", "wait_change_interval")
_ENDS = (0, "low"), (1, "high")


def rule_rows(outcome: AuditOutcome | AuditOfGroups) -> list[dict[str, Any]]:
    """Return one row a rule, the log itself first, of each group; what rules.csv holds."""
    if isinstance(outcome, AuditOfGroups):
        return [{"group": name} | row for name, part in outcome.groups.items() for row in rule_rows(part)]
    return [
        {name: value for name, value in vars(run).items() if name not in (*_INTERVALS, "spread")}
        | {f"{name.removesuffix('interval')}{end}": vars(run)[name][k] for name in _INTERVALS for k, end in _ENDS}
        for run in outcome.runs
    ]


def audit_tables(outcome: AuditOutcome | AuditOfGroups) -> list[Table]:
    """Return the tables in the order in which a reader needs them."""
    if isinstance(outcome, AuditOfGroups):
        named = [(name, table) for name, part in outcome.groups.items() for table in audit_tables(part)]
        return [_groups(outcome), *(replace(table, title=f"{table.title} ({name})") for name, table in named)]
    tables = [_happened(outcome)]
    if outcome.runs:
        tables.insert(0, _rules(outcome))
    if outcome.gaps is not None and outcome.gaps.proved:
        tables.append(_gaps(outcome))
    tables.append(_misfit(outcome))
    tables.append(_columns(outcome))
    return tables


def _groups(outcome: AuditOfGroups) -> Table:
    def row(name: str, part: AuditOutcome) -> tuple[str, ...]:
        best, workers = part.recommendation, part.happened.workers
        return (
            name,
            "–" if best.change is None else _signed(best.change),
            f"{best.workers or workers} of {workers}",
            _money(best.per_month),
            f"{part.happened.finished:,}",
            best.rule or {"stay": "stay", "withheld": "no recommendation"}[best.verdict],
        )

    best = outcome.recommendation
    finished = sum(part.happened.finished for part in outcome.groups.values())
    workers = sum(part.happened.workers for part in outcome.groups.values())
    together = ("together", "", f"{best.workers or workers} of {workers}", _money(best.per_month), f"{finished:,}", "")
    return Table(
        title="Groups of workers",
        caption=(
            "Workers of a group meet at one barrier: their steps begin at the same moments. Requests do not move "
            "between groups, and no group waits for another."
        ),
        headers=("group", "change", "workers needed", f"{outcome.config.currency} a month", "requests", "rule"),
        rows=[*(row(name, part) for name, part in outcome.groups.items()), together],
    )


def _rules(outcome: AuditOutcome) -> Table:
    def row(run: RuleRun) -> tuple[str, ...]:
        low, high = run.change_interval
        compared = run is not outcome.runs[0]
        return (
            run.rule + " ←" * (run.rule == outcome.recommendation.rule),
            _signed(run.change) if compared else "–",
            f"{_signed(low)} to {_signed(high)}" if compared else "–",
            run.admission or "–",
            milliseconds(run.tpot_mean),
            milliseconds(run.tpot_p95),
            fixed(1, 1e3)(run.wait_mean),
            fixed(1, 1e3)(run.wait_p99),
            share(run.idle_share),
            share(run.share_of_ceiling),
        )

    first, *others = outcome.runs
    return Table(
        title="The same requests under other rules",
        caption=(
            "Time per token (TPOT) and waits over the requests that ran to their end; the change is that of the mean "
            "TPOT against the log, with its 95 % interval (blocks of time drawn anew, and what chance does between "
            "runs whose requests come a moment later). Rules that bind on arrival are immediate; pooled ones need a "
            "queue at the router. Idle: share of the fleet's work that waits at the barrier. Of the ceiling: least "
            "seconds of all steps under any rule over the rule's; slots that are empty for want of requests count "
            "against it. ← is the rule that is recommended."
        ),
        headers=(
            *("rule", "change", "95 % interval", "binds", "TPOT mean (ms)", "TPOT P95 (ms)"),
            *("wait mean (ms)", "wait P99 (ms)", "idle", "of the ceiling"),
        ),
        rows=[row(run) for run in (first, *sorted(others, key=lambda run: run.tpot_mean))],
    )


def _happened(outcome: AuditOutcome) -> Table:
    seen, law = outcome.happened, outcome.law
    fixed_low, fixed_high = law.fixed_interval
    low, high = law.per_token_interval
    ends = f"{milliseconds(fixed_low)} to {milliseconds(fixed_high)}", f"{low * 1e6:.4g} to {high * 1e6:.4g}"
    each = "for each 1,000 tokens on the heaviest worker"
    fitted = f"{milliseconds(law.fixed)} ms ({ends[0]}) + {law.per_token * 1e6:.4g} ms ({ends[1]}) {each}"
    if not law.is_identified:
        fitted = f"{ends[0]} ms + {ends[1]} ms {each}: the log does not tell the two parts apart"
    rows = [
        ("requests that ran to their end", f"{seen.finished:,} of {seen.attempts:,} attempts"),
        ("workers × slots", f"{seen.workers} × {seen.slots}"),
        ("time in the log", f"{whole(seen.span_seconds)} s, decoding in {_percent(seen.busy_share)} of it"),
        ("steps", f"{seen.steps:,} of {milliseconds(seen.mean_step_seconds)} ms in the mean"),
        ("occupancy of slots", _percent(seen.occupancy)),
        ("load of a worker, mean", f"{tokens(seen.mean_load)} tokens"),
        ("imbalance G · max − sum, mean", f"{tokens(seen.imbalance)} tokens"),
        ("idle at the barrier, by tokens", _percent(seen.idle_share)),
        ("idle at the barrier, share of the fleet's time", _percent(seen.idle_time_share)),
        ("idle at the barrier, per step", f"{milliseconds(seen.idle_seconds_per_step)} ms"),
        ("time per token, mean · P50 · P95 · P99", _of(seen.tpot_mean, seen.tpot_p50, seen.tpot_p95, seen.tpot_p99)),
        ("wait, mean · P99 · longest", _of(seen.wait_mean, seen.wait_p99, seen.wait_max)),
        ("output", f"{whole(seen.tokens_per_second)} tokens a second of decoding"),
        ("time of a step", fitted),
    ]
    return Table(
        title="What happened",
        caption=(
            f"From the log alone. The time of a step is fitted to {law.observations:,} {_WHAT[law.by]}; intervals are "
            f"95 %, blocks of time drawn anew. Steps vary by {law.noise:.0%} at the same load; the condition number of "
            f"the fit is {law.condition:.1f} (1 is ideal, tens and more do not tell its two parts apart)."
        ),
        headers=("quantity", "value"),
        rows=rows,
    )


_WHAT = {"steps": "stretches between events, in whole steps", "requests": "requests"}


def _misfit(outcome: AuditOutcome) -> Table:
    off = outcome.happened.misfit
    rows = [("mean", _signed(off.mean)), ("95 % quantile", _signed(off.p95))]
    rows += [(f"window {k} of {len(off.by_window)}", _signed(value)) for k, value in enumerate(off.by_window, start=1)]
    worst = sorted(enumerate(off.by_worker), key=lambda one: -abs(one[1]))[:5]
    rows += [(f"worker {outcome.workers[g]}", _signed(value)) for g, value in worst]
    return Table(
        title="Does the law give the log's own times?",
        caption=(
            "Time per token by the law over that of the log, less 1: over all requests, over windows of equally many "
            "requests, and for the five workers that are furthest off."
        ),
        headers=("where", "law against log"),
        rows=rows,
    )


def _columns(outcome: AuditOutcome) -> Table:
    rows = [
        (one.quantity, one.column, one.unit or "–", "given" if one.given else "recognised") for one in outcome.columns
    ]
    left = [f"{count:,} rows left out ({why})" for why, count in outcome.left_out.items()]
    left += [f"{count:,} attempts {ending}" for ending, count in outcome.endings.items()]
    return Table(
        title="How the log was read",
        caption="; ".join(left) + ". A column that was recognised wrongly is named with --column QUANTITY=NAME.",
        headers=("quantity", "column", "unit", "how"),
        rows=rows,
    )


def _gaps(outcome: AuditOutcome) -> Table:
    gaps = outcome.gaps
    assert gaps is not None
    return Table(
        title="Single decisions of the log beside the best ones",
        caption=(
            "The explanation, not the headline: a rule pays or costs over a run, where the requests that it places "
            "together stay together. The best placement of the same requests is proved optimal."
        ),
        headers=("quantity", "value"),
        rows=[
            ("decisions sampled, compared", f"{gaps.sampled}, {gaps.proved}"),
            ("as good as the best", f"{gaps.best} of {gaps.proved}"),
            ("imbalance after it, as logged", f"{tokens(gaps.logged)} tokens"),
            ("imbalance after it, at best", f"{tokens(gaps.optimum)} tokens"),
            ("saved in the step after it", f"{gaps.seconds * 1e6:,.1f} µs"),
        ],
    )


def _of(*values: float) -> str:
    return " · ".join(map(milliseconds, values)) + " ms"


def _signed(value: float) -> str:
    text = _percent(value)
    return f"+{text}" if value > 0 and not text.startswith("0.0 ") else text


def _money(value: float | None) -> str:
    return "–" if value is None else whole(value)


_WIDTH = 5.2


def draw_rules(outcome: AuditOutcome | AuditOfGroups, axes: Axes) -> None:
    """Draw each rule's change of the mean time per token with its interval, best on top, group by group."""
    labelled = [
        (f"{name}: {run.rule}" if name else run.rule, run)
        for name, part in reversed(outcome.parts.items())
        for run in sorted(part.runs[1:], key=lambda run: -run.tpot_mean)
    ]
    for place, (_, run) in enumerate(labelled):
        low, high = run.change_interval
        colour = COLOURS[0] if run.admission == "immediate" else COLOURS[1]
        marker = "s" if run.admission == "immediate" else "o"
        axes.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2)
        axes.plot([100 * run.change], [place], marker=marker, color=colour, markersize=6)
    axes.axvline(0.0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(labelled)), [label for label, _ in labelled])
    axes.set_xlabel("change of the mean time per token (%)")
    axes.plot([], [], marker="s", color=COLOURS[0], label="binds on arrival")
    axes.plot([], [], marker="o", color=COLOURS[1], label="needs a queue")
    legend_below(axes)


def rules_figure(outcome: AuditOutcome) -> Figure | None:
    """Return the picture of the rules; None where none was run."""
    if len(outcome.runs) < 2:
        return None
    figure, axes = new_figure(_WIDTH, height=0.32 * len(outcome.runs) + 1.4)
    draw_rules(outcome, axes)
    return figure


def loads_figure(outcome: AuditOutcome) -> Figure | None:
    """Return the picture of the heaviest and the mean load over time; None where the log is too short for one."""
    if len(outcome.over_time) < 2:
        return None
    figure, axes = new_figure(_WIDTH, height=3.2)
    when = [point.seconds for point in outcome.over_time]
    unit, factor = unit_of_axis(when[-1])
    when = [value / factor for value in when]
    heaviest = [point.heaviest for point in outcome.over_time]
    mean = [point.mean for point in outcome.over_time]
    axes.fill_between(when, mean, heaviest, color=COLOURS[1], alpha=0.2, label="waits at the barrier")
    axes.plot(when, heaviest, color=COLOURS[1], label="heaviest worker")
    axes.plot(when, mean, color=COLOURS[0], label="mean worker")
    of_counts(axes)
    axes.set_xlabel(f"time in the log ({unit})")
    axes.set_ylabel("load (tokens)")
    legend_below(axes)
    return figure


def audit_pictures(outcome: AuditOutcome) -> list[Picture]:
    """Draw every picture that the outcome has data for."""
    pictures = []
    figure = rules_figure(outcome)
    if figure is not None:
        caption = "Change of the mean time per token against the log, with 95 % intervals; left of the line is faster."
        pictures.append(Picture.of(figure, "rules", "What other rules would have done", caption))
    figure = loads_figure(outcome)
    if figure is not None:
        caption = "Each step takes as long as its heaviest worker needs; what lies between the lines waits for it."
        pictures.append(Picture.of(figure, "loads", "The fleet over the logged time", caption))
    return pictures


def render_audit_page(
    outcome: AuditOutcome | AuditOfGroups, pictures: list[list[Picture]], provenance: dict[str, Any], command: str
) -> str:
    """Return the page as HTML, with a section for each group of workers.

    Parameters
    ----------
    pictures
        Those of each group.
    provenance
        Versions, processor, time and command.
    """
    grouped = isinstance(outcome, AuditOfGroups)
    sections = [
        {
            "title": f"{name}: {headline(part)}" if name else "",
            "recommendation": str(part.recommendation),
            "findings": [finding.sentence for finding in part.findings],
            "tables": audit_tables(part),
            "figures": figures,
            "notes": part.notes,
        }
        for (name, part), figures in zip(outcome.parts.items(), pictures, strict=True)
    ]
    return render_page(
        "audit_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        headline=headline(outcome),
        interrupted=outcome.interrupted,
        together={"lead": str(outcome.recommendation), "tables": audit_tables(outcome)[:1], "notes": outcome.notes}
        if grouped
        else None,
        sections=sections,
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def headline(outcome: AuditOutcome | AuditOfGroups) -> str:
    """Return the answer in one line."""
    verdict, best = outcome.recommendation.verdict, outcome.recommendation
    if isinstance(outcome, AuditOfGroups) and verdict == "switch":
        total = sum(part.happened.workers for part in outcome.groups.values())
        return f"{len(outcome.groups)} groups of workers: {best.workers} of {total} workers are enough"
    if verdict == "switch" and best.change is not None:
        return f"Switch to {best.rule}: {-best.change:.1%} less time per token".replace("%", " %")
    return "Stay with the present rule" if verdict == "stay" else "No recommendation"


def audit_files(outcome: AuditOutcome | AuditOfGroups, made: Made) -> dict[str, Any]:
    """Return report.html, audit.json and the pictures."""
    pictures = [audit_pictures(part) for part in outcome.parts.values()]
    page = render_audit_page(outcome, pictures, made.how, made.command)
    named = [
        replace(picture, file=picture.file.replace(".png", f"-{k}.png")) if len(pictures) > 1 else picture
        for k, some in enumerate(pictures, start=1)
        for picture in some
    ]
    return {"audit.json": outcome.to_dict(), **files_of(named), "report.html": page}


def lead(outcome: AuditOutcome | AuditOfGroups) -> list[str]:
    """Return the recommendation, and what the model does not have."""
    named = [(f"{name}: " if name else "", part) for name, part in outcome.parts.items()]
    return [
        *(f"{name}{finding.sentence}." for name, part in named for finding in part.findings),
        f"{headline(outcome)}.",
        str(outcome.recommendation),
    ]


REPORT = StudyReport(
    tables=audit_tables,
    csv={"rules": rule_rows},
    others=audit_files,
    draw=draw_rules,
    lead=lead,
    written="page",
    page="report.html",
)
