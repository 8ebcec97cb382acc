"""The compiled decode loop: event-driven, so a step costs its completions and admissions plus G, whatever B is."""
