"""The exact search over a window that every new request survives: envelopes, boxes of sums, exact sets, a tree."""
