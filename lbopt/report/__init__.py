"""Tables, pictures and pages. Nothing is computed here that a study did not already find."""
