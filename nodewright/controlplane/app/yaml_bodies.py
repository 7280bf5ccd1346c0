"""Reading YAML that a stranger sent: no aliases, no doubled keys, nothing that JSON has not."""

from __future__ import annotations

from typing import Any

import yaml

_TEXT = "tag:yaml.org,2002:str"
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BASE):  # type: ignore[misc]
    """A safe loader that leaves times as text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _BASE.yaml_implicit_resolvers.items()
}


def load(content: bytes) -> Any:
    """Read one document. Raises ValueError with a text that says what is wrong, and where."""
    try:
        loader = _Loader(content)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _check(root: yaml.Node) -> None:
    """Refuse shared nodes (an alias can blow a small body up to any size) and doubled keys; make keys text."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            raise ValueError(f"line {node.start_mark.line + 1}: aliases are not allowed")
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            keys = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise ValueError(f"line {key.start_mark.line + 1}: keys must be text")
                if key.value in keys:
                    raise ValueError(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                keys.add(key.value)
                key.tag = _TEXT
                waiting.append(value)
