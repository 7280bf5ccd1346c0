//go:build tools

// Pins the programs of a Sigstore that `make e2e-sigstore` starts (hack/sigstore).
package tools

import (
	_ "github.com/sigstore/fulcio"
	_ "github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix"
	_ "github.com/sigstore/timestamp-authority/v2/cmd/timestamp-server"
	_ "github.com/transparency-dev/tesseract/cmd/tesseract/posix"
)
