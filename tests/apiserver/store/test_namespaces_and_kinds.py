"""How namespaces and custom kinds come and go."""

from __future__ import annotations

import pytest

from nodewright.apiserver.values import ApiError, Obj
from tests.apiserver.store.cluster import MACHINE_SCHEMA, Cluster, crd

FINALIZER = "example.com/host"


def conditions(obj: Obj) -> dict[str, str]:
    return {c["type"]: c["status"] for c in obj["status"]["conditions"]}


class TestNamespaces:
    def test_go_when_empty(self, cluster: Cluster) -> None:
        cluster.namespace("shop")
        marked = cluster.delete("namespaces", "shop")
        assert marked["status"]["phase"] == "Terminating"
        assert cluster.has("namespaces", "shop")
        cluster.settle()
        assert not cluster.has("namespaces", "shop")

    def test_take_all_that_is_in_them_and_nothing_else(self, cluster: Cluster) -> None:
        cluster.namespace("shop")
        for index in range(120):
            cluster.machine(f"m-{index}", ns="shop")
        cluster.create("secrets", {"metadata": {"name": "s"}}, "shop")
        cluster.machine("bystander")
        cluster.delete("namespaces", "shop")
        cluster.settle()
        assert not cluster.has("namespaces", "shop")
        assert cluster.names("machines", ns="") == ["bystander"]
        assert cluster.names("secrets", ns="shop") == []

    def test_wait_for_finalizers_and_say_for_which(self, cluster: Cluster) -> None:
        cluster.namespace("shop")
        cluster.machine("m", ns="shop", meta={"finalizers": [FINALIZER]})
        cluster.delete("namespaces", "shop")
        cluster.settle()
        status = cluster.get("namespaces", "shop")["status"]
        messages = {c["type"]: c["message"] for c in status["conditions"]}
        assert messages["NamespaceContentRemaining"] == (
            "Some resources are remaining: machines.cluster.example.com has 1 resource instances"
        )
        assert messages["NamespaceFinalizersRemaining"] == (
            "Some content in the namespace has finalizers remaining: example.com/host in 1 resource instances"
        )
        cluster.merge("machines", "m", {"metadata": {"finalizers": None}}, ns="shop")
        cluster.settle()
        assert not cluster.has("namespaces", "shop")

    def test_let_nothing_in_while_they_go(self, cluster: Cluster) -> None:
        cluster.namespace("shop")
        cluster.machine("m", ns="shop", meta={"finalizers": [FINALIZER]})
        cluster.delete("namespaces", "shop")
        with pytest.raises(ApiError) as caught:
            cluster.machine("late", ns="shop")
        error = caught.value
        assert (error.code, error.reason) == (403, "Forbidden")
        assert error.message == (
            'machines.cluster.example.com "late" is forbidden: unable to create new content in namespace shop '
            "because it is being terminated"
        )
        assert (error.details or {})["causes"][0]["reason"] == "NamespaceTerminating"

    def test_can_be_made_again_under_the_same_name(self, cluster: Cluster) -> None:
        for _ in range(2):
            cluster.namespace("shop")
            cluster.machine("m", ns="shop")
            cluster.delete("namespaces", "shop")
            cluster.settle()
        assert not cluster.has("namespaces", "shop")

    @pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
    def test_that_the_cluster_needs_stay(self, cluster: Cluster, name: str) -> None:
        with pytest.raises(ApiError) as caught:
            cluster.delete("namespaces", name)
        assert caught.value.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'

    def test_have_names_that_are_labels(self, cluster: Cluster) -> None:
        with pytest.raises(ApiError) as caught:
            cluster.namespace("a.b")
        assert "must not contain dots" in caught.value.message

    def test_wait_for_a_large_content_at_the_cost_of_few_writes(self, cluster: Cluster) -> None:
        cluster.namespace("shop")
        for index in range(64):
            cluster.machine(f"m-{index}", ns="shop", meta={"finalizers": [FINALIZER]})
        cluster.delete("namespaces", "shop")
        cluster.settle()
        watch = cluster.watch("namespaces", ns="")
        for index in range(64):
            cluster.merge("machines", f"m-{index}", {"metadata": {"finalizers": None}}, ns="shop")
            cluster.settle()
        assert 2 <= len(watch.poll()) <= 10
        assert not cluster.has("namespaces", "shop")


class TestCustomKinds:
    def test_are_served_once_their_definition_is_stored(self) -> None:
        cluster = Cluster()
        generation = cluster.store.resources.generation
        created = cluster.create("customresourcedefinitions", crd(), ns="")
        assert conditions(created) == {"NamesAccepted": "True", "Established": "True"}
        assert created["status"]["storedVersions"] == ["v1"]
        assert created["status"]["acceptedNames"]["listKind"] == "MachineList"
        resource = cluster.store.resources.find("cluster.example.com", "v1", "machines")
        assert resource is not None
        assert resource is cluster.store.resources.by_kind("cluster.example.com", "v1", "Machine")
        assert (resource.singular, resource.list_kind, resource.builtin) == ("machine", "MachineList", False)
        assert resource.subresources == {"status", "scale"}
        assert cluster.store.resources.generation > generation

    def test_change_with_their_definition(self, cluster: Cluster) -> None:
        cluster.machine("m")
        generation = cluster.store.resources.generation
        found = cluster.get("customresourcedefinitions", "machines.cluster.example.com")
        spec = crd(
            additionalPrinterColumns=[{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}],
            selectableFields=[{"jsonPath": ".spec.version"}],
        )["spec"]
        cluster.update("customresourcedefinitions", {**found, "spec": spec})
        assert cluster.store.resources.generation > generation
        assert cluster.res("machines").columns[0].json_path == ".spec.replicas"
        assert cluster.names("machines", field_selector="spec.version=v1.30.0") == ["m"]
        assert cluster.names("machines", field_selector="spec.version!=v1.30.0") == []

    def test_do_not_change_with_labels_of_their_definition(self, cluster: Cluster) -> None:
        generation = cluster.store.resources.generation
        cluster.merge("customresourcedefinitions", "machines.cluster.example.com", {"metadata": {"labels": {"a": "b"}}})
        assert cluster.store.resources.generation == generation

    def test_take_their_objects_with_them(self, cluster: Cluster) -> None:
        cluster.machine("m", meta={"finalizers": [FINALIZER]})
        cluster.machine("n")
        marked = cluster.delete("customresourcedefinitions", "machines.cluster.example.com")
        assert conditions(marked)["Terminating"] == "True"
        assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        cluster.settle()
        assert cluster.names("machines") == ["m"]
        with pytest.raises(ApiError) as caught:
            cluster.machine("late")
        assert caught.value.code == 403
        assert caught.value.message.endswith("create not allowed while custom resource definition is terminating")
        cluster.merge("machines", "m", {"metadata": {"finalizers": None}})
        cluster.settle()
        assert cluster.store.resources.find("cluster.example.com", "v1", "machines") is None
        assert cluster.names("customresourcedefinitions") == []

    def test_take_the_dependents_of_their_objects_with_them_even_when_the_kind_is_gone(self, cluster: Cluster) -> None:
        owner = cluster.machine("m")
        reference = {"apiVersion": owner["apiVersion"], "kind": "Machine", "name": "m", "uid": owner["metadata"]["uid"]}
        cluster.create("configmaps", {"metadata": {"name": "c", "ownerReferences": [reference]}})
        cluster.delete("customresourcedefinitions", "machines.cluster.example.com")
        cluster.settle()
        assert not cluster.has("configmaps", "c")

    def test_show_one_object_in_all_their_versions(self) -> None:
        cluster = Cluster()
        body = crd()
        old = {**body["spec"]["versions"][0], "name": "v1alpha1", "storage": False, "deprecated": True}
        body["spec"]["versions"].append(old)
        cluster.create("customresourcedefinitions", body, ns="")
        new, alpha = (
            cluster.store.resources.find("cluster.example.com", version, "machines") for version in ("v1", "v1alpha1")
        )
        assert new is not None
        assert alpha is not None
        watch = cluster.store.watch(new, "default")
        sent = {"apiVersion": alpha.api_version, "kind": "Machine", "metadata": {"name": "m"}, "spec": {}}
        created = cluster.store.create(alpha, "default", sent).obj
        assert created["apiVersion"] == "cluster.example.com/v1alpha1"
        stored = cluster.store._state.collection("machines.cluster.example.com").get("default", "m")
        assert stored is not None
        assert stored["apiVersion"] == "cluster.example.com/v1"
        assert cluster.store.get(new, "default", "m")["apiVersion"] == "cluster.example.com/v1"
        (event,) = watch.poll()
        assert event.object["apiVersion"] == "cluster.example.com/v1"
        updated = cluster.store.update(alpha, "default", "m", {**created, "spec": {"replicas": 2}}).obj
        assert (updated["apiVersion"], updated["metadata"]["generation"]) == ("cluster.example.com/v1alpha1", 2)

    def test_that_are_not_served_cannot_be_found(self) -> None:
        cluster = Cluster()
        body = crd()
        body["spec"]["versions"].append(
            {**body["spec"]["versions"][0], "name": "v0", "storage": False, "served": False}
        )
        cluster.create("customresourcedefinitions", body, ns="")
        assert cluster.store.resources.find("cluster.example.com", "v0", "machines") is None

    def test_whose_names_are_taken_are_not_served(self, cluster: Cluster) -> None:
        created = cluster.create("customresourcedefinitions", crd("cars", "Machine"), ns="")
        assert conditions(created) == {"NamesAccepted": "False", "Established": "False"}
        reasons = {c["type"]: (c["reason"], c["message"]) for c in created["status"]["conditions"]}
        assert reasons["NamesAccepted"] == ("SingularConflict", '"machine" is already in use')
        assert cluster.store.resources.find("cluster.example.com", "v1", "cars") is None

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"group": ""}, "spec.group: Required value"),
            ({"group": "other.io"}, 'must be spec.names.plural+"."+spec.group'),
            ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy"'),
            ({"versions": []}, "spec.versions: Required value"),
            ({"names": {"plural": "machines", "kind": ""}}, "spec.names.kind: Required value"),
            (
                {
                    "versions": [
                        {"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": MACHINE_SCHEMA}}
                    ]
                },
                "must have exactly one version marked as storage version",
            ),
            (
                {"versions": [{"name": "v1", "served": True, "storage": True}]},
                "spec.versions[0].schema.openAPIV3Schema: Required value",
            ),
        ],
    )
    def test_must_be_defined_soundly(self, change: Obj, words: str) -> None:
        body = crd()
        body["spec"].update(change)
        with pytest.raises(ApiError) as caught:
            Cluster().create("customresourcedefinitions", body, ns="")
        assert caught.value.code == 422
        assert words in caught.value.message

    def test_in_a_protected_group_need_the_approval_annotation(self) -> None:
        body = crd()
        body["metadata"]["name"] = "machines.cluster.k8s.io"
        body["spec"]["group"] = "cluster.k8s.io"
        with pytest.raises(ApiError) as caught:
            Cluster().create("customresourcedefinitions", body, ns="")
        assert "metadata.annotations[api-approved.kubernetes.io]: Required value" in caught.value.message
        body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, KEP-3 legacy API"}
        created = Cluster().create("customresourcedefinitions", body, ns="")
        assert conditions(created)["KubernetesAPIApprovalPolicyConformant"] == "False"
        assert conditions(created)["Established"] == "True"

    def test_keep_group_scope_and_kind(self, cluster: Cluster) -> None:
        found = cluster.get("customresourcedefinitions", "machines.cluster.example.com")
        with pytest.raises(ApiError) as caught:
            cluster.update("customresourcedefinitions", {**found, "spec": {**found["spec"], "scope": "Cluster"}})
        assert 'spec.scope: Invalid value: "Cluster": field is immutable' in caught.value.message

    def test_with_a_schema_that_is_none_are_refused(self) -> None:
        body = crd(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {"pattern": "("}}}})
        with pytest.raises(ApiError) as caught:
            Cluster().create("customresourcedefinitions", body, ns="")
        assert "spec.validation.openAPIV3Schema" in caught.value.message
