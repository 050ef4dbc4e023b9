"""Does as a process of an earlier version does with a store, told line by line on its input.

It runs under an interpreter that has that version's engine, so it knows nothing of this package but its
oldest calls. Each line is a JSON list: a verb, then what it needs; the answer is one line of JSON.
"""

import json
import sys
import warnings

import numpy as np
from chronomemory import ChronoStore

warnings.simplefilter("ignore")


def answer(store, held, verb, *needs):
    """Do one thing; whatever is refused is told as an error."""
    if verb == "read":
        # As much as anybody may hold on to: records, words, rows, views of the past.
        found = store.search("harbour", limit=50)
        held.append((found, store.as_of(store.wal_seq()), store.query(status=None)))
        if store.vectors.spaces():
            held.append(store.vectors.matrix())
            store.vectors.nearest(np.ones(4, dtype=np.float32), k=5)
        return [record.id for record in store.query(status=None)]
    if verb == "get":
        record = store.get(needs[0])
        return record and record.label
    if verb == "history":
        return [event.record and event.record.get("label") for event in store.history(needs[0])]
    if verb == "views":
        return [len(one[1].query(status=None)) for one in held if isinstance(one, tuple) and len(one) == 3]
    if verb == "put":
        return store.upsert({"id": needs[0], "label": needs[1]}).seq
    if verb == "attach":
        rows = store.vectors.attach(needs[0], np.array(needs[1], dtype=np.float32), model="m")
        return list(rows)
    if verb == "compact":
        return store.compact(keep_history=needs[0])
    if verb == "backup":
        return str(store.backup())
    if verb == "verify":
        report = store.verify()
        return [report.valid, [str(one) for one in report.damage]]
    if verb == "sync":
        return store.sync()
    if verb == "reopen":
        store.close()
        return str(store.open())
    raise ValueError(verb)


def main():
    store, held = ChronoStore(sys.argv[1], head_file=sys.argv[2], lock_timeout=60), []
    store.open()
    for line in sys.stdin:
        try:
            told = {"answer": answer(store, held, *json.loads(line))}
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)
    store.close()


if __name__ == "__main__":
    main()
