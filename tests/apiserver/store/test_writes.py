"""What creates, updates and patches do to an object, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from nodewright.apiserver.values import Obj, PatchRequest, WriteOptions
from tests.apiserver.store.cluster import Cluster, owned_by, refusal


class TestCreate:
    def test_fills_in_what_the_server_decides(self, cluster: Cluster) -> None:
        before = cluster.store.resource_version
        meta = cluster.machine("m", meta={"uid": "mine", "generation": 7, "selfLink": "/x"})["metadata"]
        assert meta["creationTimestamp"] == "2030-01-02T03:04:05Z"
        assert meta["generation"] == 1
        assert meta["namespace"] == "default"
        assert meta["uid"] != "mine"
        assert int(meta["resourceVersion"]) == int(before) + 1
        assert "selfLink" not in meta

    def test_defaults_and_prunes_by_the_schema(self, cluster: Cluster) -> None:
        machine = cluster.machine("m", spec={"replicas": 2, "colour": "red"})
        assert machine["spec"] == {"replicas": 2, "version": "v1.30.0"}

    def test_drops_the_status_of_a_kind_with_a_status_subresource(self, cluster: Cluster) -> None:
        assert "status" not in cluster.machine("m", status={"phase": "Ready"})

    def test_keeps_the_status_of_a_node_as_kubelets_register_with_it(self, cluster: Cluster) -> None:
        node = cluster.create("nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}})
        assert node["status"] == {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}

    def test_does_not_keep_a_hold_on_the_body(self, cluster: Cluster) -> None:
        body: Obj = {"metadata": {"name": "m", "labels": {"a": "1"}}, "spec": {"replicas": 1}}
        cluster.create("machines", body)
        body["metadata"]["labels"]["a"] = "2"
        body["spec"]["replicas"] = 9
        assert cluster.get("machines", "m")["metadata"]["labels"] == {"a": "1"}
        assert cluster.get("machines", "m")["spec"]["replicas"] == 1

    def test_refuses_a_name_that_is_taken(self, cluster: Cluster) -> None:
        cluster.machine("m")
        error = refusal(lambda: cluster.machine("m"))
        assert (error.code, error.reason) == (409, "AlreadyExists")
        assert error.message == 'machines.cluster.example.com "m" already exists'

    def test_makes_names_from_generate_name_that_differ(self, cluster: Cluster) -> None:
        body = {"metadata": {"generateName": "web-"}, "spec": {}}
        names = {cluster.create("machines", body)["metadata"]["name"] for _ in range(20)}
        assert len(names) == 20
        assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)

    def test_cuts_a_long_generate_name_to_the_63_of_a_label(self, cluster: Cluster) -> None:
        created = cluster.create("machines", {"metadata": {"generateName": "x" * 80}, "spec": {}})
        assert len(created["metadata"]["name"]) == 63

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("Upper", "a lowercase RFC 1123 subdomain must consist of"),
            ("-start", "a lowercase RFC 1123 subdomain must consist of"),
            ("a..b", "a lowercase RFC 1123 subdomain must consist of"),
            ("x" * 254, "must be no more than 253 characters"),
            ("a/b", "a lowercase RFC 1123 subdomain must consist of"),
        ],
    )
    def test_refuses_a_bad_name_naming_the_field(self, cluster: Cluster, name: str, words: str) -> None:
        error = refusal(lambda: cluster.machine(name))
        assert (error.code, error.reason) == (422, "Invalid")
        assert f'metadata.name: Invalid value: "{name}"' in error.message
        assert words in error.message

    def test_refuses_an_object_without_a_name(self, cluster: Cluster) -> None:
        error = refusal(lambda: cluster.create("machines", {"spec": {}}))
        assert error.message == (
            'Machine.cluster.example.com "" is invalid: metadata.name: Required value: name or generateName is required'
        )

    def test_refuses_what_the_schema_refuses_and_stores_nothing(self, cluster: Cluster) -> None:
        before = cluster.store.resource_version
        error = refusal(lambda: cluster.machine("m", spec={"replicas": -1}))
        assert error.message == (
            'Machine.cluster.example.com "m" is invalid: [spec.replicas: Invalid value: -1: '
            "spec.replicas in body should be greater than or equal to 0, "
            ".spec.replicas: Invalid value: -1: should be a non-negative integer]"
        )
        assert cluster.store.resource_version == before
        assert not cluster.has("machines", "m")

    @pytest.mark.parametrize(
        ("metadata", "field"),
        [
            ({"labels": {"bad key": "x"}}, "metadata.labels"),
            ({"labels": {"a": "no spaces"}}, "metadata.labels"),
            ({"annotations": {"/x": "y"}}, "metadata.annotations"),
            ({"annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
            ({"finalizers": ["not ok"]}, "metadata.finalizers"),
            ({"ownerReferences": [{"kind": "A"}]}, "metadata.ownerReferences.uid"),
        ],
    )
    def test_refuses_bad_metadata_naming_the_field(self, cluster: Cluster, metadata: Obj, field: str) -> None:
        error = refusal(lambda: cluster.machine("m", meta=metadata))
        assert error.code == 422
        assert field in error.message
        assert field in [cause["field"] for cause in (error.details or {})["causes"]]

    def test_refuses_two_controllers(self, cluster: Cluster) -> None:
        owners = [cluster.machine("a"), cluster.machine("b")]
        references = owned_by(*owners, controller=True)
        error = refusal(lambda: cluster.machine("m", meta={"ownerReferences": references}))
        assert "Only one reference can have Controller set to true" in error.message

    def test_refuses_a_namespace_that_is_not_there(self, cluster: Cluster) -> None:
        error = refusal(lambda: cluster.machine("m", ns="nowhere"))
        assert (error.code, error.message) == (404, 'namespaces "nowhere" not found')

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"apiVersion": "v2", "kind": "Machine"}, "does not match the expected API version"),
            ({"apiVersion": "cluster.example.com/v1"}, "Object 'Kind' is missing"),
            ({"kind": "Machine"}, "the API version in the data () does not match"),
            (
                {"apiVersion": "cluster.example.com/v1", "kind": "Machine", "metadata": {"namespace": "other"}},
                "the namespace of the provided object does not match",
            ),
            ([], "the object provided is unrecognized (must be of type Machine)"),
        ],
    )
    def test_refuses_a_body_that_does_not_fit_the_url(self, cluster: Cluster, body: Any, words: str) -> None:
        error = refusal(lambda: cluster.store.create(cluster.res("machines"), "default", body))
        assert error.code == 400
        assert words in error.message

    @pytest.mark.parametrize(
        "metadata",
        [{"labels": []}, {"labels": {"a": 1}}, {"name": 3}, {"finalizers": "x"}, {"finalizers": [1]}, "text"],
    )
    def test_refuses_metadata_of_the_wrong_shape(self, cluster: Cluster, metadata: Any) -> None:
        error = refusal(lambda: cluster.create("machines", {"metadata": metadata, "spec": {}}))
        assert error.code == 400
        assert "cannot unmarshal" in error.message

    def test_warns_of_unknown_fields_or_refuses_them(self, cluster: Cluster) -> None:
        machines = cluster.res("machines")
        body = {"apiVersion": "cluster.example.com/v1", "kind": "Machine", "metadata": {"name": "m"}}
        body["spec"] = {"colour": "red"}

        def create(validation: str) -> tuple[str, ...]:
            options = WriteOptions(field_validation=validation, dry_run=True)
            return cluster.store.create(machines, "default", body, options).warnings

        assert create("") == create("Warn") == ('unknown field "spec.colour"',)
        assert create("Ignore") == ()
        error = refusal(lambda: create("Strict"))
        assert error.code == 400
        assert 'strict decoding error: unknown field "spec.colour"' in error.message

    def test_refuses_a_body_that_is_nested_without_end(self, cluster: Cluster) -> None:
        nested: Obj = {}
        for _ in range(5000):
            nested = {"x": nested}
        error = refusal(lambda: cluster.machine("m", spec=nested))
        assert (error.code, error.message) == (400, "the body is nested more than 200 levels deep")

    def test_a_dry_run_answers_but_stores_nothing(self, cluster: Cluster) -> None:
        before = cluster.store.resource_version
        created = cluster.create("machines", {"metadata": {"name": "m"}, "spec": {}}, dry_run=True)
        assert created["spec"] == {"version": "v1.30.0"}
        assert created["metadata"]["uid"]
        assert cluster.store.resource_version == before


class TestUpdate:
    def test_bumps_the_generation_with_the_spec_only(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        labelled = cluster.update("machines", {**machine, "metadata": {**machine["metadata"], "labels": {"a": "b"}}})
        assert labelled["metadata"]["generation"] == 1
        grown = cluster.update("machines", {**labelled, "spec": {"replicas": 5}})
        assert grown["metadata"]["generation"] == 2
        said = cluster.update("machines", {**grown, "status": {"phase": "Ready"}}, subresource="status")
        assert said["metadata"]["generation"] == 2

    def test_leaves_the_status_to_its_subresource_and_the_rest_to_the_object(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        meta = {**machine["metadata"], "labels": {"a": "b"}}
        said = cluster.update(
            "machines",
            {**machine, "metadata": meta, "spec": {"replicas": 9}, "status": {"phase": "Ready"}},
            subresource="status",
        )
        assert (said["spec"]["replicas"], said["status"]) == (1, {"phase": "Ready"})
        assert "labels" not in said["metadata"]
        changed = cluster.update("machines", {**said, "status": {"phase": "Lost"}, "spec": {"replicas": 3}})
        assert (changed["spec"]["replicas"], changed["status"]) == (3, {"phase": "Ready"})

    def test_of_a_pods_status_may_label_it_as_kubelets_do(self, cluster: Cluster) -> None:
        pod = cluster.pod("p")
        meta = {**pod["metadata"], "labels": {"a": "b"}}
        said = cluster.update("pods", {**pod, "metadata": meta, "spec": {}}, subresource="status")
        assert said["metadata"]["labels"] == {"a": "b"}
        assert said["spec"]["nodeName"] == "node-1"

    def test_from_an_old_state_conflicts(self, cluster: Cluster) -> None:
        old = cluster.machine("m")
        cluster.merge("machines", "m", {"spec": {"replicas": 2}})
        error = refusal(lambda: cluster.update("machines", {**old, "spec": {"replicas": 3}}))
        assert (error.code, error.reason) == (409, "Conflict")
        assert error.message == (
            'Operation cannot be fulfilled on machines.cluster.example.com "m": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )
        assert cluster.get("machines", "m")["spec"]["replicas"] == 2

    def test_without_a_resource_version_is_refused_for_custom_kinds_only(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        bare = {k: v for k, v in machine["metadata"].items() if k != "resourceVersion"}
        error = refusal(lambda: cluster.update("machines", {**machine, "metadata": bare}))
        assert "metadata.resourceVersion: Invalid value: 0" in error.message
        config = cluster.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}})
        bare = {k: v for k, v in config["metadata"].items() if k != "resourceVersion"}
        assert cluster.update("configmaps", {**config, "metadata": bare, "data": {"a": "2"}})["data"] == {"a": "2"}

    def test_of_another_uid_is_a_failed_precondition(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        other = {**machine, "metadata": {**machine["metadata"], "uid": "other"}}
        error = refusal(lambda: cluster.update("machines", other))
        assert (error.code, error.reason) == (409, "Conflict")
        assert "Precondition failed: UID in precondition: other, UID in object meta:" in error.message

    def test_that_changes_nothing_writes_nothing(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        before = cluster.store.resource_version
        assert cluster.update("machines", machine) == machine
        assert cluster.merge("machines", "m", {"spec": {"replicas": 1}}) == machine
        assert cluster.store.resource_version == before

    def test_may_leave_out_what_only_the_server_sets(self, cluster: Cluster) -> None:
        machine = cluster.machine("m", meta={"finalizers": ["a.b/c"]})
        meta = {"name": "m", "resourceVersion": machine["metadata"]["resourceVersion"]}
        updated = cluster.store.update(
            cluster.res("machines"), "default", "m", {**machine, "metadata": meta, "spec": {"replicas": 2}}
        ).obj
        for field in ("uid", "creationTimestamp", "namespace"):
            assert updated["metadata"][field] == machine["metadata"][field]
        assert "finalizers" not in updated["metadata"]

    def test_cannot_set_or_clear_what_only_a_delete_sets(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        meta = {**machine["metadata"], "deletionTimestamp": "2001-01-01T00:00:00Z"}
        error = refusal(lambda: cluster.update("machines", {**machine, "metadata": meta}))
        assert 'metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable' in error.message

    def test_keeps_the_time_of_creation(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        meta = {**machine["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}
        assert cluster.update("machines", {**machine, "metadata": meta}) == machine

    def test_runs_transition_rules_against_the_old_object(self, cluster: Cluster) -> None:
        cluster.machine("m", spec={"pool": "a"})
        error = refusal(lambda: cluster.merge("machines", "m", {"spec": {"pool": "b"}}))
        assert error.code == 422
        assert "spec.pool" in error.message
        assert "pool is immutable" in error.message

    def test_of_what_is_not_there_is_not_found(self, cluster: Cluster) -> None:
        body = {"apiVersion": "cluster.example.com/v1", "kind": "Machine", "metadata": {"name": "m"}, "spec": {}}
        error = refusal(lambda: cluster.store.update(cluster.res("machines"), "default", "m", body))
        assert (error.code, error.message) == (404, 'machines.cluster.example.com "m" not found')

    def test_of_a_lease_that_is_not_there_creates_it(self, cluster: Cluster) -> None:
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
        written = cluster.store.update(cluster.res("leases"), "kube-node-lease", "l", body)
        assert written.created
        assert cluster.has("leases", "l", "kube-node-lease")

    def test_under_another_name_is_refused(self, cluster: Cluster) -> None:
        machine = cluster.machine("m")
        error = refusal(lambda: cluster.store.update(cluster.res("machines"), "default", "n", machine))
        assert error.message == "the name of the object (m) does not match the name on the URL (n)"


class TestPatch:
    def test_never_changes_the_object_that_readers_hold(self, cluster: Cluster) -> None:
        before = cluster.machine("m", meta={"labels": {"a": "1"}})
        snapshot = repr(before)
        cluster.merge("machines", "m", {"metadata": {"labels": {"b": "2"}}, "spec": {"replicas": 4}})
        cluster.merge("machines", "m", {"status": {"phase": "Ready"}}, subresource="status")
        assert repr(before) == snapshot

    def test_does_not_keep_a_hold_on_the_patch(self, cluster: Cluster) -> None:
        cluster.machine("m")
        patch: Obj = {"metadata": {"labels": {"a": "1"}, "finalizers": ["a.b/c"]}}
        cluster.merge("machines", "m", patch)
        patch["metadata"]["labels"]["a"] = "2"
        patch["metadata"]["finalizers"].append("a.b/d")
        patched = cluster.get("machines", "m")["metadata"]
        assert (patched["labels"], patched["finalizers"]) == ({"a": "1"}, ["a.b/c"])

    def test_may_ask_for_the_resource_version_it_was_made_from(self, cluster: Cluster) -> None:
        old = cluster.machine("m")["metadata"]["resourceVersion"]
        cluster.merge("machines", "m", {"metadata": {"resourceVersion": old}, "spec": {"replicas": 2}})
        stale = {"metadata": {"resourceVersion": old}, "spec": {"replicas": 3}}
        error = refusal(lambda: cluster.merge("machines", "m", stale))
        assert error.reason == "Conflict"

    def test_of_the_status_touches_nothing_else(self, cluster: Cluster) -> None:
        cluster.machine("m")
        patch = {"status": {"phase": "Ready"}, "spec": {"replicas": 7}, "metadata": {"labels": {"a": "b"}}}
        patched = cluster.merge("machines", "m", patch, subresource="status")
        assert patched["status"] == {"phase": "Ready"}
        assert patched["spec"]["replicas"] == 1
        assert "labels" not in patched["metadata"]

    def test_by_json_operations_is_all_or_nothing(self, cluster: Cluster) -> None:
        cluster.machine("m")
        operations = [
            {"op": "replace", "path": "/spec/replicas", "value": 5},
            {"op": "test", "path": "/spec/version", "value": "wrong"},
        ]
        request = PatchRequest("json", operations)
        error = refusal(lambda: cluster.store.patch(cluster.res("machines"), "default", "m", request))
        assert error.code == 422
        assert cluster.get("machines", "m")["spec"]["replicas"] == 1

    def test_strategically_is_for_built_in_kinds_only(self, cluster: Cluster) -> None:
        cluster.machine("m")
        request = PatchRequest("strategic", {"spec": {}})
        error = refusal(lambda: cluster.store.patch(cluster.res("machines"), "default", "m", request))
        assert error.code == 415
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        cluster.create("nodes", {"metadata": {"name": "n"}, "status": ready})
        pressed = {"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}}
        request = PatchRequest("strategic", pressed)
        patched = cluster.store.patch(cluster.res("nodes"), "", "n", request, subresource="status").obj
        assert {c["type"] for c in patched["status"]["conditions"]} == {"Ready", "MemoryPressure"}

    def test_cannot_change_what_identifies_the_object(self, cluster: Cluster) -> None:
        cluster.machine("m")
        for patch, code in (
            ({"metadata": {"uid": "other"}}, 422),
            ({"metadata": {"namespace": "other"}}, 400),
            ({"metadata": None}, 400),
            ({"kind": "Car"}, 422),
            ({"apiVersion": "v2"}, 422),
        ):
            assert refusal(lambda patch=patch: cluster.merge("machines", "m", patch)).code == code  # type: ignore[misc]

    def test_cannot_rename(self, cluster: Cluster) -> None:
        cluster.machine("m")
        assert refusal(lambda: cluster.merge("machines", "m", {"metadata": {"name": "n"}})).code == 400

    def test_an_apply_needs_a_field_manager(self, cluster: Cluster) -> None:
        request = PatchRequest("apply", {})
        error = refusal(lambda: cluster.store.patch(cluster.res("machines"), "default", "m", request))
        assert error.message == (
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
        )

    def test_an_apply_creates_what_is_not_there(self, cluster: Cluster) -> None:
        body = {
            "apiVersion": "cluster.example.com/v1",
            "kind": "Machine",
            "metadata": {"name": "m"},
            "spec": {"replicas": 2},
        }
        request = PatchRequest("apply", body, WriteOptions(field_manager="me"))
        first = cluster.store.patch(cluster.res("machines"), "default", "m", request)
        again = cluster.store.patch(cluster.res("machines"), "default", "m", request)
        assert (first.created, again.created) == (True, False)
        assert first.obj["spec"] == {"replicas": 2, "version": "v1.30.0"}
        assert again.obj["metadata"]["resourceVersion"] == first.obj["metadata"]["resourceVersion"]
