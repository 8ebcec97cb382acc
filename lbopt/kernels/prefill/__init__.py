"""Gated prefill passes, event by event: instances, dispatch policies, allocation to units, the adaptive interval."""
