//go:build tools

// Karpenter with its provider of simulated Nodes, for hack/race.
package tools

import _ "sigs.k8s.io/karpenter/kwok"
