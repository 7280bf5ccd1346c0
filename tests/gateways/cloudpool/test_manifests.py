"""deploy/components/cloudpool and cloudpool-proxy fit the program: rights that it uses, options that exist."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.cloudpool import pool
from controllers.kernel.refs import LEASE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, POD
from hack.cloudpool.scene import Scene
from nodewright.gateways.cloudpool.config import parse
from nodewright.gateways.cloudpool.instances import parse_pool
from nodewright.gateways.cloudpool.scaler import READS
from tests.cli.test_docs import options_of
from tests.deploy.rights import Right, granted, right
from tests.docs.pages import ROOT

COMPONENTS = ROOT / "deploy" / "components"
NAMES = ("cloudpool", "cloudpool-proxy")
NEEDED: dict[str, set[Right]] = {
    "cloudpool-proxy": {
        *(right(kind, verb) for kind in READS for verb in ("list", "watch")),
        *(right(NODE, verb) for verb in ("get", "patch", "delete")),
        right(POD, "create", "eviction"),
    },
    "cloudpool": {
        *(right(kind, verb) for kind in pool.READS for verb in ("get", "list", "watch")),
        *(right(MACHINE, verb) for verb in ("patch", "delete")),
        *(right(kind, "patch", "scale") for kind in (MACHINE_DEPLOYMENT, MACHINE_SET)),
        *(right(kind, "patch") for kind in (MACHINE_DEPLOYMENT, MACHINE_SET)),
        right(MACHINE_SET, "update", "finalizers"),
    },
}


def objects(name: str) -> Iterator[Any]:
    for file in sorted((COMPONENTS / name).glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def one(name: str, kind: str) -> Any:
    (found,) = [each for each in objects(name) if each["kind"] == kind]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_gateway_may_do_what_it_needs_and_nothing_else(name: str) -> None:
    given = granted(one(name, "ClusterRole"))
    assert sorted(map(str, set(given) ^ NEEDED[name])) == []
    assert len(given) == len(set(given))


def test_the_lease_is_allowed_in_one_namespace() -> None:
    assert set(granted(one("cloudpool-proxy", "Role"))) == {right(LEASE, v) for v in ("get", "list", "create", "patch")}


@pytest.mark.slow
async def test_a_scale_down_asks_for_nothing_else(stage: Scene) -> None:
    """What was really asked of an API server, by the counters of the client."""
    before = set(stage.plane_counts())
    await stage.node("n1")
    await stage.node("n2")
    await stage.pod("a", "n1")
    await stage.pod("b", "n2", cpu="1")
    await stage.start()
    assert (await stage.set_size(1))[0] == 200
    asked = {verb.replace("evict pods", "create pods/eviction") for verb in set(stage.plane_counts()) - before}
    allowed = {f"{each.verb} {each.resource}" for each in NEEDED["cloudpool-proxy"]}
    assert {each for each in asked if each not in allowed} == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_container_runs_a_command_that_exists_with_options_that_exist(name: str) -> None:
    (container,) = one(name, "Deployment")["spec"]["template"]["spec"]["containers"]
    group, command, *options = container["args"]
    assert (group, command) == ("gateway", name)
    assert {option.partition("=")[0] for option in options} <= options_of("gateway")
    ports = {found["name"]: found["containerPort"] for found in container["ports"]}
    assert f"--port={ports['http']}" in options
    assert f"--metrics-port={ports['metrics']}" in options
    for option in options:
        if option.startswith("--pool="):
            assert parse_pool(option.partition("=")[2])[0] == "workers"


@pytest.mark.parametrize("name", NAMES)
def test_beyond_loopback_it_asks_for_certificates(name: str) -> None:
    pod = one(name, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    options = {option.partition("=")[0] for option in container["args"]}
    assert {"--tls-cert-file", "--tls-private-key-file", "--client-ca-file"} <= options
    assert "--insecure" not in options
    assert {"name": "tls", "mountPath": "/tls", "readOnly": True} in container["volumeMounts"]
    assert f"nodewright-{name}-tls" in [volume.get("secret", {}).get("secretName") for volume in pod["volumes"]]


def test_the_configuration_can_be_read() -> None:
    text = one("cloudpool-proxy", "ConfigMap")["data"]["config.json"]
    assert parse(text).auth.in_cluster
    assert json.loads(text)["backend"]["url"].startswith("http://cloudpool.invalid"), "nobody's pool by accident"


def test_the_proxy_reaches_the_pool_beside_it() -> None:
    """Both are in one namespace, whose label nobody has set: by the policy none of its requests came in."""
    proxy = one("cloudpool-proxy", "Deployment")["spec"]["template"]["metadata"]["labels"]
    (clients,) = [
        rule for rule in one("cloudpool", "NetworkPolicy")["spec"]["ingress"] if rule["ports"][0]["port"] == "http"
    ]
    selectors = [peer["podSelector"]["matchLabels"] for peer in clients["from"] if "podSelector" in peer]
    assert any(selector.items() <= proxy.items() for selector in selectors)


def documented(page: str, kind: str) -> str:
    """The patch of that kind's object in the page's kustomization."""
    text = (ROOT / "docs" / "tasks" / page).read_text()
    (found,) = [block for block in text.split("```yaml\n")[1:] if block.startswith("# kustomization.yaml")]
    patches = yaml.safe_load(found.partition("```")[0])["patches"]
    return str(next(patch["patch"] for patch in patches if patch["target"]["kind"] == kind))


def test_the_page_says_where_the_pool_and_the_backend_are_named() -> None:
    (container,) = one("cloudpool", "Deployment")["spec"]["template"]["spec"]["containers"]
    (place,) = yaml.safe_load(documented("cloudpool.md", "Deployment"))
    assert (
        place["path"] == f"/spec/template/spec/containers/0/args/{container['args'].index('--pool=md/default/workers')}"
    )
    assert place["value"].startswith("--pool=")
    (config,) = yaml.safe_load(documented("cloudpool-proxy.md", "ConfigMap"))
    assert config["path"] == "/data/config.json"
    assert parse(config["value"]).backend_url == "https://cloudpool:9010"
    assert parse(config["value"]).backend_files.certificate == "/tls/tls.crt"


@pytest.mark.slow
@pytest.mark.kubectl
@pytest.mark.parametrize("name", NAMES)
def test_kustomize_builds_it(name: str, tmp_path: Path, kubectl_binary: Path) -> None:
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    overlay = tmp_path / "deploy" / "overlay"
    overlay.mkdir()
    desired = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump({**desired, "components": [f"../components/{name}"]}))
    done = subprocess.run(
        [kubectl_binary, "kustomize", overlay], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    built = {obj["kind"]: obj for obj in yaml.safe_load_all(done.stdout)}
    selector = built["Service"]["spec"]["selector"]
    assert selector.items() <= built["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
