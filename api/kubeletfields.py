"""Fields of KubeletConfiguration ``kubelet.config.k8s.io/v1beta1`` of Kubernetes 1.31 to 1.37, and their types.

A kubelet decodes its configuration strictly: with a field that it does not know, or of another type, it does not
start, and the host never becomes a Node. Source: ``staging/src/k8s.io/kubelet/config/v1beta1/types.go``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from api.durations import parse_duration
from api.faults import FieldError
from api.visible import visible

_BOOLEANS: Final = """
    cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
    enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
    failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
    mergeDefaultEvictionSettings protectKernelDefaults rotateCertificates runOnce seccompDefault
    serializeImagePulls serverTLSBootstrap singleProcessOOMKill
"""
_NUMBERS: Final = """
    containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod healthzPort
    imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIBurst
    kubeAPIQPS maxOpenFiles maxParallelImagePulls maxPods nodeLeaseDurationSeconds
    nodeStatusMaxImages oomScoreAdj podPidsLimit podsPerCore port readOnlyPort registryBurst registryPullQPS
"""
_DURATIONS: Final = """
    containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod
    fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency
    nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
    streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod
"""
_TEXTS: Final = """
    address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxSize
    contentType cpuManagerPolicy hairpinMode healthzBindAddress
    imagePullCredentialsVerificationPolicy imageServiceEndpoint kubeReservedCgroup kubeletCgroups
    memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir reservedSystemCPUs resolvConf
    showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
    tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir
"""
_TEXT_LISTS: Final = """
    allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist tlsCipherSuites
"""
_LISTS: Final = """
    reservedMemory shutdownGracePeriodByPodPriority
"""
_TEXT_MAPS: Final = """
    cpuManagerPolicyOptions defaultPodSysctls evictionHard evictionMinimumReclaim evictionSoft
    evictionSoftGracePeriod kubeReserved qosReserved systemReserved topologyManagerPolicyOptions
"""
_OBJECTS: Final = """
    authentication authorization crashLoopBackOff logging memorySwap staticPodURLHeader tracing userNamespaces
"""
TYPES: Final[Mapping[str, str]] = {
    "featureGates": "a map of booleans",
    "memoryThrottlingFactor": "a fraction",
    "tlsCurvePreferences": "a list of whole numbers",
    **{
        name: what
        for names, what in (
            (_BOOLEANS, "a boolean"), (_NUMBERS, "a whole number"), (_DURATIONS, "a duration like 90s, 10m or 1h30m"),
            (_TEXTS, "text"), (_TEXT_LISTS, "a list of text"), (_LISTS, "a list of objects"),
            (_TEXT_MAPS, "a map of text"), (_OBJECTS, "an object"),
        )
        for name in names.split()
    },
}  # fmt: skip
SINCE: Final[Mapping[str, int]] = {
    "crashLoopBackOff": 32, "singleProcessOOMKill": 32, "imagePullCredentialsVerificationPolicy": 33,
    "mergeDefaultEvictionSettings": 33, "preloadedImagesVerificationAllowlist": 33, "userNamespaces": 33,
    "memoryReservationPolicy": 36, "tlsCurvePreferences": 36, "defaultPodSysctls": 37,
}  # fmt: skip
"""Fields that kubelets before this minor version refuse. All others are older than 1.31."""
OWN: Final[Mapping[str, str]] = {
    "containerRuntimeEndpoint": "is set by kubeadm",
    "providerID": "is set by the Machine's provider",
    "registerNode": "may not be given: a host that does not register never becomes the Machine's Node",
    "registerWithTaints": "is set by spec.taints of the Machine: use that",
}
"""Fields on which the way from the Machine to its Node depends."""
_INSIDE: Final[Mapping[str, frozenset[str]]] = {
    "authentication": frozenset({"anonymous", "webhook", "x509"}),
    "authorization": frozenset({"mode", "webhook"}),
    "crashLoopBackOff": frozenset({"maxContainerRestartPeriod"}),
    "logging": frozenset({"flushFrequency", "format", "options", "verbosity", "vmodule"}),
    "memorySwap": frozenset({"swapBehavior"}),
    "tracing": frozenset({"endpoint", "samplingRatePerMillion"}),
    "userNamespaces": frozenset({"idsPerPod"}),
}
"""Fields of the fields that are objects."""
_KIND: Final = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
_MOST: Final = 256
_INT32: Final = 2**31


def faults(configuration: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """What a kubelet would refuse of it."""
    for name, value in islice(configuration.items(), _MOST):
        if value is None:  # a patch takes the field away
            continue
        if name in _KIND:
            if value != _KIND[name]:
                yield FieldError(f"{path}.{name}", f"must be {_KIND[name]}, or left out")
        elif name in OWN:
            yield FieldError(f"{path}.{name}", OWN[name])
        elif name not in TYPES:
            close = difflib.get_close_matches(str(name)[:64], TYPES, n=1)
            meant = f": {close[0]} is meant?" if close else ""
            yield FieldError(f"{path}.{visible(str(name)[:64])}", f"is no field of KubeletConfiguration{meant}")
        elif not _fits(value, TYPES[name]):
            yield FieldError(f"{path}.{name}", f"must be {TYPES[name]}")
        elif unknown := next((each for each in value if each not in _INSIDE[name]), "") if name in _INSIDE else "":
            yield FieldError(f"{path}.{name}.{visible(str(unknown)[:64])}", "is no field of KubeletConfiguration")


def too_new(configuration: Mapping[str, Any], minor: int) -> Iterator[str]:
    """Names of fields that a kubelet of 1.``minor`` refuses."""
    return (name for name in configuration if SINCE.get(name, 0) > minor)


def _fits(value: object, what: str) -> bool:
    match what.split():
        case ["a", "list", "of", *words]:
            return isinstance(value, list) and all(_is(each, words[-1]) for each in value)
        case ["a", "map", "of", inner]:
            return isinstance(value, Mapping) and all(_is(each, inner) for each in value.values())
        case ["a", "duration", *_]:
            return _is_duration(value)
        case words:
            return _is(value, words[-1])


def _is(value: object, what: str) -> bool:
    if isinstance(value, bool):
        return what.startswith("boolean")
    if isinstance(value, int):
        return what in ("number", "numbers", "fraction") and -_INT32 <= value < _INT32
    if isinstance(value, str):
        return what == "text"
    if isinstance(value, float):
        return what == "fraction"
    return isinstance(value, Mapping) and what.startswith("object")


def _is_duration(value: object) -> bool:
    try:
        parse_duration(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True
