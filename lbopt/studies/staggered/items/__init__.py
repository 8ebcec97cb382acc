"""What the study asks, a module each: `measure` answers one part of it for one seed, as rows."""
