"""Results as data frames, pictures and HTML."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import lbopt
from lbopt import InputError, Result, StepProblem, Trace
from lbopt.report.views import view_of

PROBLEM = StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])


@pytest.fixture(scope="module")
def result():
    return lbopt.solve(PROBLEM, solver="brute-force")


@pytest.fixture(scope="module")
def run():
    return lbopt.simulate(policy="jsq", requests=200, workers=4, slots=8)


@pytest.fixture(scope="module")
def outcome():
    return lbopt.gap(
        requests=200, workers=4, slots=8, states=2, policies=["jsq", "fcfs"], behaviours=["jsq"], solver="brute-force"
    )


@pytest.fixture(scope="module")
def results(result, run, outcome):
    return {"Result": result, "Run": run, "Trace": run.trace, "GapOutcome": outcome}


NAMES = ["Result", "Run", "Trace", "GapOutcome"]


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_one_line(results, name):
    """`repr` is one line of at most 200 characters without addresses or arrays."""
    text = repr(results[name])
    assert text.startswith(f"<{name} ")
    assert "\n" not in text and " at 0x" not in text and "array(" not in text
    assert len(text) <= 200


@pytest.mark.parametrize("name", NAMES)
def test_html_holds_the_line_and_a_table(results, name):
    """A notebook shows the line of `repr`, escaped, and a table."""
    text = results[name]._repr_html_()
    assert "<table" in text and f"&lt;{name}" in text


@pytest.mark.parametrize("name", NAMES)
def test_plot_draws_on_the_axes_that_it_is_given(results, name):
    """What is drawn lies on these axes, and they are returned; without axes there is a new figure."""
    axes = Figure().add_subplot()
    assert results[name].plot(axes) is axes
    assert axes.has_data() and axes.get_xlabel()
    from matplotlib import pyplot

    new = results[name].plot()
    assert new.figure is not axes.figure
    pyplot.close(new.figure)


def test_tables_of_a_result(result):
    """Placements and workers add up to the loads after the placement, and these to the imbalance."""
    placements, workers = result.to_frame(), result.to_frame("workers")
    assert list(placements["tokens"]) == [310, 260, 150, 120, 80]
    assert placements["worker"].isna().sum() == 1
    assert (~placements["admitted"]).sum() == 1
    placed = placements[placements["admitted"]].groupby("worker")["tokens"].sum()
    for row in workers.itertuples():
        assert row.load_after - row.load_before == placed.get(row.worker, 0)
    loads = workers["load_after"]
    assert 3 * loads.max() - loads.sum() == result.objective
    assert (result.loads[:, 0] == loads).all()
    assert "proved" in result.bound_origin


def test_a_result_from_a_file_says_what_it_lacks(result):
    """The problem is neither written nor compared; what needs it says so."""
    again = Result.from_json(result.to_json())
    assert again == result and again.problem is None
    for call in (lambda: again.loads, again.to_frame, again.plot):
        with pytest.raises(InputError, match="read from a file"):
            call()


def test_tables_of_a_run(run):
    """Metrics are those of `metrics()`; the other tables have a row per request and per step."""
    metrics = run.to_frame().set_index("metric")
    assert metrics.loc["imbalance_tokens", "value"] == run.metrics().imbalance_tokens
    assert metrics.loc["imbalance_tokens", "low"] <= metrics.loc["imbalance_tokens", "value"]
    assert len(run.to_frame("requests")) == 200
    assert len(run.to_frame("steps")) == run.num_steps
    assert run.to_frame("decisions").empty


def test_the_course_of_a_run_averages_to_its_imbalance(run):
    """The line in the picture is the imbalance over the window of the metrics."""
    axes = run.plot(Figure().add_subplot())
    drawn = axes.lines[0].get_ydata()
    window = run.window
    sizes = [part.size for part in np.array_split(np.arange(window.first, window.last + 1), 400) if part.size]
    assert np.average(drawn, weights=sizes) == pytest.approx(run.metrics().imbalance_tokens)


def test_tables_of_a_trace(run):
    """A row per request; arrivals where the trace has them."""
    assert list(run.trace.to_frame().columns[:2]) == ["prompt", "output"]
    bare = Trace(prompt=[3, 4], output=[1, 2], name="bare")
    assert list(bare.to_frame().columns) == ["prompt", "output"]
    assert repr(bare) == "<Trace bare: 2 requests, mean prompt 4 and output 2 tokens, no arrival times>"


def test_tables_of_a_gap_study(outcome):
    """One row per policy, best first; long runs and differences beside them."""
    table = outcome.to_frame()
    assert set(table["policy"]) == {"jsq", "fcfs", "jsq (as run)"}
    assert table["gap_mean_tokens"].is_monotonic_increasing
    assert len(outcome.to_frame("long_runs")) == 2
    assert set(outcome.to_frame("differences")["policy"]) == {"jsq", "fcfs"}
    with pytest.raises(InputError, match="unknown table 'gaps': did you mean gap"):
        outcome.to_frame("gaps")


@pytest.fixture(scope="module")
def studies():
    """One small outcome of most studies."""
    fleet = {"requests": 200, "workers": 4, "slots": 8}
    return {
        "batches": lbopt.study("batches", requests=100, states=2, rules=["pbaa"], time_limit=1.0),
        "check": lbopt.check("lemma-1"),
        "cost": lbopt.cost(mean_load=85_000, imbalance=200_000, workers=8, running=35, devices=["h800"], draws=100),
        "misprediction": lbopt.study(
            "misprediction", **fleet, states=2, seeds=1, noise=[1.0], bias=[2.0], shuffled=[0.5], time_limit=1.0
        ),
        "placement": lbopt.study(
            "placement", ranks=[4], kinds=["uniform"], worlds=1, clusters=2, experts=16, top_k=2, layers=1, requests=50
        ),
        "prediction": lbopt.study("prediction", requests=400, horizon=20, predictors=["survival"]),
        "prefill": lbopt.study("prefill", requests=600),
        "scaling": lbopt.study("scaling", workers=[4], slots=[64, 256], policies=["fcfs"]),
    }


@pytest.mark.jit
@pytest.mark.parametrize(
    "name", ["batches", "check", "cost", "misprediction", "placement", "prediction", "prefill", "scaling"]
)
def test_every_outcome_shows_itself(studies, name):
    """One line, every table with columns, HTML, and a picture with labels on the axes that it is given."""
    outcome = studies[name]
    text = repr(outcome)
    assert text.startswith(f"<{type(outcome).__name__} ") and "\n" not in text and len(text) < 200
    view = view_of(type(outcome).__name__)
    assert all(len(outcome.to_frame(table).columns) for table in view.tables)
    assert "<table" in outcome._repr_html_()
    axes = Figure().add_subplot()
    assert outcome.plot(axes) is axes
    assert axes.has_data() and axes.get_xlabel()


def test_every_outcome_has_a_view():
    """The class of every outcome in the studies' room is found by its name, and its report says how it is shown."""
    import ast
    from pathlib import Path

    import lbopt.studies

    declared = {
        node.name
        for path in Path(lbopt.studies.__path__[0]).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & {"Displayed", "Outcome"}
    } - {"Outcome"}
    assert len(declared) >= 13
    for name in declared:
        assert view_of(name).tables
    with pytest.raises(InputError, match="unknown result 'Resullt': did you mean Result"):
        view_of("Resullt")
