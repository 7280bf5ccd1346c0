"""How objects go, what goes with them, and how kubectl waits for it."""

from __future__ import annotations

from tests.kubectl.manifests import GROUP, owned_by, widget
from tests.kubectl.terminal import Terminal


def names(kubectl: Terminal) -> list[str]:
    return [line.rpartition("/")[2] for line in kubectl("get", "widgets", "-o", "name").lines]


def family(kubectl: Terminal, *, blocks: bool = False) -> None:
    """A parent, its child, and the child's child."""
    kubectl.create(widget("parent"))
    kubectl.create(owned_by(kubectl.read("wd", "parent"), widget("child"), blocks=blocks))
    kubectl.create(owned_by(kubectl.read("wd", "child"), widget("grandchild"), blocks=blocks))


def test_delete_waits_until_the_object_is_gone(kubectl: Terminal) -> None:
    kubectl.create(widget("a"))
    assert kubectl("delete", "widget", "a", "--wait").out.startswith(f'widget.{GROUP} "a" deleted')
    assert names(kubectl) == []
    assert "not found" in kubectl.fails("delete", "widget", "a")
    kubectl("delete", "widget", "a", "--ignore-not-found")


def test_delete_waits_for_a_finalizer(kubectl: Terminal) -> None:
    held = widget("a")
    held["metadata"]["finalizers"] = [f"{GROUP}/hold"]
    kubectl.create(held)
    assert "timed out" in kubectl.fails("delete", "widget", "a", "--timeout=1s")
    assert kubectl.read("wd", "a")["metadata"]["deletionTimestamp"]
    with kubectl.running("wait", "--for=delete", "widget/a", "--timeout=120s") as waiting:
        kubectl("patch", "wd", "a", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        assert waiting.wait(180) == 0
    assert names(kubectl) == []


def test_delete_by_label_and_all(kubectl: Terminal) -> None:
    kubectl.create(widget("a"), widget("b"), widget("c"))
    kubectl("label", "widget", "a", "tier=gold")
    kubectl("delete", "widgets", "-l", "tier=gold")
    assert names(kubectl) == ["b", "c"]
    kubectl("delete", "widgets", "--all")
    assert names(kubectl) == []


def test_delete_in_the_background_takes_the_dependents_along(kubectl: Terminal, controllers: None) -> None:
    family(kubectl)
    kubectl("delete", "widget", "parent", "--cascade=background")
    kubectl("wait", "--for=delete", "widget/grandchild", "--timeout=120s")
    assert names(kubectl) == []


def test_delete_in_the_foreground_waits_for_the_dependents(kubectl: Terminal, controllers: None) -> None:
    family(kubectl, blocks=True)
    kubectl("patch", "wd", "child", "--type=merge", "-p", f'{{"metadata": {{"finalizers": ["{GROUP}/hold"]}}}}')
    kubectl("delete", "widget", "parent", "--cascade=foreground", "--wait=false")
    kubectl("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "widget/child", "--timeout=120s")
    assert "foregroundDeletion" in kubectl.read("wd", "parent")["metadata"]["finalizers"]
    kubectl("patch", "wd", "child", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers/0"}]')
    kubectl("wait", "--for=delete", "widget/parent", "--timeout=120s")
    assert names(kubectl) == []


def test_delete_as_orphan_leaves_the_dependents_alone(kubectl: Terminal, controllers: None) -> None:
    family(kubectl)
    kubectl("delete", "widget", "parent", "--cascade=orphan")
    assert names(kubectl) == ["child", "grandchild"]
    assert "ownerReferences" not in kubectl.read("wd", "child")["metadata"]


def test_delete_as_a_dry_run_deletes_nothing(kubectl: Terminal) -> None:
    kubectl.create(widget("a"))
    assert "(server dry run)" in kubectl("delete", "widget", "a", "--dry-run=server").out
    assert names(kubectl) == ["a"]


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Terminal, controllers: None) -> None:
    kubectl.create(widget("a"))
    kubectl("create", "configmap", "c")
    kubectl("delete", "namespace", kubectl.namespace, "--timeout=120s")
    assert "not found" in kubectl.fails("get", "namespace", kubectl.namespace)
    assert "not found" in kubectl.fails("create", "-f", "-", stdin=widget("b"))
    assert names(kubectl) == []


def test_the_namespaces_of_the_system_stay(kubectl: Terminal) -> None:
    assert "forbidden" in kubectl.fails("delete", "namespace", "default")


def test_wait_for_a_condition(kubectl: Terminal) -> None:
    kubectl.create(widget("a"))
    assert "timed out" in kubectl.fails("wait", "--for=condition=Ready", "widget/a", "--timeout=1s")
    ready = '{"status": {"phase": "Sold", "conditions": [{"type": "Ready", "status": "True"}]}}'
    with kubectl.running("wait", "--for=condition=Ready", "widget/a", "--timeout=120s") as waiting:
        kubectl("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", ready)
        assert waiting.wait(180) == 0
    kubectl("wait", "--for=jsonpath={.status.phase}=Sold", "widget/a", "--timeout=120s")
    kubectl("wait", "--for=create", "widget/a", "--timeout=120s")
