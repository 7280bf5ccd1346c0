"""The web view over TLS with viewers' own tokens, on a real API server: nothing is seen that kubectl would refuse."""

from __future__ import annotations

import http.cookiejar
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.program import Kubectl, Program
from hack.realplane import SERVERS, RealPlane
from tests.gateways.pems import issue
from tests.hosts.joining import until
from tests.realplane import REAL, require

pytestmark = [*REAL, pytest.mark.kubectl]
OPEN, HIDDEN = "team-open", "team-hidden"
VIEWS = ("machines", "rollouts", "deletions", "sizes", "accounts", "autoscaler")
FOR_ALL = ("fleet", "problems")


class Ui(Program):
    """`nodewright ui` as the component runs it."""

    opening = "Web view: "


@dataclass
class Browser:
    """Keeps cookies, and trusts one authority."""

    url: str
    authority: Path
    cookies: http.cookiejar.CookieJar = field(default_factory=http.cookiejar.CookieJar)

    def ask(self, path: str, body: Any = None) -> tuple[int, str]:
        """Status and text of a GET, or of a POST of ``body`` as JSON."""
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.authority)))
        opener = urllib.request.build_opener(trusting, urllib.request.HTTPCookieProcessor(self.cookies))
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with opener.open(request, timeout=180) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def login(self, token: str, namespace: str = "") -> tuple[int, str]:
        return self.ask("/login", {"token": token, "namespace": namespace})

    def seen(self, total: int) -> dict[str, Any]:
        """What the stream says first of the fleet, of the problems, and of the kinds; once it counts ``total``."""
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self.authority)))
        opener = urllib.request.build_opener(trusting, urllib.request.HTTPCookieProcessor(self.cookies))
        found: dict[str, Any] = {}
        with opener.open(f"{self.url}/api/events", timeout=180) as stream:
            for line in stream:
                name, _, text = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    event = text
                elif name == "data":
                    found[event] = json.loads(text)
                    if found.get("fleet", {}).get("total") == total and found.get("problems"):
                        return found
        raise AssertionError(f"the stream ended with {found}")


@dataclass
class Scene:
    kubectl: Kubectl
    ui: Ui
    url: str
    authority: Path

    def browser(self) -> Browser:
        return Browser(self.url, self.authority)

    def token(self, account: str) -> str:
        return self.kubectl("create", "token", account, f"--namespace={OPEN}").strip()

    def may(self, token: str, *command: str) -> bool:
        """Whether kubectl gets an answer with nothing but the token."""
        config = yaml.safe_load(self.kubectl.kubeconfig.read_text())
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        own = self.ui.folder / "viewer.kubeconfig"
        own.touch(mode=0o600)
        own.write_text(yaml.safe_dump(config))
        return Kubectl(self.kubectl.binary, own, self.kubectl.cache).run(*command).code == 0


def _machine(namespace: str, name: str) -> dict[str, Any]:
    value = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
    meta = {"name": name, "namespace": namespace}
    spec = {"providerConfig": {"value": value}}
    return {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine", "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def scene(real_plane: RealPlane, kubectl_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two namespaces with Machines, and a view whose own kubeconfig may do all.

    The account ``few`` may read Machines of one of them, ``none`` nothing at all.
    """
    require(SERVERS)
    folder = tmp_path_factory.mktemp("viewer")
    kubectl = Kubectl(kubectl_binary, real_plane.kubeconfig, folder / "kubectl-cache")
    for namespace in (OPEN, HIDDEN):
        kubectl("create", "namespace", namespace)
    objects = [_machine(OPEN, "open-1"), _machine(OPEN, "open-2"), *(_machine(HIDDEN, f"secret-{n}") for n in range(3))]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    for account in ("few", "none"):
        kubectl("create", "serviceaccount", account, f"--namespace={OPEN}")
    here = f"--namespace={OPEN}"
    kubectl("create", "role", "few", "--verb=get,list,watch", "--resource=machines.cluster.k8s.io", here)
    kubectl("create", "rolebinding", "few", "--role=few", f"--serviceaccount={OPEN}:few", here)
    may = ("auth", "can-i", "list", "machines.cluster.k8s.io", here, f"--as=system:serviceaccount:{OPEN}:few")
    until(lambda: kubectl.run(*may).code == 0)  # the API server reads roles a moment after it has taken them
    certificate, key = issue("web").write(folder)
    keys = [f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"]
    ui = Ui(folder, kubectl, "ui", "--viewer-tokens", f"--kubeconfig={kubectl.kubeconfig}", *keys)
    port = ui.start().split()[2].rpartition(":")[2]
    try:
        yield Scene(kubectl, ui, f"https://localhost:{port}", certificate)
    finally:
        ui.stop()
        kubectl("delete", "namespace", OPEN, HIDDEN, "--wait=false")


def test_it_speaks_tls_with_the_certificate_that_was_given_and_nothing_else(scene: Scene, tmp_path: Path) -> None:
    assert scene.browser().ask("/")[0] == 200
    plain = Browser(scene.url.replace("https:", "http:"), scene.authority)
    with pytest.raises(OSError, match=r".+"):
        plain.ask("/")
    other, _ = issue("web").write(tmp_path)
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        Browser(scene.url, other).ask("/")


def test_a_token_that_may_not_list_machines_is_not_let_in(scene: Scene) -> None:
    for token, namespace in (
        ("abc", ""),
        (scene.token("none"), ""),
        (scene.token("few"), ""),
        (scene.token("few"), HIDDEN),
    ):
        browser = scene.browser()
        status, said = browser.login(token, namespace)
        assert status == 403, said
        assert token not in said
        assert browser.ask("/api/machines")[0] == 401
        assert not scene.may(token, "get", "machines", *(["-A"] if not namespace else [f"-n{namespace}"]))


def test_a_viewer_of_few_rights_sees_what_these_are_for_and_no_more(scene: Scene) -> None:
    token, browser = scene.token("few"), scene.browser()
    assert scene.may(token, "get", "machines", f"-n{OPEN}")
    assert browser.login(token, OPEN) == (200, "{}")
    assert [(cookie.secure, cookie.has_nonstandard_attr("HttpOnly")) for cookie in browser.cookies] == [(True, True)]
    seen = browser.seen(2)
    assert {"machinedeployments", "machinesets", "clusters"} <= set(seen["fleet"]["unread"])
    assert "machines" not in seen["fleet"]["unread"]
    said = json.dumps(seen) + "".join(browser.ask(f"/api/{view}?namespace={HIDDEN}")[1] for view in VIEWS)
    said += browser.ask("/api/machines")[1]
    assert "open-1" in said
    assert "secret-" not in said


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (f"/api/life?namespace={HIDDEN}&name=secret-1", ("get", "events", f"-n{HIDDEN}")),
        (f"/api/describe?kind=Machine&namespace={HIDDEN}&name=secret-1", ("get", "machines", f"-n{HIDDEN}")),
        (f"/api/life?namespace={OPEN}&name=open-1", ("get", "events", f"-n{OPEN}")),
        ("/api/sizes", ("get", "machinedeployments", f"-n{OPEN}")),
        ("/api/autoscaler", ("get", "nodes")),
    ],
)
def test_what_kubectl_is_refused_the_page_is_refused(scene: Scene, path: str, command: tuple[str, ...]) -> None:
    token, browser = scene.token("few"), scene.browser()
    assert browser.login(token, OPEN)[0] == 200
    assert not scene.may(token, *command)
    status, said = browser.ask(path)
    assert status in {403, 404, 502}, said
    assert "error" in json.loads(said)


def test_a_plan_reads_with_the_viewers_rights_too(scene: Scene) -> None:
    browser = scene.browser()
    assert browser.login(scene.token("few"), OPEN)[0] == 200
    status, said = browser.ask("/api/plan", {"manifests": ""})
    assert (status, "secret-" in said) == (502, False), said
    assert "forbidden" in said


def test_no_token_is_in_the_log(scene: Scene) -> None:
    token = scene.token("few")
    scene.browser().login(token, OPEN)
    scene.browser().login(f"{token}x", OPEN)
    assert token[:40] not in scene.ui.log() + scene.ui.spoken
