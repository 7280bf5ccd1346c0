"""Seeded inputs: valid objects of every kind, mutated, and written as JSON, YAML or bytes.

Input ``index`` of a seed depends on the two numbers only, so a failing input is made again without the ones before it.
"""

from __future__ import annotations

import copy
import functools
import json
import random
from typing import Any

import yaml

from tests.api.samples import BAD, GOOD, examples

Path = tuple[str | int, ...]

_DEEP: Any = functools.reduce(lambda inner, _: [inner], range(120), 1)
ATOMS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, 0.5, 1e308, -0.0,
    float("inf"), float("nan"),
    "", " ", "\x00", "a\x00b", "\ud800", "\u202e", "\x1b[2J", "\r\n", "ä" * 300, "a" * 70_000,
    "../../etc/passwd", "/etc/passwd", "a/b/c", "%00", "%s%n", "{{x}}", "9" * 5000, "1e999999999", "5m", "100%", "-1%",
    "999999999999h",
    "2020-01-01T00:00:00Z", "9999-99-99T99:99:99Z", "10.0.0.0/999", "0x" + "f" * 500, "a: [1", "&a [*a]",
    [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"\x00": 1}, {"a" * 5000: 1}, {"value": []}, ["x"] * 500,
    {"nested": _DEEP}, _DEEP,
)  # fmt: skip
"""Values that readers tend to trip over."""

TEXTS: tuple[bytes, ...] = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"[" * 3000, b"{a: " * 300, b"- " * 3000, b"&a [*a]",
    b"*gone", b"<<: *a",
    b"x: &a {<<: *a}\n", b"\n---\n", b"\n...\n", b"%YAML 9.9\n---\n", b"!!python/name:os.system x",
    b"!!binary ====", b"!!timestamp x", b"!!set {a}", b"? [a]\n: b\n", b"\t", b"\x1b]0;x\x07", b"9" * 5000,
    b"0b" + b"1" * 9000,
    b"1:2:3:99999999999999999999", b"=", b"''", b'"\\ud800"', b'"\\x00"', b"|9\n", b"2020-13-45",
    b"kind: a\nkind: b\n", b".inf",
)  # fmt: skip
"""Pieces of text, to be put anywhere into a document."""


@functools.cache
def samples() -> tuple[dict[str, Any], ...]:
    """Valid and invalid objects of every kind, and the examples."""
    return (*GOOD.values(), *(bad.obj for bad in BAD.values()), *examples().values())


def rng_of(seed: int, index: int) -> random.Random:
    """The source of all chance of one input."""
    return random.Random(f"{seed}/{index}")


def paths(value: Any, so_far: Path = ()) -> list[Path]:
    """The path of every value in an object, its own first."""
    found = [so_far]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += paths(inner, (*so_far, key))
    return found


def _mutate(rng: random.Random, obj: Any) -> Any:
    """One change at one place: another value, a removed, doubled, renamed or added field."""
    path = rng.choice(paths(obj))
    if not path:
        return copy.deepcopy(rng.choice(ATOMS)) if rng.random() < 0.1 else obj
    holder = obj
    for part in path[:-1]:
        holder = holder[part]
    last = path[-1]
    how = rng.random()
    if how < 0.6:
        holder[last] = copy.deepcopy(rng.choice(ATOMS))
    elif how < 0.75:
        del holder[last]
    elif isinstance(holder, list):
        holder.insert(0, copy.deepcopy(holder[last]))
    else:
        name = rng.choice([atom for atom in ATOMS if isinstance(atom, str)])
        holder[name] = holder.pop(last) if how < 0.85 else copy.deepcopy(rng.choice(ATOMS))
    return obj


def mutant(rng: random.Random, valid: Any = None) -> Any:
    """A valid object (of any kind by default) with up to four changes."""
    obj = copy.deepcopy(rng.choice(samples()) if valid is None else valid)
    for _ in range(rng.randrange(5)):
        if isinstance(obj, (dict, list)):
            obj = _mutate(rng, obj)
    return obj


def as_json(obj: Any) -> bytes:
    """JSON as a careless client writes it: NaN and lone surrogates included."""
    return json.dumps(obj).encode()


def as_yaml(obj: Any) -> bytes:
    """YAML in block style; lone surrogates become bytes that are no UTF-8."""
    return yaml.dump(obj, Dumper=_DUMPER, allow_unicode=False).encode("utf-8", "surrogatepass")


_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def damaged(rng: random.Random, text: bytes) -> bytes:
    """The text with up to three pieces put in, cut out, doubled or flipped."""
    for _ in range(rng.randrange(4)):
        text = _damage(rng, text)
    return text


def _damage(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    to = min(len(text), at + rng.randrange(1, 40))
    inside = (rng.choice(TEXTS) + text[at:to], b"", text[at:to] * 2, rng.randbytes(to - at))
    how = rng.randrange(len(inside) + 1)
    return text[:at] if how == len(inside) else text[:at] + inside[how] + text[to:]


def document(rng: random.Random) -> bytes:
    """A file or a body: JSON or YAML, well formed or damaged."""
    obj = mutant(rng)
    try:
        text = as_yaml(obj) if rng.random() < 0.5 else as_json(obj)
    except (UnicodeEncodeError, yaml.YAMLError):
        text = as_json(obj)
    return damaged(rng, text) if rng.random() < 0.5 else text
