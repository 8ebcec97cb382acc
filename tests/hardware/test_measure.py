"""The whole measurement on a backend whose law is known: what is found, kept, refused, and written on the card."""

import tomllib

import numpy as np
import pytest
from hardware.fake_backend import FakeBackend, Heard, linear

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import DeviceCard
from lbopt.hardware.measure import MeasureConfig, card_text, make_backend, make_card, measure
from lbopt.hardware.measure.attention import SHAPES, Point, grid, load_vectors, split
from lbopt.hardware.measure.timing import median, take_samples
from lbopt.report.measure_report import measure_csv, measure_tables


def run(backend, **options):
    heard = Heard()
    found = measure(MeasureConfig(**({"budget": 20.0} | options)), backend, heard, now=backend.now)
    return found, heard


def test_a_linear_device_gives_its_constants_back():
    found, _ = run(FakeBackend(linear, noise=0.01))
    one = found.attention[0]
    assert one.linearity.verdict == "linear"
    assert one.law.per_token.low <= 5e-9 <= one.law.per_token.high
    assert one.law.per_token.value == pytest.approx(5e-9, rel=0.01)
    assert one.law.calls[1].value == pytest.approx(32e-6, rel=0.05)
    assert one.bandwidth().value == pytest.approx(576 * 2 / 5e-9, rel=0.01)
    assert one.read.value == pytest.approx(1e12, rel=0.01)
    assert {one.shape.name for one in found.attention} == {"deepseek-v3", "qwen3-30b-a3b"}


def test_the_barrier_follows_the_heaviest_load_and_not_the_mean():
    found, _ = run(FakeBackend(linear, noise=0.005), attention=("deepseek-v3",))
    steps = {step.vector.name: step for step in found.attention[0].steps}
    assert list(steps) == ["balanced", "ramp", "two groups", "long tail", "one heavy"]
    for step in steps.values():
        assert abs(step.error_of_max) < 0.03
    assert abs(steps["balanced"].error_of_other) < 0.03
    assert steps["one heavy"].error_of_other < -0.4
    assert steps["balanced"].noise > 0  # of eight equal workers one is always late


def test_a_bent_device_is_called_bent():
    found, _ = run(FakeBackend(lambda batch, tokens: linear(batch, tokens) + 2e-13 * tokens**2, noise=0.01))
    assert [one.linearity.verdict for one in found.attention] == ["not linear"] * 2


def test_drift_is_reported_and_does_not_become_a_slope():
    """The machine slows by 30 % while the grid is timed: random order keeps the law's shape."""
    backend = FakeBackend(linear, noise=0.005, drift=0.05)
    found, _ = run(backend, attention=("qwen3-30b-a3b",), read=False, barrier=False, budget=6.0, target=1e-4)
    one = found.attention[0]
    drift = one.samples.drift()
    assert drift.low <= 0.26 <= drift.high or drift.value == pytest.approx(0.26, abs=0.03)
    assert one.linearity.verdict == "linear"
    still, _ = run(FakeBackend(linear, noise=0.005), attention=("qwen3-30b-a3b",), read=False, barrier=False)
    assert abs(still.attention[0].samples.drift().value) < 0.01


def test_a_bend_on_a_restless_machine_is_not_believed():
    """Somebody else comes half-way and slows long calls more than short ones; the device itself is linear."""
    options = {"attention": ("deepseek-v3",), "read": False, "barrier": False, "target": 1e-4, "budget": 6.0}

    def shared(batch, tokens):
        return linear(batch, tokens) * (1.0 if backend.time < 2.5 else 1.5 + 0.5 * tokens / 2**21)

    backend = FakeBackend(shared, noise=0.01)
    found, _ = run(backend, **options)
    assert found.attention[0].samples.unrest() > 0.2
    assert found.attention[0].linearity.verdict != "not linear"
    assert "the machine's pace varied by" in found.notes[0]
    alone = FakeBackend(linear, noise=0.01)
    found, _ = run(alone, **options)
    assert found.attention[0].samples.unrest() < 0.02
    assert found.notes == []


def test_the_budget_is_kept_and_quiet_devices_end_early():
    noisy = FakeBackend(linear, noise=0.5)
    run(noisy, budget=5.0, target=1e-3)
    assert noisy.time == pytest.approx(5.0, abs=0.1)
    quiet = FakeBackend(linear)
    _, heard = run(quiet, budget=50.0)
    assert quiet.time < 15
    assert [stage[1] == stage[2] for stage in heard.stages] == [True] * 2


def test_every_call_reads_other_memory_and_rounds_are_shuffled():
    backend = FakeBackend(linear)
    found, _ = run(backend, attention=("deepseek-v3",), barrier=False, read=False)
    for before, after in zip(backend.seen, backend.seen[1:], strict=False):
        if before[0] == after[0] and 3 * sum(after[0]) < 2**28 // 1152:
            assert before[1] != after[1]
    orders = {}
    for sample in found.attention[0].samples.taken:
        orders.setdefault(sample.round, []).append(sample.work)
    assert len({tuple(order) for order in orders.values()}) == len(orders) >= 5
    assert all(sorted(order) == list(range(18)) for order in orders.values())


@pytest.mark.parametrize("calls", [0, 5, 60, 3000])
def test_ctrl_c_keeps_what_was_measured(calls):
    found, _ = run(FakeBackend(linear, noise=0.01, interrupt_after=calls), read=False)
    assert found.interrupted
    assert sum(len(one.samples.taken) for one in found.attention) <= calls
    assert len(measure_csv(found)) == sum(len(one.samples.taken) for one in found.attention)
    measure_tables(found)
    if calls == 3000:
        assert found.attention[0].law is not None
        assert make_card(found).account["interrupted"] is True


def test_a_budget_too_small_for_one_round_is_refused_but_never_costs_what_is_there():
    with pytest.raises(InputError, match=r"deepseek-v3 ended when .* of 58 places had been timed once"):
        run(FakeBackend(linear), budget=1e-4, read=False)
    uneven = FakeBackend(lambda batch, tokens: linear(batch, tokens) if uneven.time < 0.6 else 9.0)
    found, _ = run(uneven, budget=10.0, target=1e-9, read=False)
    assert [one.shape.name for one in found.attention] == ["deepseek-v3"]
    assert "qwen3-30b-a3b: the budget is too small" in found.notes[0]


def test_memory_is_refused_in_advance():
    backend = FakeBackend(linear, free=10**9)
    with pytest.raises(InputError, match=r"the KV of 1,000,000 tokens of deepseek-v3 in bfloat16 .* need 1\.27 GB"):
        run(backend, most=10**6)
    assert backend.calls == 0
    with pytest.raises(InputError, match=r"of deepseek-v3 and a plain read need 1\.86 GB, .* --no-read"):
        run(FakeBackend(linear, free=15 * 10**8), most=10**6)


def test_the_card_reads_back_and_says_how_it_came_about():
    found, _ = run(FakeBackend(linear, noise=0.01, read=1e12))
    card = make_card(found)
    again = DeviceCard.from_dict(tomllib.loads(card_text(card)), "card.toml")
    assert again == card
    assert (card.name, card.origin) == ("fake-1", "measurement")
    # bandwidth times efficiency is what attention reached: 2048 B per token of the grouped attention at 5 ns
    product = card["memory_bandwidth"].value * card["memory_efficiency"].value
    assert product == pytest.approx(2048 / 5e-9, rel=0.01)
    assert card["attention_call"].low <= 32e-6 <= card["attention_call"].high
    assert "step_overhead" not in card.constants
    for quantity in card.constants.values():
        assert quantity.basis == "measured"
        assert quantity.low <= quantity.value <= quantity.high
    account = card.account
    assert account["machine"] == {"device": "Fake 1", "processor": "none"}
    grouped = account["attention"]["qwen3-30b-a3b"]
    assert grouped["linearity"]["verdict"] == "linear"
    assert len(grouped["relative_residuals"]) == len(grouped["tokens"]) == 18
    assert set(grouped["barrier"]["steps"]) == {"balanced", "ramp", "two groups", "long tail", "one heavy"}


def test_without_a_plain_read_the_bandwidth_is_attentions_own():
    card = make_card(run(FakeBackend(linear, noise=0.01), read=False, barrier=False)[0], "mine")
    assert card.name == "mine"
    assert card["memory_bandwidth"].value == pytest.approx(2048 / 5e-9, rel=0.01)
    assert (card["memory_efficiency"].value, card["memory_efficiency"].basis) == (1.0, "derived")


def test_no_slope_no_card():
    found, _ = run(FakeBackend(lambda batch, tokens: 1e-3, noise=0.1), barrier=False)
    with pytest.raises(InputError, match="the time per token cannot be distinguished from zero"):
        make_card(found)
    assert measure_tables(found)


def test_tables_and_rows():
    found, _ = run(FakeBackend(linear, noise=0.01))
    titles = [table.title for table in measure_tables(found)]
    assert titles[0] == "Attention in decode, one layer: fake on cuda, bfloat16"
    assert len(titles) == 4
    for table in measure_tables(found):
        assert all(len(row) == len(table.headers) for row in table.rows)
    rows = measure_csv(found)
    assert {row["attention"] for row in rows} == {"deepseek-v3", "qwen3-30b-a3b"}
    assert {row["what"] for row in rows} == {"grid", "barrier", "plain read"}
    assert {row["vector"] for row in rows} > {None, "balanced", "one heavy"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attention": ("deepseek-v2",)}, "unknown attention 'deepseek-v2': did you mean deepseek-v3"),
        ({"attention": ()}, "attention is empty"),
        ({"batches": (0,)}, "batch is 0; expected at least one request"),
        ({"batches": (2, 2)}, "batches is 2, 2; expected different values"),
        ({"least": -5}, "least is -5; expected a positive number"),
        ({"most": 0}, "most is 0; expected a positive number"),
        ({"points": 3}, "points is 3; fewer than 6"),
        ({"workers": 1}, "workers is 1; a barrier needs at least 2"),
        ({"points": 10**9}, "points is 1,000,000,000; every one is timed in every round, so at most 200"),
        ({"workers": 10**9}, "workers is 1,000,000,000; every one .* at most 1,024"),
        ({"budget": 0.0}, "budget is 0.0; expected seconds above 0"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"target": 2.0}, "target is 2.0; expected a relative error"),
        ({"seed": -1}, "seed is -1"),
        ({"least": 100, "most": 300}, "tokens from 100 to 300 tell no slope"),
        ({"least": 4, "most": 4000}, "batch 8 has more requests than the least number of tokens, 4"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        run(FakeBackend(linear), **options)


def test_grids_and_loads():
    points = grid(1000, 64000, 7, (1, 3))
    whole = [1000, 2000, 4000, 8000, 16000, 15 * 2048, 31 * 2048]  # long contexts are whole blocks
    assert [point.tokens for point in points if point.batch == 1] == whole
    threes = [point for point in points if point.batch == 3]
    assert all(abs(p.tokens - 1000 * 2**k) <= 2 for k, p in enumerate(threes[:-1]))
    assert threes[-1] == Point(3, 10 * 2048)
    assert split(10, 4) == (3, 3, 2, 2)
    for workers in (2, 3, 8, 64):
        for vector in load_vectors(workers, 10_000):
            assert len(vector.loads) == workers
            assert np.mean(vector.loads) == pytest.approx(10_000, rel=0.05)
            assert all(load < 8 * 2048 or load % 2048 == 0 for load in vector.loads)
            assert min(vector.loads) >= 1 and max(vector.loads) <= 45_000


def test_latent_and_grouped_attention_have_the_published_sizes():
    assert SHAPES["deepseek-v3"].values_per_token == 576
    assert 61 * SHAPES["deepseek-v3"].flops_per_token == pytest.approx(16.99e6, rel=1e-3)
    assert SHAPES["qwen3-30b-a3b"].values_per_token == 2 * 4 * 128
    assert SHAPES["llama-3-70b"].values_per_token == 2 * 8 * 128


def test_unknown_backends():
    with pytest.raises(InputError, match="unknown backend 'nunpy': did you mean numpy"):
        make_backend("nunpy")


def test_short_calls_are_repeated_within_a_sample():
    backend = FakeBackend(lambda batch, tokens: 1e-5)
    decode = backend.decode(SHAPES["deepseek-v3"], 10**6)
    samples = take_samples(
        "x",
        [lambda _: decode((8,), 0)],
        backend,
        seconds=1,
        target=0.01,
        rng=np.random.default_rng(0),
        now=backend.now,
        progress=Heard(),
    )
    assert samples.taken[0].calls == 200
    assert samples.taken[0].seconds == pytest.approx(1e-5)


def test_a_median_has_an_interval():
    draw = np.random.default_rng(1).lognormal(size=101)
    found = median(draw, np.random.default_rng(2))
    assert found.low < np.median(draw) == found.value < found.high
    alone = median(np.array([3.0]), np.random.default_rng(0))
    assert alone.low == alone.value == alone.high == 3.0
