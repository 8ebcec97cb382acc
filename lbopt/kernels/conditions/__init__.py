"""Exact search for steps under conditions (`lbopt.model.Conditions`): prices, ranges of envelopes, placements."""
