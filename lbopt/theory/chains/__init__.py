"""Chains that are run for a while, and averages over them with honest errors."""
