"""Measuring the step of a decoder with experts: its layers of experts by active ones, everything else, and the head."""
