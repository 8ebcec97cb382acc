"""What samples of output lengths say of a request's remaining steps: compiled look-ups by age."""
