//go:build tools

// The kubelets of Karpenter's simulated Nodes, for hack/race.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
