"""python -m lbopt."""

from lbopt.cli import main

main()
