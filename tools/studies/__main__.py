"""``python -m tools.studies``: the command line of lbopt, with the studies of this folder."""

from lbopt.__main__ import main
from tools.studies import register

if __name__ == "__main__":
    register()
    main()
