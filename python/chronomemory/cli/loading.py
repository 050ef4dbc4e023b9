"""Commands that are imported when they are called, option bundles, and readable help."""

from __future__ import annotations

import difflib
import functools
import gc
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any, ClassVar, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

Function = TypeVar("Function", bound=Callable[..., Any])

#: A command that is not installed accepts any arguments and refuses them all.
_ANY_WORDS = {"ignore_unknown_options": True, "allow_extra_args": True}
_NO_BOUND = 2**31


def _checked_text(ctx: Any, param: Any, value: Any) -> Any:
    for text in value if isinstance(value, list | tuple) else (value,):
        try:
            isinstance(text, str) and text.encode("utf-8")
        except UnicodeEncodeError:
            raise typer.BadParameter(f"{text!r} is not UTF-8") from None
    return value


class _Parameters:
    """Checks texts; help without types behind flags and arguments, braces, and bounds of 19 digits."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if param.callback is None:
                param.callback = _checked_text
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
            described = getattr(param, "type_descriptor", None)  # of newer typers, which show <list[str]>
            if param.param_type_name == "argument":
                param.display_type_rich = _no_type
            elif param.metavar is None and described is not None:
                param.metavar = _WORDS.get(described.annotation)
            if (getattr(param, "max", None) or 0) > _NO_BOUND:
                param._get_number_range_help_str = lambda: None
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [
            piece.translate(_NO_BRACES).replace("[[", "[").replace("]]", "]").replace("…...", "…")
            for piece in pieces
        ]


_NO_BRACES = {ord("{"): None, ord("}"): None}
_WORDS: dict[Any, str] = {str: "TEXT", list[str]: "TEXT", int: "N", float: "NUMBER"}


def _no_type(**_: Any) -> None:
    """Show no type behind the name of an argument."""


class Command(_Parameters, TyperCommand):
    """A command."""


class CommandGroup(_Parameters, TyperGroup):
    """Commands below a name of their own."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called; an error about one that is unknown suggests others."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx))
            message = getattr(error, "message", "")
            if near and "Did you mean" not in message:  # newer typers suggest some themselves
                suggestions = ", ".join(map(repr, near))
                error.message = f"{message} Did you mean {suggestions}?"  # type: ignore[attr-defined]
            raise


class LoadedGroup(CommandGroup):
    """Commands whose modules are imported when they are called; help imports them all."""

    #: By the panel of the help: the names, each with the module, relative to this package, and its function.
    table: ClassVar[dict[str, dict[str, str]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in self.table.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        for panel, names in self.table.items():
            if cmd_name in names and cmd_name not in self.commands:
                self.commands[cmd_name] = _loaded(cmd_name, names[cmd_name], panel)
        return self.commands.get(cmd_name)


def loaded(name: str) -> ModuleType:
    """Import a module with garbage collection off, which saves a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if was_on:
            gc.enable()


def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose parameters of dataclass types are replaced by their fields as options."""
    bundles: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind: Any = hints[parameter.name]
        if not isinstance(kind, type) or not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = get_type_hints(kind, include_extras=True)
        names = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]
        bundles[parameter.name] = kind, names
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=getattr(kind, name), annotation=options[name]
            )
            for name in names
        ]
    if not bundles:
        return function

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        for name, (kind, names) in bundles.items():
            given[name] = kind(**{option: given.pop(option) for option in names})
        return function(**given)

    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def command(group: typer.Typer, name: str) -> Callable[[Function], Function]:
    """Return a decorator that adds a command to a group."""

    def add(function: Function) -> Function:
        group.command(name, cls=Command)(with_options(function))
        return function

    return add


def command_group(help_text: str, **options: Any) -> typer.Typer:
    return typer.Typer(
        cls=CommandGroup, help=help_text, no_args_is_help=True, add_completion=False, **options
    )


def _lacking(reason: str) -> Callable[[], None]:
    """Return a command that says what has to be installed first; all others work without it."""

    def say() -> None:
        typer.echo(f"error: {reason}", err=True)
        raise typer.Exit(2)

    say.__doc__ = f"Not installed: {reason}."
    return say


def _loaded(name: str, place: str, panel: str) -> Any:
    module, _, attribute = place.partition(":")
    is_lacking = False
    try:
        found = getattr(loaded(importlib.util.resolve_name(f".{module}", __package__)), attribute)
    except ImportError as error:
        if (error.name or __name__).startswith("chronomemory"):
            raise
        found, is_lacking = _lacking(str(error)), True
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
        alone.command(name, cls=Command, context_settings=_ANY_WORDS if is_lacking else None)(
            with_options(found)
        )
        found = alone
    command: Any = typer.main.get_command(found)
    command.name, command.rich_help_panel = name, panel
    return command
