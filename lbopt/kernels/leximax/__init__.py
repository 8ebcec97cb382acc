"""Compiled parts of leximax: among optimal assignments the one with the least sorted loads."""
