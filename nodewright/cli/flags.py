"""Options of a command as dataclasses: each option is declared once, with its name, its help and its default."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` as typer reads it: a parameter whose type is a dataclass stands for one option per field.

    The fields are ``Annotated`` with a ``typer.Option``. The parameter's default, if it has one, is an instance that
    gives the options' defaults; else those of the class count. ``command`` gets each dataclass filled.
    """
    parameters, groups = _taken_apart(inspect.signature(command, eval_str=True))

    def filled(**given: Any) -> None:
        flags = {name: cls(**{field: given.pop(field) for field in names}) for name, (cls, names) in groups.items()}
        command(**given, **flags)

    functools.update_wrapper(filled, command)
    filled.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
    vars(filled)["__signature__"] = inspect.Signature(parameters)
    return filled


def _taken_apart(
    signature: inspect.Signature,
) -> tuple[list[inspect.Parameter], dict[str, tuple[Any, tuple[str, ...]]]]:
    """All options, and by parameter its dataclass with the names of the options that fill it."""
    groups: dict[str, tuple[Any, tuple[str, ...]]] = {}
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if not is_dataclass(each.annotation):
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = _options(each)
        groups[each.name] = each.annotation, tuple(option.name for option in options)
        parameters += options
    return parameters, groups


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    cls = parameter.annotation
    hints = get_type_hints(cls, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(parameter, each),
            annotation=hints[each.name],
        )
        for each in fields(cls)
    ]


def _default(parameter: inspect.Parameter, field: Field[Any]) -> Any:
    if parameter.default is not inspect.Parameter.empty:
        return getattr(parameter.default, field.name)
    return inspect.Parameter.empty if field.default is MISSING else field.default
