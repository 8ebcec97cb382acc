"""Compiled parts of balanced assignment: successive shortest paths between centres, over exact integer costs."""
