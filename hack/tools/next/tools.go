//go:build tools

// Package next pins Kubernetes of the minor after: gangs are tried with its scheduler.
package next

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
