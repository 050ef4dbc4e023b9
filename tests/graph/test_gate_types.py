"""The review gate takes plain values only: no blank reviewer, no subclass, one copy of the payload."""

from __future__ import annotations

from typing import Any

import pytest
from chronomemory.graph import Action, ActionError, Approval, ApprovalRequired, ModelError, Node
from workbench import Bench

DELETE = Action("d", "delete_node", "cat")


@pytest.mark.parametrize(
    "reviewer", ["", " ", "\t", "\u00a0", "\u200b", "a\x00n", "ann\n", "a\x1b[2J", "a\u202en"]
)
def test_a_reviewer_is_a_visible_name(reviewer: str) -> None:
    with pytest.raises(ModelError, match=r"approval\.reviewer must") as refused:
        Approval("d", reviewer, DELETE.digest)
    assert refused.value.field == "reviewer"
    with pytest.raises(ModelError):
        Approval.of(DELETE, reviewer)


@pytest.mark.parametrize("reviewer", ["ann", "Ann Lee", "Zoë", "李雷", "ann@example.org"])
def test_names_of_people_are_reviewers(reviewer: str) -> None:
    assert Approval.of(DELETE, reviewer).reviewer == reviewer


class LenientApproval(Approval):
    """An approval that claims to cover everything."""

    def covers(self, action: Action) -> bool:
        return True


class HarmlessLookingAction(Action):
    """An action that reports another digest and no need of a review."""

    @property
    def digest(self) -> str:
        return "0" * 64


def test_subclasses_do_not_pass_the_gate(bench: Bench) -> None:
    bench.graph.save_node(Node("cat", "pet"))
    with pytest.raises(ActionError, match="Approval expected, got LenientApproval"):
        bench.runtime.apply([DELETE], [LenientApproval("x", "ann", "0" * 64)])
    disguised = HarmlessLookingAction("d", "delete_node", "cat")
    with pytest.raises(ActionError, match="Action expected, got HarmlessLookingAction"):
        bench.runtime.apply([disguised], [Approval("d", "ann", "0" * 64)])
    assert bench.graph.node("cat") is not None


class TwoFacedDict(dict[str, Any]):
    """A payload that shows one label to a reader of its keys and holds another."""

    def __getitem__(self, key: str) -> Any:
        return "harmless" if key == "label" else super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return "harmless" if key == "label" else super().get(key, default)

    def items(self) -> Any:
        return {**self, "label": "harmless"}.items()


def test_a_reviewer_sees_the_payload_that_is_applied(bench: Bench) -> None:
    put = Action("p", "put_node", "cat", TwoFacedDict(kind="pet", label="Eve"), requires_review=True)
    assert type(put.payload) is dict
    bench.runtime.apply([put], [Approval.of(put, "ann")])
    node = bench.graph.node("cat")
    assert node is not None and node.label == put.payload["label"]
    (entry,) = bench.audit.records()
    assert entry.actions[0]["digest"] == put.digest


def test_a_payload_belongs_to_its_action() -> None:
    payload = {"data": {"n": [1]}, "kind": "pet"}
    put = Action("p", "put_node", "cat", payload)
    digest = put.digest
    payload["data"]["n"].append(2)  # type: ignore[index]
    assert put.payload == {"data": {"n": [1]}, "kind": "pet"}
    assert put.digest == digest


def test_a_payload_that_changes_after_the_approval_is_denied(bench: Bench) -> None:
    put = Action("p", "put_node", "cat", {"kind": "pet"}, requires_review=True)
    approval = Approval.of(put, "ann")
    put.payload["label"] = "Eve"
    with pytest.raises(ApprovalRequired):
        bench.runtime.apply([put], [approval])


def test_a_payload_that_changes_during_the_apply_has_no_effect(bench: Bench) -> None:
    put = Action("p", "put_node", "cat", {"kind": "pet", "label": "Cat"}, requires_review=True)
    approval = Approval.of(put, "ann")

    def approvals() -> Any:
        yield approval

    class ChangingClock:
        """Changes the payload when the runtime asks for the time, which is after the check."""

        def __call__(self) -> Any:
            put.payload["label"] = "Eve"
            return clock()

    clock = bench.runtime._clock
    bench.runtime._clock = ChangingClock()
    bench.runtime.apply([put], approvals())
    node = bench.graph.node("cat")
    assert node is not None and node.label == "Cat"


class MisleadingOp(str):
    """An operation that is equal to none that needs a review."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other == "put_node"

    def __hash__(self) -> int:
        return hash("put_node")


def test_an_operation_is_compared_by_its_characters(bench: Bench) -> None:
    bench.graph.save_node(Node("cat", "pet"))
    with pytest.raises(ApprovalRequired):
        bench.runtime.apply([Action("d", MisleadingOp("delete_node"), "cat")])
    assert bench.graph.node("cat") is not None
