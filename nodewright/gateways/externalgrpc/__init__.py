"""The Cluster Autoscaler's door (``--cloud-provider=externalgrpc``): gRPC in, edits of replicas out.

gRPC for Python has no setting for the lowest TLS version, but one for the cipher suites of TLS 1.2 and older, which it
reads when it is loaded: hence here. A suite that needs a key which nobody has agreed upon leaves TLS 1.3 alone.
"""

from __future__ import annotations

import os
import sys

TLS_1_3_ONLY = "grpc" not in sys.modules
"""False if something else in this process has loaded gRPC first."""
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-PSK-CHACHA20-POLY1305"
