"""Captures from serving engines: one file an engine, which is imported on use alone.

Both engines can be asked to return the experts of every token; nothing in them is patched. Each file says which names
it rests on and where they are documented.
"""
