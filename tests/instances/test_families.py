"""Families: their tables are what the fit gives, their samples look like the source, a seed freezes a sample."""

import hashlib

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances import describe, read_trace
from lbopt.instances.families import NAMES, family_table, generate
from lbopt.instances.families.fitted import EDGES, LEVELS, FamilyTable
from tools.families import fit, main, rank_grid, text_of

FILES = {"azure-like": "azure_llm_2023_conv.csv", "burstgpt-like": "burstgpt_8000.json"}

# Frozen with NumPy 2.4.6 on x86-64; a change here changes every study that names a family and a seed.
GOLDEN = {
    "azure-like": "aabdaa811978736eff2a8bd04ca57d64c1c54a68401aa0c4fc8d02841c29980a",
    "burstgpt-like": "48d5ce3961877fdd463f70936ed685aa8cf0d049d556a68c238147e30769f0a7",
}


@pytest.mark.parametrize("name", NAMES)
def test_table_is_sound(name):
    table = family_table(name)
    assert table.name == name
    for marks in (table.prompt, table.output):
        assert marks.shape == (len(LEVELS),)
        assert (np.diff(marks) >= 0).all()
    assert table.output[0] >= 1
    assert table.grid.shape == (len(EDGES) - 1,) * 2
    assert table.grid.sum() == table.provenance.rows
    for side in (0, 1):  # the margins of the grid are the widths of its bins, to the request
        np.testing.assert_allclose(table.grid.sum(axis=side), np.diff(EDGES) * table.provenance.rows, atol=1)
    assert len(table.provenance.sha256) == 64
    assert text_of(FamilyTable.from_json(text_of(table))) == text_of(table)


@pytest.mark.parametrize("name", NAMES)
def test_table_is_what_the_fit_gives(shared_dir, name):
    path = shared_dir / "data" / FILES[name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == family_table(name).provenance.sha256
    assert text_of(fit(path, name)) == text_of(family_table(name))


@pytest.mark.parametrize("name", NAMES)
def test_sample_looks_like_its_source(shared_dir, name):
    source = describe(read_trace(shared_dir / "data" / FILES[name]))
    sample = describe(generate(name, 200_000, 1))
    for length in ("prompt", "output"):
        want, got = getattr(source, length), getattr(sample, length)
        assert got.mean == pytest.approx(want.mean, rel=0.02)
        assert got.std == pytest.approx(want.std, rel=0.04)
        assert got.percentiles[50] == pytest.approx(want.percentiles[50], rel=0.01)
        assert got.percentiles[99] == pytest.approx(want.percentiles[99], rel=0.05)
        assert want.minimum <= got.minimum
        assert got.maximum <= want.maximum
    assert sample.spearman == pytest.approx(source.spearman, abs=0.02)
    assert sample.pearson == pytest.approx(source.pearson, abs=0.05)
    assert sample.tokens_per_slot == pytest.approx(source.tokens_per_slot, rel=0.03)
    if source.rate is None:
        assert sample.rate is None
    else:
        assert sample.rate == pytest.approx(source.rate, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_seed_freezes_a_sample(name):
    assert generate(name, 1000, 7).digest == GOLDEN[name]
    assert generate(name, 1000, 8).digest != GOLDEN[name]


def test_arrivals():
    assert generate("burstgpt-like", 10, 0).arrival is None
    paced = generate("burstgpt-like", 20_000, 0, rate=2.0)
    gaps = np.diff(paced.arrival)
    assert gaps.mean() == pytest.approx(0.5, rel=0.03)
    assert gaps.std() == pytest.approx(0.5, rel=0.05)  # exponential: mean = standard deviation
    slow, fast = (generate("azure-like", 100, 5, rate=rate) for rate in (1.0, 10.0))
    assert (slow.prompt == fast.prompt).all()
    np.testing.assert_allclose(slow.arrival, 10 * fast.arrival, atol=1e-5)


def test_rank_grid_recovers_dependence():
    values = np.arange(1, 1001)
    assert np.count_nonzero(rank_grid(values, values)) == len(EDGES) - 1
    shuffled = np.random.default_rng(1).permutation(values)
    assert np.count_nonzero(rank_grid(values, shuffled)) > 200
    tied = np.ones(1000, dtype=np.int64)  # ties carry no information, so the grid shows none
    assert np.count_nonzero(rank_grid(values, tied)) > 200


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("azure", 10, 0), "no family 'azure'; the families are azure-like, burstgpt-like; did you mean 'azure-like'"),
        (("zzz", 10, 0), "no family 'zzz'; the families are azure-like, burstgpt-like$"),
        (("azure-like", 0, 0), "count is 0; expected a whole number from 1"),
        (("azure-like", 2.5, 0), r"count is 2\.5"),
        (("azure-like", True, 0), "count is True"),
        (("azure-like", 10**12, 0), "count is 1000000000000"),
        (("azure-like", 10, -1), "seed is -1"),
        (("azure-like", 10, None), "seed is None"),
    ],
)
def test_refusals(arguments, match):
    with pytest.raises(InputError, match=match):
        generate(*arguments)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_rate(rate):
    with pytest.raises(InputError, match="rate is"):
        generate("azure-like", 10, 0, rate=rate)


def test_fit_command(tmp_path, capsys):
    trace = tmp_path / "t.json"
    trace.write_text('{"data": [{"input_length": 1, "output_length": 2}, {"input_length": 3, "output_length": 4}]}')
    target = tmp_path / "table.json"
    assert main([str(trace), "azure-like", "--output", str(target)]) == 0
    assert FamilyTable.from_json(target.read_text()).rank_correlation == 1.0
    assert main([str(trace), "azur", "--output", str(target)]) == 2
    assert "did you mean 'azure-like'" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), "azure-like"]) == 2
    trace.write_text('{"data": [{"input_length": 1, "output_length": 2}, {"input_length": 1, "output_length": 4}]}')
    assert main([str(trace), "azure-like", "--output", str(target)]) == 2
    assert "constant" in capsys.readouterr().err
