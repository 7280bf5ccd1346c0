"""Random ``spec.bootstrap`` by the schema of the committed CRD, most of which the rules take too."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from api import kubeletfields
from tests.api.crd_judge import schema_of
from tests.controllers.bootstrap.scenarios import KEY
from tests.controllers.bootstrap.test_join import CA

SCHEMA = schema_of("Machine")["properties"]["spec"]["properties"]["bootstrap"]
_URL = st.from_regex(r"https://[a-z0-9.]{1,9}(:[0-9]{2,4})?/[A-Za-z0-9._~/@$&()*+;=%-]{0,12}", fullmatch=True)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
_NASTY = st.sampled_from(
    ["1e5", "y", "0o17", "~", "'; reboot #", "$(reboot)", "`id`", "a\nb", '"', "\\", "é", "{{ x }}"]
)
_DURATION = st.sampled_from(["1s", "90s", "5m", "1h"])
_KUBELET = {
    "a boolean": st.booleans(),
    "a whole number": st.integers(0, 100),
    "a duration like 90s, 10m or 1h30m": _DURATION,
    "text": _NASTY,
    "a list of text": st.lists(_NASTY, max_size=2),
    "a map of text": st.dictionaries(_NASTY, _NASTY, max_size=2),
    "a map of booleans": st.dictionaries(st.sampled_from(["A", "b"]), st.booleans()),
    "a fraction": st.floats(0, 1),
    "a list of whole numbers": st.lists(st.integers(0, 100), max_size=2),
    "a list of objects": st.just([]),
    "an object": st.just({}),
}
_CONFIGURATION = st.fixed_dictionaries(
    {}, optional={name: _KUBELET[what] for name, what in sorted(kubeletfields.TYPES.items()) if name != "cgroupDriver"}
)
_SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "signingKey": st.just(KEY),
    "caCertificate": st.just(CA),
    "kubeletConfiguration": _CONFIGURATION,
    "patch": _CONFIGURATION.filter(bool)
    .map(repr)
    .map(lambda text: text.replace("True", "true").replace("False", "false")),
    "timeout": _DURATION,
    "script": _TEXT | _NASTY,
    "content": _TEXT | _NASTY,
    "url": _URL,
    "mirror": _URL,
    "mirrors": st.lists(_URL, max_size=2),
    "http": _URL,
    "https": _URL,
    "sshAuthorizedKeys": st.lists(st.sampled_from(["ssh-ed25519 AAAA it's", "ssh-rsa BBBB $(id) `x`"]), unique=True),
    "argv": st.lists(_TEXT.map(lambda text: text.replace("\0", "")).filter(bool) | _NASTY, min_size=1, max_size=3),
}
_NEVER = {"encoding", "components", "suite", "type"}
"""Fields that fit only with what another one says; the tables of the tests have them."""

_EITHER = (frozenset({"argv", "script"}), frozenset({"content", "contentFrom"}))
"""Of these exactly one is given."""


def bootstraps() -> st.SearchStrategy[dict[str, Any]]:
    return _objects(SCHEMA).map(lambda found: found | ({"source": "Packages"} if "packages" in found else {}))


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    required = set(schema.get("required", ()))
    fields = {name: _SPECIAL[name] if name in _SPECIAL else _of(inner) for name, inner in schema["properties"].items()}
    either = next((pair for pair in _EITHER if pair <= fields.keys()), frozenset[str]())
    if either:
        required |= {"path"} & fields.keys()
        shared = {name: one for name, one in fields.items() if name not in either and name not in _NEVER}
        return st.sampled_from(sorted(either)).flatmap(
            lambda chosen: st.fixed_dictionaries(
                {chosen: fields[chosen], **{name: one for name, one in shared.items() if name in required}},
                optional={name: one for name, one in shared.items() if name not in required},
            )
        )
    return st.fixed_dictionaries(
        {name: one for name, one in fields.items() if name in required},
        optional={name: one for name, one in fields.items() if name not in required and name not in _NEVER},
    )


def _of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object" if "properties" in schema:
            return _objects(schema)
        case "object":
            keys = st.sampled_from(["net.core.somaxconn", "vm.swappiness"])
            if "properties" in schema["additionalProperties"]:
                keys = st.sampled_from(["docker.io", "registry.example:5000", "_default"])
            return st.dictionaries(keys, _of(schema["additionalProperties"]), max_size=2)
        case "array":
            key = next(iter(schema.get("x-kubernetes-list-map-keys", ())), None)
            unique = (lambda item: item[key]) if key else repr
            return st.lists(_of(schema["items"]), min_size=schema.get("minItems", 0), max_size=3, unique_by=unique)
        case "boolean":
            return st.booleans()
    pattern = schema.get("pattern")
    # the patterns are those of Go, where $ is the end of the text alone
    found = st.from_regex(pattern.removesuffix("$") + r"\Z") if pattern else _TEXT
    return found.map(lambda text: text[: schema.get("maxLength", 64)]).filter(bool)
