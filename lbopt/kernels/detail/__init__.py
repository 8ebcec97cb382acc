"""Workers as they are: memory that runs out, prompts that take time, drafted tokens, and workers that differ."""
