"""Compiled parts of expert signatures (ELDR, arXiv 2607.00466): products of pairs, rank correlations, layer choice."""
