"""The record of a router: what it saw and chose at every decision, how every request ended, and how both are joined.

`writer` appends rows while the router runs; `seal` joins them into files that `lbopt audit` and `lbopt gap`
read. Prompts are in none of them: of a request there are its number, its length and its times.
"""
