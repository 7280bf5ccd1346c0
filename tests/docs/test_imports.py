"""No module imports itself through others. Imports for type checkers alone do not count."""

from __future__ import annotations

import grimp

PACKAGES = ("api", "controllers", "nodewright", "providers")


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, by taking away again and again what imports nothing that is left."""
    left = dict(imports)
    while True:
        free = {module for module, imported in left.items() if not (imported & left.keys()) - {module}}
        if not free:
            return [sorted(left)] if left else []
        left = {module: imported for module, imported in left.items() if module not in free}


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    assert len(imports) > 500, "the packages are not found"
    assert circles(imports) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [["a", "b", "c", "d"]]
