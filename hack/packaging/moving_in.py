"""Name the imports of a module as they are once ``api``, ``controllers`` and ``providers`` lie in ``nodewright``."""

from __future__ import annotations

import ast

MOVED = ("api", "controllers", "providers")
HOME = "nodewright"
SHARE = "share"
"""Manual pages and completions, which ``make release`` writes: in an sdist they lie here, in a wheel in its data."""
FOLDER_OF_SHARE = "NODEWRIGHT_SHARE"
"""The variable of the environment that names the folder they are in while a release is made; they need the parser."""


def moved_in(text: str, where: str) -> str:
    """The module ``text`` with its imports named anew, everything else as it is, line by line.

    ``from api.names import GROUP`` becomes ``from nodewright.api.names import GROUP``. Raises ValueError that names
    ``where`` for ``import api.names``: it binds the name ``api``, which the module would no longer have.
    """
    if not any(name in text for name in MOVED):
        return text
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_moved(alias.name):
                    raise ValueError(f"{where}:{node.lineno}: write `from … import`, not `import {alias.name}`")
        if isinstance(node, ast.ImportFrom) and not node.level and node.module and _is_moved(node.module):
            line = lines[node.lineno - 1].encode()
            head, tail = line[: node.col_offset], line[node.col_offset :]
            old = f"from {node.module} ".encode()
            if not tail.startswith(old):
                raise ValueError(f"{where}:{node.lineno}: write `from {node.module} import` with one blank each")
            lines[node.lineno - 1] = (head + b"from " + HOME.encode() + b"." + tail[len(b"from ") :]).decode()
    return "".join(lines)


def _is_moved(module: str) -> bool:
    return module.partition(".")[0] in MOVED
