"""What a cell of the reproductions returns, made up."""

from lbopt.hardware.energy import READINGS

FIGURES = {
    "running": 500.0,
    "waiting": 4.0,
    "step_seconds": 0.06,
    "max_load": 90e3,
    "mean_load": 80e3,
    "spread": 20e3,
    "deviation": 5e3,
    "band_deviation": 9e3,
    "seconds": 100.0,
    **{reading: 3e5 + place for place, reading in enumerate(READINGS)},
}
