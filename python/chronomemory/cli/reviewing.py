"""Applies actions that somebody has reviewed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from chronomemory.cli.options import AgentName, AsJson, SessionName, UserName, text
from chronomemory.cli.output import Output, clean, counted
from chronomemory.cli.session import RefusedError
from chronomemory.cli.workspaces import Folder, JsonFile, names_of, opened, read_json
from chronomemory.graph import Action, Approval, ApprovalRequired

__all__ = ["apply"]


def apply(
    folder: Folder,
    file: JsonFile,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve", metavar="DIGEST", help="Approve the action with this digest, and no other."
        ),
    ] = None,
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", metavar="NAME", callback=text, help="Who approves.")
    ] = None,
    user: UserName = None,
    agent: AgentName = None,
    in_session: SessionName = None,
    as_json: AsJson = False,
) -> None:
    """Apply the actions in a JSON file, all of them or none.

    FILE holds a list of actions, or an object with "actions" and "approvals". An action that needs a review
    is denied without an approval of its digest; the denial shows which digests are lacking.
    """
    with opened(folder, as_json, names_of(user, agent, in_session)) as here:
        actions, approvals = _proposed(read_json(file))
        approvals += _approved(actions, approve or [], reviewer)
        try:
            told = here.it.runtime.apply(actions, approvals)
        except ApprovalRequired as denied:
            _show_denied(here.out, actions, denied)
            raise ApprovalRequired(
                action_ids=denied.action_ids,
                recovery="Review them, and repeat with --approve DIGEST --reviewer NAME for each digest.",
            ) from None
        if as_json:
            here.out.document(
                {"applied": [action.id for action in actions], "events": [one.id for one in told]}
            )
        else:
            here.out.done(f"applied {counted(len(actions), 'action')}")


def _proposed(said: Any) -> tuple[list[Action], list[Approval]]:
    parts = said if isinstance(said, dict) else {"actions": said}
    if strange := sorted(set(parts) - {"actions", "approvals"}):
        raise RefusedError(f'the file has "actions" and "approvals", not {strange[0]!r}')
    actions, approvals = parts.get("actions", []), parts.get("approvals", [])
    if not isinstance(actions, list) or not isinstance(approvals, list):
        raise RefusedError("actions and approvals must be lists")
    return [Action.from_dict(one) for one in actions], [Approval.from_dict(one) for one in approvals]


def _approved(actions: list[Action], digests: list[str], reviewer: str | None) -> list[Approval]:
    if digests and not reviewer:
        raise RefusedError("--approve needs --reviewer: an approval says who gave it")
    by_digest = {action.digest: action for action in actions}
    for digest in digests:
        if digest not in by_digest:
            raise RefusedError(f"no action in the file has the digest {digest}")
    return [Approval.of(by_digest[digest], reviewer or "") for digest in digests]


def _show_denied(out: Output, actions: list[Action], denied: ApprovalRequired) -> None:
    lacking = [action for action in actions if action.id in denied.action_ids]
    if out.as_json:
        out.document(
            {
                "applied": [],
                "denied": [
                    {"id": action.id, "op": action.op, "target": action.target, "digest": action.digest}
                    for action in lacking
                ],
            }
        )
        return
    for action in lacking:
        # Whole lines, however narrow the terminal is: the digest is copied into the next command.
        lines = f"{clean(action.id)}: {action.op} {clean(action.target)}\n  --approve {action.digest}"
        out.console.print(lines, soft_wrap=True)
