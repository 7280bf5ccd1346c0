//go:build tools

// Package previous pins the kubelet of the minor before: hosts of the lab start with it and are rolled to the other.
package previous

import (
	_ "k8s.io/kubernetes/cmd/kubeadm"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
