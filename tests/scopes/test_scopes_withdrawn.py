"""What rests on a withdrawn record in narrower scopes is doubted with it, and what was told is taken back."""

from __future__ import annotations

from chronomemory import ChronoStore


def edge(name: str, source: str, target: str) -> dict[str, object]:
    data = {"from_id": source, "to_id": target, "edge_type": "depends_on"}
    return {"id": name, "kind": "edge", "data": data}


def test_a_rollback_of_what_is_shared_is_taken_back_as_it_was_told(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    store.upsert({"id": "RULE", "label": "Ships sail on Mondays"})
    store.upsert({"id": "PLAN", "label": "The team books Mondays", "confidence": 0.8})
    store.upsert({"id": "IDEA", "label": "Perhaps two ships", "is_hypothesis": True, "confidence": 0.4})
    ann.upsert({"id": "TRIP", "label": "Ann packs on Sundays", "confidence": 0.6})
    ann.upsert(edge("E-0", "TRIP", "RULE"))
    store.upsert(edge("E-1", "PLAN", "RULE"))
    store.upsert(edge("E-2", "IDEA", "PLAN"))
    report = store.invalidate("RULE", "they sail on Fridays")
    assert [change.record_id for change in report.cascaded] == ["PLAN", "IDEA"]
    doubted = ann.get("TRIP")
    assert doubted is not None
    assert (doubted.status, doubted.confidence) == ("hypothesis", 0.3)
    (told,) = store.rollbacks("IDEA")
    assert (told.reason, told.change.previous_confidence) == ("they sail on Fridays", 0.4)
    taken = store.reinstate(told.rollback_id, "it was Mondays after all")
    assert taken.left == ()
    back = {name: store.get(name) for name in ("RULE", "PLAN", "IDEA")}
    assert {name: (one.status, one.confidence, one.is_hypothesis) for name, one in back.items() if one} == {
        "RULE": ("active", 0.7, False),
        "PLAN": ("active", 0.8, False),
        "IDEA": ("active", 0.4, True),
    }
