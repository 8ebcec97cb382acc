"""The checker of prices as kernels: exact integers, written apart from the search, of which nothing is used."""
