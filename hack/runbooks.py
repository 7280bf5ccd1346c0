"""Writes ``docs/runbooks.md``: a heading for each reason and alert that asks somebody to do something; and the same of
reasons as JSON for the web view, which needs nothing but its own files.

Meanings come from the code (``api.conditions``, the error classes), next steps from the reports, texts of alerts from
``deploy/monitoring``; ``hack/runbooks.yaml`` has the rest. ``python -m hack.runbooks --write`` writes the page,
``--check`` fails when what is committed differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from hack.apidocs import meanings
from hack.reference import GENERATED, ROOT
from nodewright.reports.tree.advice import advice_for
from providers.base.errors import REACTIONS

SOURCE = ROOT / "hack" / "runbooks.yaml"
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yaml"
PAGE = ROOT / "docs" / "runbooks.md"
FOR_THE_WEB = ROOT / "nodewright" / "gateways" / "web" / "static" / "runbooks.json"

HEAD = f"""{GENERATED}# Runbooks: what a reason or an alert means, and what to do

`nodewright status` and `describe` name the heading of this page beside each next step, such as
`docs/runbooks.md#drainblocked`; `-o json` and alerts have it as `runbook`. With none of these at hand:
[find out why nothing happens](tasks/troubleshoot.md).

"""


def written() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(SOURCE.read_text())
    return loaded


def rules() -> dict[str, dict[str, Any]]:
    """Alerts by their names."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def page() -> str:
    known, source = _meanings(), written()
    parts = [HEAD + _contents([*(group["title"] for group in source["reasons"]), "Alerts"])]
    for group in source["reasons"]:
        parts.append(f"## {group['title']}\n\n")
        parts += ["".join(_entry(reason, **_of_reason(reason, group, known))) for reason in group["of"]]
    parts.append("## Alerts\n\nRules of `deploy/monitoring/alerts.yaml`.\n\n")
    alerts = rules()
    parts += [_of_alert(name, entry, alerts[name]["annotations"]) for name, entry in source["alerts"].items()]
    return "".join(parts).rstrip() + "\n"


def for_the_web() -> str:
    """Reasons by the name of their heading: title, meaning, step, commands, and the page that has more."""
    known = _meanings()
    entries = {
        reason.lower(): {"title": reason, **_of_reason(reason, group, known)}
        for group in written()["reasons"]
        for reason in group["of"]
    }
    for entry in entries.values():
        entry["meaning"] = " ".join(entry["meaning"].split()).replace("``", "`")
        entry["page"] = f"docs/{entry['page']}"
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def _meanings() -> dict[str, str]:
    """The provider's classes speak for themselves; what a condition's reason says comes after that."""
    classes = {str(name): reaction.meaning for name, reaction in REACTIONS.items()}
    return classes | meanings(ROOT / "api" / "conditions.py", "Reason")


def _contents(titles: list[str]) -> str:
    links = (f"[{title}](#{title.lower().replace(' ', '-').replace(chr(39), '')})" for title in titles)
    return " · ".join(links) + "\n\n"


def _of_reason(reason: str, group: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """``group["of"]``: the page that has more, or all that there is to say of a reason that is no condition's."""
    entry = group["of"][reason]
    own = entry if isinstance(entry, dict) else {"page": entry}
    meaning, step = own.get("meaning") or known[reason], own.get("do") or advice_for(reason)
    return {"meaning": meaning, "do": step, "look": own.get("look", group["look"]), "page": own["page"]}


def _of_alert(name: str, entry: Mapping[str, Any], annotations: Mapping[str, str]) -> str:
    meaning = annotations["description"]
    if "{{" in meaning:
        meaning = annotations["summary"] if "{{" not in annotations["summary"] else ""
    return "".join(_entry(name, meaning=meaning, do=entry["do"], look=entry["look"], page=entry["page"]))


def _entry(title: str, *, meaning: str, do: str, look: list[str], page: str) -> Iterator[str]:
    yield f"### {title}\n\n"
    if meaning:
        yield f"{' '.join(meaning.split())}\n\n"
    yield f"Do: {do} More: [{_title_of(page)}]({page}).\n\n"
    yield "".join(f"    {command}\n" for command in look) + "\n"


def _title_of(link: str) -> str:
    """The first heading of the page behind ``link``, in the words that a sentence goes on with."""
    text = (ROOT / "docs" / link.partition("#")[0]).read_text()
    title = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ").partition(":")[0]
    return title if title[1:2].isupper() else title[0].lower() + title[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write or check docs/runbooks.md and what the web view has of it.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    files = {PAGE: page(), FOR_THE_WEB: for_the_web()}
    writes = parser.parse_args().write
    for path, text in files.items():
        if writes:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"not current, run `make generate`: {path.relative_to(ROOT)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
