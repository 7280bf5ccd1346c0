"""Rules on ``spec.bootstrap`` that its schema can't say. Total: junk of any shape is answered, never raised."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import islice
from typing import Any, Final

import orjson

from api import kubeletfields, limits, yamltext
from api.durations import parse_duration
from api.faults import FieldError, child, items, text_of
from api.visible import visible

Errors = Iterator[FieldError]

URL_PATTERN = (
    r"^(https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~:/?#@!$&()*+,;=%{}-]*)?|file:///[A-Za-z0-9._~:/@+,=%{}-]*)$"
)
"""A URL without credentials: https, http or file."""
REGISTRY_PATTERN = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?|_default)$"
"""Host of an image registry with an optional port; ``_default`` is containerd's name for all others."""
SYSCTL_PATTERN = r"^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9*]([-_a-z0-9*:.]*[a-z0-9*])?)+$"
"""Name of a kernel setting, such as ``net.ipv4.ip_forward``."""
PATH_PATTERN = r"^(/[A-Za-z0-9._@:+=,-]+)+$"
"""An absolute path without blanks."""
PLACEHOLDERS: Final = frozenset({"minor", "format", "codename", "id"})
"""Names in braces that fields of a package repository may hold."""
OWN_FLAGS: Final = frozenset(
    {"bootstrap-kubeconfig", "config", "config-dir", "container-runtime-endpoint", "hostname-override", "kubeconfig"}
)
"""Flags of the kubelet that kubeadm sets, or on which the way from the Machine to its Node depends."""
FLAGS_OF_FIELDS: Final = {"node-labels": "spec.metadata.labels", "register-with-taints": "spec.taints"}
"""Flags of the kubelet that fields of the Machine set."""
OWN_FILES: Final = frozenset(
    {"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/pki/ca.crt"}
)
"""Files that kubeadm writes. It refuses to join a host that has one of them already."""
RUNTIME_CONFIG: Final = "/etc/containerd/config.toml"
"""containerd's configuration; a file of this path takes the place of ours."""
LONGEST_COMMAND: Final = timedelta(hours=1)
_SYSCTL = re.compile(SYSCTL_PATTERN.removesuffix("$") + r"\Z")
_REGISTRY = re.compile(REGISTRY_PATTERN.removesuffix("$") + r"\Z")
_NO_PLACES = ("/proc/", "/sys/", "/dev/", "/run/")
_KEY_TYPES = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")
_PRIVATE = "PRIVATE KEY"
_PGP = re.compile(
    r"\s*-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n[\x20-\x7e\r\n]*-----END PGP PUBLIC KEY BLOCK-----\s*", re.ASCII
)
_CERTIFICATE = re.compile(r"\s*-----BEGIN CERTIFICATE-----\r?\n[\x20-\x7e\r\n]*-----END CERTIFICATE-----\s*", re.ASCII)


def bootstrap(spec: Mapping[str, Any], path: str) -> Errors:
    """Rules on the ``bootstrap`` of ``spec``, which stands at ``path`` (``spec``, ``spec.template.spec``)."""
    found = spec.get("bootstrap")
    if found is None:
        return
    path = f"{path}.bootstrap"
    if not isinstance(found, Mapping):
        yield FieldError(path, "must be an object")
        return
    if fault := size_fault(found, path):
        yield fault
        return
    if found.get("packages") and found.get("archives") and not found.get("source"):
        yield FieldError(f"{path}.source", "is required where packages and archives are both given")
    for name in ("repository", "runtimeRepository"):
        yield from _repository(child(child(found, "packages"), name), f"{path}.packages.{name}")
    yield from _archives(child(found, "archives"), f"{path}.archives")
    yield from _containerd(child(found, "containerd"), f"{path}.containerd")
    for name in islice(child(found, "sysctls"), 2 * limits.MAX_BOOTSTRAP_FILES):
        if not _SYSCTL.match(str(name)):
            text = "is no name of a kernel setting, such as net.ipv4.ip_forward"
            yield FieldError(f"{path}.sysctls[{visible(str(name)[:64])}]", text)
    for name in ("http", "https"):
        if text_of(child(found, "proxy"), name).startswith("file:"):
            yield FieldError(f"{path}.proxy.{name}", "must be an http or https URL")
    yield from _files(found, path)
    yield from _users(found, path)
    for name in ("preInstallCommands", "preJoinCommands", "postJoinCommands"):
        for index, command in items(found, name):
            yield from _command(command, f"{path}.{name}[{index}]")
    yield from _kubelet(found, path)


def size_fault(found: Mapping[str, Any], path: str) -> FieldError | None:
    """Whether ``found`` is too large or no JSON, which has to be known before anything else looks at it."""
    total = 0
    for name, value in found.items():
        try:
            total += len(orjson.dumps({name: value}))
        except (TypeError, ValueError, RecursionError):
            return FieldError(f"{path}.{visible(str(name)[:64])}", "holds what is no Unicode text or no JSON")
        if total > limits.MAX_BOOTSTRAP_BYTES:
            break
    if total > limits.MAX_BOOTSTRAP_BYTES:
        return FieldError(path, f"has more than {limits.MAX_BOOTSTRAP_BYTES} bytes as JSON")
    return None


def _repository(found: Mapping[str, Any], path: str) -> Errors:
    if not found:
        return
    texts = {name: text_of(found, name) for name in ("url", "suite")}
    for name, text in texts.items():
        unknown = [each for each in re.findall(r"\{([^{}]*)\}?|\}", text) if each not in PLACEHOLDERS]
        if unknown:
            known = ", ".join(f"{{{each}}}" for each in sorted(PLACEHOLDERS))
            yield FieldError(f"{path}.{name}", f"{{{unknown[0]}}} is not known, only {known} are")
    suite, components = texts["suite"], found.get("components")
    flat = not suite or suite.endswith("/")
    if flat and components:
        yield FieldError(f"{path}.components", "must not be given for a flat repository, one whose suite ends in '/'")
    if not flat and not components:
        yield FieldError(f"{path}.components", f"is required with suite {suite[:64]!r}")
    key = text_of(found, "signingKey")
    if _PRIVATE in key:
        yield _private(f"{path}.signingKey")
    elif not _PGP.fullmatch(key):
        yield FieldError(f"{path}.signingKey", "must be a public key as text: -----BEGIN PGP PUBLIC KEY BLOCK-----")


def _archives(found: Mapping[str, Any], path: str) -> Errors:
    kubernetes = child(found, "kubernetes")
    lacking = [name for name in ("kubelet", "kubeadm") if not child(kubernetes, "sha256").get(name)]
    if text_of(kubernetes, "mirror").startswith("http:") and lacking:
        yield FieldError(
            f"{path}.kubernetes.sha256.{lacking[0]}",
            "is required with a mirror of http, which anyone on the way can change: give it, or a mirror of https",
        )


def _containerd(found: Mapping[str, Any], path: str) -> Errors:
    for host, registry in islice(child(found, "registries").items(), 64):
        at = f"{path}.registries[{visible(str(host)[:64])}]"
        if not _REGISTRY.match(str(host)):
            yield FieldError(at, "is no host of a registry with an optional port, nor _default")
        given = registry.get("mirrors") if isinstance(registry, Mapping) else None
        mirrors = given[:16] if isinstance(given, list) else []
        for index, url in enumerate(mirrors):
            if isinstance(url, str) and url.startswith("file:"):
                yield FieldError(f"{at}.mirrors[{index}]", "must be an http or https URL")
            elif url in mirrors[:index]:
                yield FieldError(f"{at}.mirrors[{index}]", "is given twice")
        pem = text_of(registry, "caCertificate")
        if _PRIVATE in pem:
            yield _private(f"{at}.caCertificate")
        elif pem and not _CERTIFICATE.fullmatch(pem):
            yield FieldError(f"{at}.caCertificate", "must be a certificate as text: -----BEGIN CERTIFICATE-----")


def _files(found: Mapping[str, Any], path: str) -> Errors:
    seen: set[str] = set()
    for index, file in items(found, "files"):
        at, name = f"{path}.files[{index}]", text_of(file, "path")
        parts = name.split("/")
        if ".." in parts or "." in parts:
            yield FieldError(f"{at}.path", f"{name!r} has a part that is '.' or '..'")
        elif name in OWN_FILES or "nodewright" in name:
            yield FieldError(f"{at}.path", f"{name!r} is written by kubeadm or by the steps of the join")
        elif name.startswith(_NO_PLACES):
            yield FieldError(f"{at}.path", f"{name!r} would be gone at the next boot")
        if name in seen:
            yield FieldError(f"{at}.path", f"{name!r} is given twice")
        seen.add(name)
        yield from _content(file, at)


def _content(file: Mapping[str, Any], at: str) -> Errors:
    content, source = text_of(file, "content"), file.get("contentFrom")
    if (source is None) == (file.get("content") is None):
        yield FieldError(f"{at}.content", "exactly one of content and contentFrom must be given")
    if source is not None and file.get("encoding") is not None:
        yield FieldError(f"{at}.encoding", "goes with content, not with contentFrom")
    if source is not None and text_of(file, "path") == RUNTIME_CONFIG:
        yield FieldError(f"{at}.contentFrom", "must not be given for containerd's configuration: use content")
    text = content
    if file.get("encoding") == "base64":
        try:
            text = base64.b64decode("".join(content.split()), validate=True).decode(errors="replace")
        except (binascii.Error, ValueError):
            yield FieldError(f"{at}.content", "is not base64, as encoding says")
    if _PRIVATE in text:
        yield _private(f"{at}.content")


def _users(found: Mapping[str, Any], path: str) -> Errors:
    seen: set[str] = set()
    for index, user in items(found, "users"):
        at, name = f"{path}.users[{index}]", text_of(user, "name")
        if name in seen:
            yield FieldError(f"{at}.name", f"{name!r} is given twice")
        seen.add(name)
        keys = user.get("sshAuthorizedKeys")
        for place, key in enumerate(keys[:64] if isinstance(keys, list) else ()):
            if isinstance(key, str) and not any(word.startswith(_KEY_TYPES) for word in key.split()[:-1]):
                text = "is no public key of SSH, such as 'ssh-ed25519 AAAA… name'"
                yield FieldError(f"{at}.sshAuthorizedKeys[{place}]", text)


def _command(command: Mapping[str, Any], at: str) -> Errors:
    if (command.get("argv") is None) == (command.get("script") is None):
        yield FieldError(f"{at}.script", "exactly one of argv and script must be given")
    argv = command.get("argv")
    if isinstance(argv, list) and argv and argv[0] == "":
        yield FieldError(f"{at}.argv[0]", "must name a program")
    script = text_of(command, "script")
    if "\x00" in script:
        yield FieldError(f"{at}.script", "must not hold the character 0")
    if _PRIVATE in script:
        yield _private(f"{at}.script")
    if command.get("timeout") is not None:
        yield from _timeout(command["timeout"], f"{at}.timeout")


def _timeout(timeout: Any, at: str) -> Errors:
    try:
        lasts = parse_duration(timeout) if isinstance(timeout, str) else timedelta()
    except ValueError as fault:
        yield FieldError(at, str(fault))
        return
    if not timedelta(seconds=1) <= lasts <= LONGEST_COMMAND:
        yield FieldError(at, f"must be from 1s to 1h, not {timeout}")


def _kubelet(found: Mapping[str, Any], path: str) -> Errors:
    at, configuration = f"{path}.kubeletConfiguration", child(found, "kubeletConfiguration")
    yield from kubeletfields.faults(configuration, at)
    driver = found.get("cgroupDriver") or "systemd"
    if configuration.get("cgroupDriver") not in (None, driver):
        yield FieldError(f"{at}.cgroupDriver", f"differs from that of containerd, {driver}: set {path}.cgroupDriver")
    if found.get("swap") == "Keep" and configuration.get("failSwapOn") is True:
        yield FieldError(f"{at}.failSwapOn", f"keeps the kubelet from starting, since {path}.swap is Keep")
    if _values(configuration) > limits.MAX_KUBELET_CONFIGURATION_VALUES:
        yield FieldError(at, f"has more than {limits.MAX_KUBELET_CONFIGURATION_VALUES} values")
    for index, patch in items(found, "patches"):
        yield from _patch(patch, f"{path}.patches[{index}]")
    yield from _flags(found, path)


def _flags(found: Mapping[str, Any], path: str) -> Errors:
    seen: set[str] = set()
    for index, flag in items(child(found, "nodeRegistration"), "kubeletExtraArgs"):
        place, name = f"{path}.nodeRegistration.kubeletExtraArgs[{index}].name", text_of(flag, "name")
        if name in OWN_FLAGS:
            yield FieldError(place, f"{name} is set by kubeadm and may not be given")
        elif name in FLAGS_OF_FIELDS:
            yield FieldError(place, f"{name} is set by {FLAGS_OF_FIELDS[name]} of the Machine: use that")
        elif name in seen:
            yield FieldError(place, f"{name} is given twice")
        seen.add(name)


def _patch(patch: Mapping[str, Any], at: str) -> Errors:
    text = text_of(patch, "patch")
    if _PRIVATE in text:
        yield _private(f"{at}.patch")
    try:
        content = yamltext.load(text)
    except yamltext.TextError as fault:
        yield FieldError(f"{at}.patch", f"is no YAML: {fault}")
        return
    wanted, kind = (list, "a list of operations") if patch.get("type") == "json" else (dict, "an object")
    if not isinstance(content, wanted) or not content:
        yield FieldError(f"{at}.patch", f"must be {kind}")
    elif isinstance(content, dict):
        yield from kubeletfields.faults(content, f"{at}.patch")


def _values(content: object) -> int:
    """How many values are in it, counted up to one more than are allowed."""
    waiting, count = [content], 0
    while waiting and count <= limits.MAX_KUBELET_CONFIGURATION_VALUES:
        current = waiting.pop()
        count += 1
        if isinstance(current, Mapping):
            waiting += current.values()
        elif isinstance(current, list):
            waiting += current
    return count


def _private(path: str) -> FieldError:
    return FieldError(path, "holds a private key, but specs are read by many: bring it to the host another way")
