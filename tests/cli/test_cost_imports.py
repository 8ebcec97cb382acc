"""A price of plain numbers starts quickly: it imports neither what draws pictures nor what compiles."""

import subprocess
import sys

HEAVY = ("matplotlib", "numba", "pandas", "scipy.integrate", "scipy.optimize", "scipy.stats")


def test_a_price_of_plain_numbers_imports_nothing_heavy():
    words = "['cost', '--mean-load', '85000', '--imbalance', '200000', '--workers', '8', '--running', '35']"
    code = (
        "import sys\n"
        f"sys.argv = ['lbopt', *{words}]\n"
        "from lbopt.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Ascend 910C" in found.stdout
    assert found.stdout.splitlines()[-1] == "[]"
