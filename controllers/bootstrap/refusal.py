"""Why something of a join is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """``field``: as named in ``Join``, or the path of a field of a spec (``spec.bootstrap.files[0].path``).

    ``skew``: two versions don't go together.
    """

    field: str
    message: str
    skew: bool = False
