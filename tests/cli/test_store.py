"""`lbopt verify`: damaged rows are named, and sound ones saved."""

import shutil
import sqlite3
from pathlib import Path

STORED = Path(__file__).resolve().parents[1] / "stored" / "stores" / "scaling.sqlite"


def test_a_sound_store_a_damaged_row_and_a_damaged_file(type_in, here):
    shutil.copyfile(STORED, "a.sqlite")
    code, shown, said = type_in("verify", "a.sqlite")
    assert (code, shown) == (0, "8 rows are what was written, 0 are damaged: a.sqlite\n")
    assert "has no hashes" in said
    connection = sqlite3.connect("a.sqlite", isolation_level=None)
    (key,) = connection.execute("SELECT key FROM results WHERE rowid = 3").fetchone()
    connection.execute("UPDATE results SET answer = '[1' WHERE rowid = 3")
    connection.close()
    code, shown, _ = type_in("verify", "a.sqlite", "--rescue", "b.sqlite")
    assert code == 1
    assert shown.splitlines() == [
        f"damaged: {key}: its answer cannot be read",
        "7 rows are what was written, 1 are damaged: a.sqlite",
        "saved 7 rows: b.sqlite",
    ]
    assert type_in("verify", "b.sqlite")[:2] == (0, "7 rows are what was written, 0 are damaged: b.sqlite\n")
    Path("c.sqlite").write_bytes(Path("b.sqlite").read_bytes()[:-4096])
    code, _, said = type_in("verify", "c.sqlite")
    assert code in (1, 2)
    assert "Traceback" not in said
    code, _, said = type_in("verify", "absent.sqlite")
    assert (code, said) == (2, "error: there is no store at absent.sqlite\n")
