"""The exact search for one decode step: priced patterns, a master program, near-optimal patterns, descent."""
