package main

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
)

// ignored are labels in which nodes of similar groups may differ.
var ignored = map[string]bool{
	corev1.LabelHostname: true, corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true,
	corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true,
	"beta.kubernetes.io/fluentd-ds-ready": true, "kops.k8s.io/instancegroup": true,
}

// similar: the same resources in about the same amounts, and the same labels but for those of the place.
func similar(one, other *corev1.Node) bool {
	return close(one.Status.Capacity, other.Status.Capacity, 0, 0.015) &&
		close(one.Status.Allocatable, other.Status.Allocatable, 0.05, 0.05) &&
		maps.Equal(compared(one.Labels), compared(other.Labels))
}

func compared(labels map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range labels {
		if !ignored[key] {
			found[key] = value
		}
	}
	return found
}

// close: no amount differs by more than that part of the larger one.
func close(one, other corev1.ResourceList, usual, memory float64) bool {
	if len(one) != len(other) {
		return false
	}
	for name, amount := range one {
		there, ok := other[name]
		part := usual
		if name == corev1.ResourceMemory {
			part = memory
		}
		here, their := amount.AsApproximateFloat64(), there.AsApproximateFloat64()
		if !ok || math.Abs(here-their) > part*math.Max(here, their) {
			return false
		}
	}
	return true
}
