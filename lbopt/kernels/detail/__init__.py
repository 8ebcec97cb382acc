"""Workers in detail: memory that runs out, prompts that take time, drafted tokens, and workers that differ."""
