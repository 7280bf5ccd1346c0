//go:build tools

// Package tools pins the Helm that tests render the chart with.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
