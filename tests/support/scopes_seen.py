"""Who sees what: the rule of the guide in a few lines of Python, to hold the engine against."""

from __future__ import annotations

from itertools import product

LEVELS = ("user", "agent", "session")

Names = dict[str, str]


def owner(names: Names) -> tuple[str, str] | None:
    """Return the name that owns: the user, else the agent, else the session."""
    return next(((level, names[level]) for level in LEVELS if level in names), None)


def seen(carried: Names, given: Names, *, shared: bool = True) -> str | None:
    """Return how a handle that gives some names sees a record that carries some: own, wider, or not."""
    clash = any(given.get(level, name) != name for level, name in carried.items())
    if owner(carried) == owner(given) and not clash and (shared or given.items() <= carried.items()):
        return "own"
    return "wider" if shared and carried.items() <= given.items() else None


def every_scope(values: int = 2) -> list[Names]:
    """Return all scopes of so many names a level, and of none."""
    choices = [[None, *(f"{level}-{n}" for n in range(values))] for level in LEVELS]
    return [
        {level: name for level, name in zip(LEVELS, names, strict=True) if name is not None}
        for names in product(*choices)
    ]
