"""The certificates that kubeadm made on a host of a control plane are made anew, and what holds the old ones restarts.

kubeadm's own way ("Certificate Management with kubeadm"): ``kubeadm certs renew all``, then the static pods have to be
restarted, since the controller manager and the scheduler read their kubeconfigs once. Here their processes are ended,
one after the other, and the kubelet starts them again: the manifests stay where they are, so a host that stops in the
middle comes up whole.
"""

from __future__ import annotations

import hashlib
from typing import Final

from controllers.bootstrap.steps import Script, Step

_TIME: Final = 900.0
"""Seconds: 4 static pods, each with up to 180 s."""
_SCRIPT: Final = r"""#!/bin/sh
set -eu
kubeadm certs renew all

pid_of() { # pid_of NAME: of its process in a pod; the kernel keeps 15 characters of a name
  short=$(printf '%.15s' "$1")
  for found in $(pgrep -x "$short" || true); do
    if grep -q kubepods "/proc/$found/cgroup" 2> /dev/null; then echo "$found"; return 0; fi
  done
}

answers() { # the API server of this host: any answer but that of a server that is not ready
  code=$(curl --insecure --silent --output /dev/null --max-time 5 --write-out '%{http_code}' \
    https://127.0.0.1:6443/readyz || true)
  case $code in 000 | 5*) return 1 ;; esac
}

for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  [ -e "/etc/kubernetes/manifests/$name.yaml" ] || continue
  before=$(pid_of "$name")
  [ -z "$before" ] || kill "$before" || true
  tries=0
  while :; do
    now=$(pid_of "$name")
    if [ -n "$now" ] && [ "$now" != "$before" ]; then break; fi
    tries=$((tries + 1))
    [ "$tries" -lt 180 ] || { echo "$name did not come back after its certificates were renewed"; exit 1; }
    sleep 1
  done
done
tries=0
until answers; do
  tries=$((tries + 1))
  [ "$tries" -lt 180 ] || { echo "the API server does not answer after its certificates were renewed"; exit 1; }
  sleep 1
done
"""


def step(value: str) -> Step:
    """``value``: what the Machine's annotation says; once for each."""
    mark = hashlib.sha256(value.encode()).hexdigest()[:16]
    return Step("renew the control plane's certificates", Script(_SCRIPT), timeout=_TIME, once=f"certificates-{mark}")
