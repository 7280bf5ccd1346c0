"""Generate ``crds/*.yaml``, ``api/declared.py``, ``api/views.py`` and the tables of ``docs/api`` from ``api``.

All definitions are in ``nodewright/crds.jsonl`` (the program's), those of our group in ``deploy/crds/crds.yaml`` (for
kustomize): a kind of another group may have been installed by somebody else.

``python -m hack.crds --write`` writes them, ``--check`` fails when what is committed differs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from api import names
from api.kinds import KINDS, OTHERS
from api.machine import MachineSpec
from api.model import Model
from api.resource import Resource
from hack import apidocs, declared, views
from hack.structural import Schema, structural
from nodewright.crds import CARRIED

ROOT = Path(__file__).resolve().parent.parent
LONGEST_LINE = 160
"""Characters shown of a line that differs: those of crds.jsonl have some 200,000."""
HEADER = "# Generated from api/ by `python -m hack.crds --write`; edits are overwritten.\n"


def custom_resource_definition(model: type[Model]) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    resource: Resource = model.resource  # type: ignore[attr-defined]
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root_schema(model)},
        "additionalPrinterColumns": [column.as_crd() for column in resource.columns],
    }
    subresources: dict[str, Any] = {"status": {}} if "status" in model.model_fields else {}
    if resource.scale:
        subresources["scale"] = resource.scale.as_crd()
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _metadata(resource),
        "spec": {
            "group": resource.group,
            "names": _names(resource),
            "scope": resource.scope,
            "versions": [version, *(_older(version, name) for name in resource.older_versions)],
        },
    }


def _metadata(resource: Resource) -> dict[str, Any]:
    """Only groups of the project itself need its approval, or a word on why there is none."""
    approval = {"annotations": {names.APPROVED_ANNOTATION: names.APPROVED_VALUE}}
    return {"name": resource.crd_name, **(approval if resource.group == names.GROUP else {})}


def _names(resource: Resource) -> dict[str, Any]:
    return {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
        "shortNames": [resource.short_name, *resource.more_short_names],
        **({"categories": list(resource.categories)} if resource.categories else {}),
    }


def _older(version: dict[str, Any], name: str) -> dict[str, Any]:
    return {**version, "name": name, "storage": False, "deprecated": True}


def root_schema(model: type[Model]) -> Schema:
    """The schema of the whole object; of metadata the API server knows more than we do."""
    schema = structural(model)
    properties = schema["properties"]
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string", "description": properties[name]["description"]}
    properties["metadata"] = {"type": "object"}
    return schema


class _Dumper(yaml.SafeDumper):
    """Writes shared parts out in full: anchors are hard to read and refused by some tools."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def outputs() -> dict[Path, str]:
    """Every generated file and its text."""
    files: dict[Path, str] = {}
    models = {**KINDS, **OTHERS}
    crds = [custom_resource_definition(model) for model in models.values()]
    for model, crd in zip(models.values(), crds, strict=True):
        path = ROOT / "crds" / f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml"
        files[path] = HEADER + yaml.dump(crd, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
        page = ROOT / "docs" / "api" / f"{crd['spec']['names']['singular']}.md"
        files[page] = apidocs.with_generated(page, model.__name__, apidocs.tables(crd))
    ours = (path for path in files if path.suffix == ".yaml" and path.name.startswith(f"{names.GROUP}_"))
    together = [files[path].removeprefix(HEADER) for path in ours]
    files[ROOT / "deploy" / "crds" / "crds.yaml"] = HEADER + "---\n".join(
        together
    )  # kustomize reads its own folders only
    machine_page = ROOT / "docs" / "api" / "machine.md"
    files[machine_page] = apidocs.with_behaviours(files[machine_page], declared.fields_of(MachineSpec))
    files[ROOT / "api" / "declared.py"] = declared.module()
    files[ROOT / "api" / "views.py"] = views.module()
    files[CARRIED] = "".join(f"{json.dumps(crd, ensure_ascii=False)}\n" for crd in sorted(crds, key=_crd_name))
    page = ROOT / "docs" / "api" / "names.md"
    source = ROOT / "api"
    tables = [
        apidocs.names_table(source / f"{module}.py")
        for module in ("names", "limits", "provisioning_names", "capacity_names")
    ]
    tables += [apidocs.conditions_table(source / f"{module}.py") for module in ("conditions", "capacity_conditions")]
    files[page] = apidocs.with_generated(page, "Names", "\n".join(tables))
    return files


def _crd_name(crd: dict[str, Any]) -> str:
    name: str = crd["metadata"]["name"]
    return name


def write(files: dict[Path, str]) -> int:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    for stale in _stale(files):
        stale.unlink()
        print(f"removed {stale.relative_to(ROOT)}")
    return 0


def check(files: dict[Path, str]) -> int:
    """0 when all is current; otherwise prints the differences and says how to fix them."""
    wrong = 0
    for path, text in files.items():
        committed = path.read_text() if path.exists() else ""
        if committed != text:
            wrong += 1
            name = str(path.relative_to(ROOT))
            lines = difflib.unified_diff(
                committed.splitlines(), text.splitlines(), name, f"{name} (from api/)", lineterm="", n=1
            )
            print("\n".join(line[:LONGEST_LINE] for line in list(lines)[:40]))
    for stale in _stale(files):
        wrong += 1
        print(f"{stale.relative_to(ROOT)}: no kind has it any more")
    if wrong:
        print(f"{wrong} files are not current: run `python -m hack.crds --write`", file=sys.stderr)
    return 1 if wrong else 0


def _stale(files: dict[Path, str]) -> list[Path]:
    return sorted(path for path in (ROOT / "crds").glob("*_*.yaml") if path not in files)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hack.crds", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="write the files")
    choice.add_argument("--check", action="store_true", help="fail when a committed file differs")
    options = parser.parse_args(arguments)
    return write(outputs()) if options.write else check(outputs())


if __name__ == "__main__":
    raise SystemExit(main())
