"""Play the dialogue to a real kube-apiserver and keep its answers.

    python -m tests.controlplane.store.golden.record https://127.0.0.1:6443 TOKEN

The server must accept the bearer token as a user who may do anything, and needs no controller-manager; the namespace
and the custom kind of the dialogue must not exist yet. Its certificate is not verified.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from nodewright.controlplane.values import Obj
from tests.controlplane.store.golden.dialogue import Step, play
from tests.controlplane.store.golden.steps_builtin import BUILTIN_STEPS
from tests.controlplane.store.golden.steps_custom import CUSTOM_STEPS, KIND

ANSWERS = Path(__file__).with_name("answers.json")
_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET", "list": "GET"}
_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_CLUSTER_SCOPED = ("namespaces", "nodes", "customresourcedefinitions", "priorityclasses")


class RealApi:
    """A kube-apiserver as an Api."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._trust = ssl.create_default_context()
        self._trust.check_hostname = False
        self._trust.verify_mode = ssl.CERT_NONE

    def ask(self, step: Step) -> tuple[int, Obj]:
        kind = _PATCHES[step.patch] if step.verb == "patch" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, "User-Agent": "golden/1"}
        data = None if step.body is None else json.dumps(step.body).encode()
        request = Request(self._url + _path(step), method=_METHODS[step.verb], headers=headers, data=data)
        code, body = self._send(request)
        if step.verb in ("create", "update", "delete") and step.kind == KIND[0]:
            time.sleep(2)  # a changed CustomResourceDefinition is served a moment later
        return code, body

    def _send(self, request: Request) -> tuple[int, Any]:
        try:
            with urlopen(request, context=self._trust, timeout=30) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)


def _path(step: Step) -> str:
    group, version, plural = step.kind.split("/")
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if plural not in _CLUSTER_SCOPED:
        path += f"/namespaces/{step.namespace}"
    path += "".join(f"/{part}" for part in (plural, step.name, step.subresource) if part)
    return path + (f"?{urlencode(step.query)}" if step.query else "")


def main() -> None:
    """Record."""
    api = RealApi(sys.argv[1], sys.argv[2])
    answers = play(api, [*CUSTOM_STEPS, *BUILTIN_STEPS])
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
