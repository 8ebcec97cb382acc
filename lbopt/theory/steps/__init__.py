"""Single steps: small ones of which every optimum is listed, and what refutes a claim, made as small as possible."""
