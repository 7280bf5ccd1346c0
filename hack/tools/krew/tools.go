//go:build tools

// Package tools pins the krew that tests install the plugin with.
package tools

import _ "sigs.k8s.io/krew/cmd/krew"
