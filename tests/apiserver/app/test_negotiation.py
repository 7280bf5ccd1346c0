"""In which shape the answer comes, by the Accept headers that clients really send."""

from __future__ import annotations

import pytest

from nodewright.apiserver.app.negotiation import Wanted, wanted_discovery, wanted_object
from nodewright.apiserver.values import ApiError

TABLE = Wanted("application/json", "Table", "meta.k8s.io", "v1")
PARTIAL = Wanted("application/json", "PartialObjectMetadata", "meta.k8s.io", "v1")

ACCEPTED = {
    "kubectl get": (
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        TABLE,
    ),
    "kubectl describe": ("application/vnd.kubernetes.protobuf,application/json", Wanted()),
    "a garbage collector": (
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        PARTIAL,
    ),
    "curl": ("*/*", Wanted()),
    "nobody says": ("", Wanted()),
    "a reader of YAML": ("application/yaml", Wanted("application/yaml")),
    "weights decide": ("application/yaml;q=0.5, application/json;q=0.9", Wanted()),
    "a charset is no shape": ("application/json; charset=utf-8", Wanted()),
}


@pytest.mark.parametrize("client", ACCEPTED)
def test_objects_are_shaped_for(client: str) -> None:
    header, expected = ACCEPTED[client]
    assert wanted_object(header) == expected


@pytest.mark.parametrize(
    "header", ["application/vnd.kubernetes.protobuf", "text/html", "application/json;as=Table;v=v9;g=meta.k8s.io"]
)
def test_a_client_that_takes_nothing_we_have_is_told_what_there_is(header: str) -> None:
    with pytest.raises(ApiError, match="only the following media types are accepted: application/json") as refused:
        wanted_object(header)
    assert refused.value.code == 406


def test_discovery_is_aggregated_for_who_asks_and_says_so_in_its_content_type() -> None:
    header = (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    )
    wanted = wanted_discovery(header)
    assert wanted.as_kind == "APIGroupDiscoveryList"
    assert wanted.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert wanted_discovery("application/json") == Wanted()
