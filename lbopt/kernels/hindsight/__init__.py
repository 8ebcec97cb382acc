"""Compiled searches over whole runs in which every end is known."""
