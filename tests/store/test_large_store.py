"""A store whose records do not fit into memory is loaded all the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chronomemory import ChronoStore

RECORDS = 300_000
#: Beyond what an open empty store has. All records and their places took 255 MB.
MOST_BYTES = 130 * 1024 * 1024

PROGRAM = f"""
import resource, sys
from pathlib import Path
from chronomemory import ChronoStore

def data_bytes():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmData:")[1].split()[0])

with ChronoStore(sys.argv[1] + "/empty") as store:
    store.upsert({{"id": "r"}})
    store.verify()
resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() + {MOST_BYTES},) * 2)
with ChronoStore(sys.argv[1] + "/large", verify=sys.argv[2]) as store:
    assert store.count() == {RECORDS}
    assert store.get("r7").label == "a record with the number 7"
    past = store.as_of({RECORDS} // 2)
    assert past.get("r10").data["n"] == 10 and past.get("r{RECORDS - 1}") is None
    assert store.verify().valid
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is of Linux")
def test_a_store_without_segments_is_loaded_in_little_memory(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "large", durability="off") as store:
        for first in range(0, RECORDS, 10_000):
            numbers = range(first, first + 10_000)
            store.upsert_many(
                {"id": f"r{n}", "label": f"a record with the number {n}", "data": {"n": n, "text": "x" * 200}}
                for n in numbers
            )
    for verify in ("full", "later"):
        shutil.rmtree(tmp_path / "large" / ".chronomemory" / "index")
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), verify]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
