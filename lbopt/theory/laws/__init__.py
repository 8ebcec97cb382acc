"""Laws in closed form, or computed exactly without sampling: what claims are held against."""
