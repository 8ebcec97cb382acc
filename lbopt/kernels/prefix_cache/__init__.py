"""Caches of prefixes: which blocks of prompts a worker still holds from requests that ran there."""
