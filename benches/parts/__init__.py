"""What is measured: one module for some parts of the report."""

from importlib import import_module

__all__ = ["MODULES", "load"]

MODULES = ("writing", "reading", "upkeep", "search", "vectors", "memory")


def load(*names: str) -> None:
    """Register tasks and datasets of these modules, or of all."""
    for name in names or MODULES:
        import_module(f"benches.parts.{name}")
