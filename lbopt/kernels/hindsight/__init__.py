"""Whole runs in which every end is known: searches for the placement whose barriers are least."""
