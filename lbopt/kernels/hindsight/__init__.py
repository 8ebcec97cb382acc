"""Searches for placements of whole runs in which every end is known."""
