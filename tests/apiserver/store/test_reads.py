"""What get and list give: selection, order, pages, and lists of an earlier state."""

from __future__ import annotations

import pytest

from nodewright.apiserver.store import StoreOptions
from nodewright.apiserver.values import ApiError, ListOptions, ListResult
from tests.apiserver.store.cluster import Cluster


@pytest.fixture
def zoo(cluster: Cluster) -> Cluster:
    cluster.namespace("other")
    cluster.machine("c", meta={"labels": {"tier": "web", "zone": "1"}})
    cluster.machine("a", meta={"labels": {"tier": "db"}})
    cluster.machine("b")
    cluster.machine("z", ns="other", meta={"labels": {"tier": "web", "weight": "30"}})
    return cluster


def page(cluster: Cluster, ns: str = "default", **options: object) -> ListResult:
    return cluster.store.list(cluster.res("machines"), ns, ListOptions(**options))  # type: ignore[arg-type]


def names(result: ListResult) -> list[str]:
    return [item["metadata"]["name"] for item in result.items]


def test_a_list_is_ordered_by_namespace_and_name_whatever_the_order_of_creation(zoo: Cluster) -> None:
    assert zoo.names("machines") == ["a", "b", "c"]
    assert zoo.names("machines", ns="") == ["a", "b", "c", "z"]
    zoo.delete("machines", "c")
    zoo.machine("aa")
    assert zoo.names("machines") == ["a", "aa", "b"]


def test_a_list_carries_the_resource_version_of_the_whole_store(zoo: Cluster) -> None:
    assert page(zoo).resource_version == zoo.store.resource_version


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("tier=web", ["c", "z"]),
        ("tier==web", ["c", "z"]),
        ("tier!=web", ["a", "b"]),
        ("tier in (web,db)", ["a", "c", "z"]),
        ("tier notin (web, db)", ["b"]),
        ("tier", ["a", "c", "z"]),
        ("!tier", ["b"]),
        ("tier=web,zone=1", ["c"]),
        ("tier in (web),!zone", ["z"]),
        ("weight>10", ["z"]),
        ("weight<10", []),
        ("tier=", []),
        ("", ["a", "b", "c", "z"]),
    ],
)
def test_label_selectors_select(zoo: Cluster, selector: str, wanted: list[str]) -> None:
    assert zoo.names("machines", ns="", label_selector=selector) == wanted


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("in (a)", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a==b,,c", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("-a", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of'),
        ("a=-b", 'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be'),
        ("a>x", "for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_bad_label_selectors_are_refused_in_the_words_of_the_real_server(
    zoo: Cluster, selector: str, words: str
) -> None:
    with pytest.raises(ApiError) as caught:
        zoo.names("machines", label_selector=selector)
    assert caught.value.code == 400
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b", "c", "z"]),
        ("metadata.namespace=other", ["z"]),
        ("metadata.name=a,metadata.namespace=other", []),
        ("metadata.name=nothing", []),
        (r"metadata.name=a\,b", []),
    ],
)
def test_field_selectors_select(zoo: Cluster, selector: str, wanted: list[str]) -> None:
    assert zoo.names("machines", ns="", field_selector=selector) == wanted


def test_one_object_by_name_is_found_within_its_namespace(zoo: Cluster) -> None:
    assert zoo.names("machines", field_selector="metadata.name=a") == ["a"]
    assert zoo.names("machines", ns="other", field_selector="metadata.name=a") == []


@pytest.mark.parametrize("selector", ["metadata.name", "metadata.name=a=b", "=a"])
def test_bad_field_selectors_are_bad_requests(zoo: Cluster, selector: str) -> None:
    with pytest.raises(ApiError) as caught:
        zoo.names("machines", field_selector=selector)
    assert caught.value.code == 400


@pytest.mark.parametrize("selector", ["spec.replicas=1", "status.phase=x"])
def test_fields_that_are_not_selectable_are_refused(zoo: Cluster, selector: str) -> None:
    with pytest.raises(ApiError) as caught:
        zoo.names("machines", field_selector=selector)
    assert caught.value.message == f"field label not supported: {selector.partition('=')[0]}"


def test_pods_are_selected_by_node_and_phase(cluster: Cluster) -> None:
    cluster.pod("p")
    cluster.create("pods", {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c"}]}})
    assert cluster.names("pods", field_selector="spec.nodeName=node-1") == ["p"]
    assert cluster.names("pods", field_selector="spec.nodeName=,status.phase=Pending") == ["q"]
    assert cluster.names("pods", field_selector="status.phase!=Running") == ["q"]


def test_nodes_that_say_nothing_are_schedulable(cluster: Cluster) -> None:
    cluster.create("nodes", {"metadata": {"name": "n"}})
    cluster.create("nodes", {"metadata": {"name": "o"}, "spec": {"unschedulable": True}})
    assert cluster.names("nodes", field_selector="spec.unschedulable=false") == ["n"]
    assert cluster.names("nodes", field_selector="spec.unschedulable=true") == ["o"]


class TestPages:
    def test_cover_the_list_once(self, zoo: Cluster) -> None:
        first = page(zoo, ns="", limit=3)
        assert (names(first), first.remaining) == (["a", "b", "c"], 1)
        last = page(zoo, ns="", limit=3, continue_=first.continue_)
        assert (names(last), last.continue_, last.remaining) == (["z"], "", None)

    def test_that_fit_exactly_need_no_further_page(self, zoo: Cluster) -> None:
        result = page(zoo, limit=3)
        assert (names(result), result.continue_) == (["a", "b", "c"], "")

    def test_show_the_state_of_the_first_page(self, zoo: Cluster) -> None:
        first = page(zoo, limit=1)
        zoo.machine("aa")
        zoo.merge("machines", "b", {"spec": {"replicas": 9}})
        zoo.delete("machines", "c")
        rest = page(zoo, limit=10, continue_=first.continue_)
        assert names(rest) == ["b", "c"]
        assert rest.items[0]["spec"]["replicas"] == 1
        assert rest.resource_version == first.resource_version

    def test_do_not_count_what_selectors_leave_out(self, zoo: Cluster) -> None:
        first = page(zoo, ns="", limit=1, label_selector="tier=web")
        assert (names(first), first.remaining) == (["c"], None)
        assert names(page(zoo, ns="", limit=1, continue_=first.continue_, label_selector="tier=web")) == ["z"]

    def test_whose_state_is_forgotten_are_gone(self) -> None:
        small = Cluster(options=StoreOptions(log_length=2)).with_machines()
        for name in "abc":
            small.machine(name)
        first = page(small, limit=1)
        for replicas in range(2, 9):
            small.merge("machines", "b", {"spec": {"replicas": replicas}})
        with pytest.raises(ApiError) as caught:
            page(small, limit=1, continue_=first.continue_)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")

    @pytest.mark.parametrize("token", ["x", "!!!", "e30", "bnVsbA", "eyJ2IjoiYSJ9", "é"])
    def test_need_a_token_that_came_from_here(self, zoo: Cluster, token: str) -> None:
        with pytest.raises(ApiError) as caught:
            page(zoo, limit=1, continue_=token)
        assert caught.value.code == 400
        assert "continue key is not valid" in caught.value.message


class TestEarlierStates:
    def test_are_listed_exactly(self, zoo: Cluster) -> None:
        then = zoo.store.resource_version
        before = page(zoo, ns="").items
        zoo.delete("machines", "a")
        zoo.machine("a", spec={"replicas": 5})
        zoo.machine("bb")
        past = page(zoo, ns="", resource_version=then, resource_version_match="Exact")
        assert past.items == before
        assert past.resource_version == then

    def test_are_a_lower_bound_otherwise(self, zoo: Cluster) -> None:
        then = zoo.store.resource_version
        zoo.machine("aa")
        for match in ("", "NotOlderThan"):
            assert "aa" in names(page(zoo, resource_version=then, resource_version_match=match))
        assert "aa" in names(page(zoo, resource_version="0"))

    def test_of_the_future_time_out(self, zoo: Cluster) -> None:
        with pytest.raises(ApiError) as caught:
            page(zoo, resource_version=str(int(zoo.store.resource_version) + 5))
        assert (caught.value.code, caught.value.reason) == (504, "Timeout")
        assert (caught.value.details or {})["causes"][0]["reason"] == "ResourceVersionTooLarge"

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            ({"resource_version": "x"}, 400, "invalid resource version"),
            ({"resource_version": "-1"}, 400, "invalid resource version"),
            ({"resource_version_match": "Exact"}, 422, "is forbidden unless resourceVersion is provided"),
            (
                {"resource_version": "0", "resource_version_match": "Exact"},
                422,
                'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            ),
            ({"resource_version": "1", "resource_version_match": "Sometimes"}, 422, 'Unsupported value: "Sometimes"'),
            ({"resource_version_match": "Exact", "continue_": "x"}, 422, "is forbidden for continue"),
        ],
    )
    def test_must_be_asked_for_properly(self, zoo: Cluster, options: dict[str, str], code: int, words: str) -> None:
        with pytest.raises(ApiError) as caught:
            page(zoo, **options)
        assert caught.value.code == code
        assert words in caught.value.message


def test_events_look_the_same_in_both_groups(cluster: Cluster) -> None:
    core = cluster.store.resources.find("", "v1", "events")
    new = cluster.store.resources.find("events.k8s.io", "v1", "events")
    assert core is not None
    assert new is not None
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "hello",
        "reason": "Said",
        "reportingController": "me",
    }
    assert cluster.store.create(new, "default", body).obj["note"] == "hello"
    seen = cluster.store.get(core, "default", "e")
    assert (seen["apiVersion"], seen["message"], seen["involvedObject"]["name"]) == ("v1", "hello", "p")
    assert cluster.store.get(new, "default", "e")["regarding"]["name"] == "p"
    for resource, selector in ((core, "involvedObject.name=p"), (new, "regarding.name=p")):
        found = cluster.store.list(resource, "default", ListOptions(field_selector=selector))
        assert names(found) == ["e"]


def test_old_events_go(cluster: Cluster) -> None:
    body = {"involvedObject": {"kind": "Pod", "name": "p"}}
    cluster.create("events", {"metadata": {"name": "old"}, **body})
    cluster.passes(minutes=40)
    cluster.create("events", {"metadata": {"name": "young"}, **body})
    cluster.merge("events", "old", {"count": 2})
    cluster.passes(minutes=40)
    cluster.settle()
    assert cluster.names("events") == ["old", "young"]
    cluster.passes(minutes=30)
    cluster.settle()
    assert cluster.names("events") == []
