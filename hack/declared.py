"""Write ``api/declared.py``: what the models of ``api`` declare, as plain data that loads no pydantic.

Part of ``python -m hack.crds``.
"""

from __future__ import annotations

from collections.abc import Iterator

from api.behaviour import Absent, Behaviour, Fields
from api.machine import MachineSpec
from api.model import Model

HEADER = '''"""Generated from the models of api/ by ``make generate``; edits are overwritten."""

from __future__ import annotations

from typing import Final

from api.behaviour import Absent, Behaviour, Change, Fields
'''


def fields_of(model: type[Model]) -> Fields:
    """What the fields of a model declare. A field without a behaviour raises ``ValueError`` that names it."""
    found = {str(field.alias): _behaviours(field.metadata) for field in model.model_fields.values()}
    for name, marks in found.items():
        if len(marks) != 1:
            fault = "has no behaviour" if not marks else "has more than one behaviour"
            raise ValueError(f"{model.__name__}.{name} {fault}: declare it as Annotated[…, Behaviour(Change.…)]")
    return Fields({name: marks[0] for name, marks in found.items()})


def module(machine_spec: type[Model] = MachineSpec) -> str:
    """The text of ``api/declared.py``."""
    rows = (f'        "{name}": {_source(one)},' for name, one in fields_of(machine_spec).behaviours.items())
    doc = '"""The fields of a Machine\'s spec, in the order of their declaration."""'
    return "\n".join([HEADER, "MACHINE_SPEC: Final = Fields(", "    {", *rows, "    }", ")", doc, ""])


def _behaviours(metadata: list[object]) -> list[Behaviour]:
    return [mark for mark in metadata if isinstance(mark, Behaviour)]


def _source(one: Behaviour) -> str:
    return f"Behaviour({', '.join(_arguments(one))})"


def _arguments(one: Behaviour) -> Iterator[str]:
    yield f"Change.{one.change.name}"
    if one.hashed_as:
        yield f'hashed_as="{one.hashed_as}"'
    if one.absent is not Absent.LEFT_OUT:
        yield f"absent=Absent.{one.absent.name}"
    if one.timeout:
        yield "timeout=True"
    if one.empty_counts:
        yield "empty_counts=True"
