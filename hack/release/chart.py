"""The Helm chart, made of what kustomize renders of ``deploy/``: there is no second set of manifests.

What a value decides is marked in the rendered objects and becomes a template; all else is as kustomize has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from api import yamltext
from hack.release import tree
from hack.release.parts import ROOT, ReleaseError
from hack.release.tree import Tree
from nodewright.cli.installation.manifests import BROUGHT, Choice, components, render

NAMESPACE = "nodewright-system"
_MARKS = {
    "@namespace@": "{{ .Release.Namespace }}",
    "@image@": '{{ include "nodewright.image" . }}',
    "'@replicas@'": "{{ .Values.replicas }}",
    "'@resources@'": "{{ toJson .Values.resources }}",
    "'@args@'": '{{ include "nodewright.args" . }}',
}
_HELPERS = """\
{{- define "nodewright.image" -}}
{{- $name := .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $name }}@{{ .Values.image.digest }}
{{- else -}}
{{ $name }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- define "nodewright.args" -}}
{{ toJson (concat (fromJsonArray (include "nodewright.own-args" .)) .Values.extraArgs) }}
{{- end -}}
"""
_NOTES = """\
The controllers of Nodewright {{ .Chart.AppVersion }} are in namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/nodewright

Helm does not change CustomResourceDefinitions on an upgrade: run `nodewright install` of the new version before it.
Before `helm uninstall`, delete what owns Machines: only the controllers can remove their hosts.
"""


def package(version: str, when: int) -> bytes:
    """The chart as `helm install` takes it."""
    return packed(files_of(version), when)


def packed(files: Tree, when: int) -> bytes:
    """What ``files_of`` gives, in the folder that Helm wants."""
    return tree.zipped(tree.to_tar({f"nodewright/{path}": entry for path, entry in files.items()}, when))


def files_of(version: str) -> Tree:
    """Path in the chart → file. Raises ReleaseError where an object holds what Helm would take for a template."""
    whole = render(Choice(f"nodewright:{version}"))
    base = [obj for obj in whole if not obj["kind"].startswith(_POLICIES)]
    deployment = next(obj for obj in base if obj["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    own_args = json.dumps(container["args"])
    extra = additions(whole, version) | {BROUGHT: [obj for obj in whole if obj not in base]}
    values = _values(deployment, extra)
    made = {
        "Chart.yaml": yamltext.dump(_chart(version)),
        "values.yaml": _with_comments(values),
        "values.schema.json": json.dumps(_schema(values), indent=2) + "\n",
        "templates/_helpers.tpl": f'{_HELPERS}{{{{- define "nodewright.own-args" -}}}}\n{own_args}\n{{{{- end -}}}}\n',
        "templates/NOTES.txt": _NOTES,
        "templates/controllers.yaml": _templates(obj for obj in base if obj["kind"] not in _NOT_TEMPLATES),
        "crds/crds.yaml": "---\n".join(yamltext.dump(obj) for obj in base if obj["kind"] == "CustomResourceDefinition"),
        "LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8"),
    }
    for name, objects in extra.items():
        condition = f"{{{{- if index .Values.components {json.dumps(name)} }}}}\n"
        made[f"templates/{name}.yaml"] = condition + _templates(objects) + "{{- end }}\n"
    return {path: tree.file(text) for path, text in made.items()}


_POLICIES = "ValidatingAdmissionPolicy"
"""What the component brings that every layout has: a value of the chart leaves it out."""
_NOT_TEMPLATES = ("CustomResourceDefinition", "Namespace")
"""Helm puts the first in place by itself, and makes the second by --create-namespace."""


def additions(base: list[dict[str, Any]], version: str) -> dict[str, list[dict[str, Any]]]:
    """Component of ``deploy/`` → what it adds. Those that change other objects are not offered."""
    found = {}
    for name in components():
        objects = render(Choice(f"nodewright:{version}", components=(name,))) if _is_alone(name) else []
        added = [obj for obj in objects if obj not in base]
        if added and all(obj in objects for obj in base):
            found[name] = added
    return found


def _is_alone(name: str) -> bool:
    text = Path(ROOT / "deploy/components" / name / "kustomization.yaml").read_text(encoding="utf-8")
    return "patches:" not in text


def _templates(objects: Iterable[dict[str, Any]]) -> str:
    made = []
    for obj in objects:
        text = yamltext.dump(_marked(obj))
        if "{{" in text:
            raise ReleaseError(f"{obj['kind']} {obj['metadata']['name']} has {{{{, which Helm takes for a template")
        for mark, template in _MARKS.items():
            text = text.replace(mark, template)
        made.append(f"---\n{text}")
    return "".join(made)


def _marked(obj: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(obj).replace(NAMESPACE, "@namespace@")
    copy: dict[str, Any] = json.loads(text)
    if copy["kind"] != "Deployment":
        return copy
    container = copy["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "@image@"
    if copy["metadata"]["name"] == "nodewright":
        copy["spec"]["replicas"] = "@replicas@"
        container |= {"resources": "@resources@", "args": "@args@"}
    return copy


def _chart(version: str) -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "nodewright",
        "description": "Declarative machines for Kubernetes: the controllers of cluster.k8s.io/v1alpha1",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    }


def _values(deployment: dict[str, Any], extra: Iterable[str]) -> dict[str, Any]:
    return {
        "image": {"repository": "nodewright", "tag": "", "digest": ""},
        "replicas": deployment["spec"]["replicas"],
        "extraArgs": [],
        "resources": deployment["spec"]["template"]["spec"]["containers"][0]["resources"],
        "components": {name: name == BROUGHT for name in sorted(extra)},
    }


_SAID = {
    "image": "Where the image is. tag is the chart's version if empty; digest (sha256:…) goes before it.",
    "replicas": "One works, the others stand by.",
    "extraArgs": "More flags of `nodewright run`, for instance --log-format=json.",
    "resources": "Of the controllers' container.",
    "components": "Folders of deploy/components that only add objects; the others are for kustomize.",
}


def _with_comments(values: dict[str, Any]) -> str:
    return "".join(f"# {_SAID[key]}\n{yamltext.dump({key: value})}" for key, value in values.items())


def _schema(values: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "string", "pattern": r"^\S*$"}
    switches = {name: {"type": "boolean"} for name in values["components"]}
    kinds: dict[str, dict[str, Any]] = {
        "image": _closed({"repository": {**text, "minLength": 1}, "tag": text,
                          "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}}),
        "replicas": {"type": "integer", "minimum": 0},
        "extraArgs": {"type": "array", "items": {"type": "string", "pattern": "^--"}},
        "resources": {"type": "object"},
        "components": _closed(switches),
    }  # fmt: skip
    described = {key: {"description": _SAID[key], **kind} for key, kind in kinds.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_closed({**described, "global": {"type": "object", "description": "Of a parent chart; not used."}}),
    }


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}
