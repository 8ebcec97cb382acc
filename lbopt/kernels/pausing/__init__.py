"""Which of its own requests each worker runs in a step, so that the heaviest worker is not far above the mean."""
