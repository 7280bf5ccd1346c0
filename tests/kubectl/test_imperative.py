"""The commands that build objects themselves; kubectl sends most of these as protobuf."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from tests.kubectl.terminal import Terminal


def test_create_namespace(terminal: Terminal, controllers: None) -> None:
    assert terminal("create", "namespace", "made").out == "namespace/made created\n"
    assert terminal.read("namespace", "made")["status"]["phase"] == "Active"
    assert "already exists" in terminal.fails("create", "namespace", "made")
    terminal("delete", "namespace", "made")


def test_create_secret(kubectl: Terminal) -> None:
    kubectl("create", "secret", "generic", "s", "--from-literal=password=hush")
    found = kubectl.read("secret", "s")
    assert found["type"] == "Opaque"
    assert base64.b64decode(found["data"]["password"]) == b"hush"
    assert kubectl("get", "secret", "s").rows[1][:3] == ["s", "Opaque", "1"]
    described = kubectl("describe", "secret", "s").out
    assert "password:  4 bytes" in described
    assert "hush" not in described


def test_create_configmap(kubectl: Terminal) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=two")
    assert kubectl.read("configmap", "c")["data"] == {"a": "1", "b": "two"}


def test_create_service_account_and_use_its_token(kubectl: Terminal) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=30m").out.strip()
    assert token.count(".") == 2
    who = f"system:serviceaccount:{kubectl.namespace}:robot"
    assert who in stranger(kubectl)("auth", "whoami", f"--token={token}").out


def test_create_deployment_service_and_others(kubectl: Terminal) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    found = kubectl.read("deployment", "web")["spec"]
    assert (found["replicas"], found["template"]["spec"]["containers"][0]["image"]) == (2, "web:1")
    kubectl("create", "role", "r", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "rb", "--role=r", "--serviceaccount=default:default")
    kubectl("create", "quota", "q", "--hard=pods=2")
    assert kubectl("get", "role,rolebinding,quota", "-o", "name").lines == [
        "role.rbac.authorization.k8s.io/r",
        "rolebinding.rbac.authorization.k8s.io/rb",
        "resourcequota/q",
    ]


def test_auth_can_i_and_whoami(kubectl: Terminal) -> None:
    assert kubectl("auth", "can-i", "create", "widgets").out.strip() == "yes"
    assert "system:masters" in kubectl("auth", "whoami").out
    assert "*.*" in kubectl("auth", "can-i", "--list").out


def test_a_stranger_is_not_let_in(kubectl: Terminal) -> None:
    assert "You must be logged in" in stranger(kubectl).fails("get", "nodes", "--token=wrong")


def stranger(kubectl: Terminal) -> Terminal:
    """Give a kubectl that knows the server and has no credentials."""
    known = kubectl("config", "view", "--raw", "-o", "json").json()
    known["users"] = [{"name": user["name"], "user": {}} for user in known["users"]]
    path = kubectl.cache / f"stranger-{kubectl.namespace}"
    path.write_text(json.dumps(known))
    return replace(kubectl, kubeconfig=path)
