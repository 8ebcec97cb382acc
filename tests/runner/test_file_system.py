"""Where a store lies: told by texts as Linux writes them, and a store on a network file system is refused."""

from pathlib import Path

import pytest

from lbopt.runner import Store, StoreError, Task, locks, run_tasks
from lbopt.runner.locks import kind_of

MOUNTS = """\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 0:30 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
41 40 0:31 / /home/ann/local rw - xfs /dev/sdb rw
42 27 0:32 / /mnt/my\\040data\\134x rw shared:2 master:3 - fuse.sshfs ann@host:/ rw
43 27 0:33 / /scratch rw - lustre 10.0.0.1@tcp:/scratch rw
44 27 0:34 / /both rw - nfs server:/both rw
45 44 0:35 / /both rw - tmpfs tmpfs rw
46 27 0:36 / /automount rw - autofs systemd-1 rw
47 46 0:37 / /automount/x rw - cifs //server/x rw
torn line
48 27 0:38 /
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/store.sqlite", "ext4"),
        ("/homes/store.sqlite", "ext4"),
        ("/home/store.sqlite", "nfs4"),
        ("/home/ann/store.sqlite", "nfs4"),
        ("/home/ann/local/deep/store.sqlite", "xfs"),
        ("/mnt/my data\\x/store.sqlite", "fuse.sshfs"),
        ("/scratch/store.sqlite", "lustre"),
        ("/both/store.sqlite", "tmpfs"),
        ("/automount/store.sqlite", "autofs"),
        ("/automount/x/store.sqlite", "cifs"),
    ],
)
def test_the_longest_mount_wins(path, kind):
    assert kind_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("text", ["", "\n", "nonsense", "1 2 3 4 5 6 7\n", "27 1 254:0 / / rw - "])
def test_where_it_cannot_be_told(text):
    assert kind_of(Path("/store.sqlite"), text) is None


@pytest.fixture
def on_nfs(tmp_path, monkeypatch):
    """The folder of a test, said to be on a network file system."""
    mounts = tmp_path.parent / f"{tmp_path.name}-mounts"
    mounts.write_text(
        f"27 1 254:0 / / rw - ext4 /dev/vda rw\n40 27 0:30 / {tmp_path.resolve()} rw - nfs4 server:/ rw\n"
    )
    monkeypatch.setattr(locks, "_MOUNTS", mounts)
    monkeypatch.delenv(locks.OVERRIDE, raising=False)
    return tmp_path


def test_a_store_is_not_written_there(on_nfs):
    """One sentence with two ways out, and nothing is made."""
    with pytest.raises(StoreError) as told:
        Store(on_nfs / "store.sqlite")
    assert str(told.value) == (
        f"store {on_nfs.resolve()}/store.sqlite lies on a network file system (nfs4), where SQLite's locks and commits "
        "cannot be relied on; give a path on a local disk, such as /tmp, and copy the store when the run has ended, "
        "or set LBOPT_NETWORK_STORE=1 if no other machine writes it"
    )
    assert list(on_nfs.iterdir()) == []


def test_a_link_does_not_hide_it(on_nfs):
    link = on_nfs.parent / f"{on_nfs.name}-link"
    link.symlink_to(on_nfs)
    with pytest.raises(StoreError, match="network file system"):
        Store(link / "store.sqlite")


def test_who_is_sure_may_and_readers_may(on_nfs, monkeypatch):
    monkeypatch.setenv(locks.OVERRIDE, "1")
    with Store(on_nfs / "store.sqlite") as store:
        run_tasks([Task("runner.jobs:double", {"x": 1}, None)], store)
    monkeypatch.delenv(locks.OVERRIDE)
    with Store(on_nfs / "store.sqlite", read_only=True) as store:
        assert len(store) == 1


def test_nothing_is_said_without_mountinfo(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_MOUNTS", tmp_path / "absent")
    Store(tmp_path / "store.sqlite").close()
