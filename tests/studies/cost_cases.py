"""The fleet that tests of cost studies price, and its figures."""

from lbopt.studies.cost import CostConfig, LoadPoint

POINT = LoadPoint.of_means(85_000, 200_000, workers=8, running=35)


def config(**given):
    return CostConfig(**{"devices": ("h800",), "draws": 100, **given})


def figures(outcome, device=0, point=0):
    return outcome.devices[device].points[point].figures


def known(outcome, device=0):
    """Figures without those that are NaN, which equal nothing."""
    return {name: figure for name, figure in figures(outcome, device).items() if figure.nominal == figure.nominal}
