"""The live side of lbopt: what runs against a clock and speaks HTTP."""
