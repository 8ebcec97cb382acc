"""The ledger of decisions: columns and counts, from the beginning and from a later decision on."""

from lbopt.policies.policy import STANDINGS, Ledger


def test_columns_and_counts_by_hand():
    ledger = Ledger()
    for step, (imbalance, bound, standing) in enumerate([(5, 5, "proved"), (7, 4, "open"), (6, 6, "claimed")]):
        ledger.note(step=step, imbalance=imbalance, bound=bound, standing=standing, seconds=0.5 * step)
    assert len(ledger) == 3
    columns = {name: column.tolist() for name, column in ledger.columns().items()}
    assert columns == {"step": [0, 1, 2], "imbalance": [5, 7, 6], "bound": [5, 4, 6], "standing": [0, 2, 1]}
    assert {name: column.tolist() for name, column in ledger.columns(2).items()} == {
        "step": [2],
        "imbalance": [6],
        "bound": [6],
        "standing": [STANDINGS.index("claimed")],
    }
    assert ledger.tally() == {"proved": 1, "open": 1, "claimed": 1}
    assert ledger.tally(1) == {"open": 1, "claimed": 1}
    assert ledger.seconds == [0.0, 0.5, 1.0]
