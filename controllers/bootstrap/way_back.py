"""The way back of a host that runs a control plane: what an upgrade in place keeps before, and does when it has failed.

kubeadm puts the manifests of static pods back by itself when one of them does not come up (``rollbackOldManifests``),
and says so; that is checked here, not done again. A kubelet that does not keep running gives way to the one before.
etcd is never taken back by us: its data may be of the new version already.
"""

from __future__ import annotations

import shlex
from typing import Final

from controllers.bootstrap.steps import Script, Step

FORMER: Final = "/var/lib/nodewright/former"
KUBEADM_WENT_BACK: Final = "kubeadm has tried to recover everything into the earlier state"
_LOG: Final = "/var/lib/nodewright/bootstrap/log"
_PATHS: Final = {
    "former": FORMER,
    "log": _LOG,
    "kubelet": "/usr/bin/kubelet",
    "settings": "/var/lib/kubelet",
    "manifests": "/etc/kubernetes/manifests",
}
_KEEP: Final = r"""#!/bin/sh
set -eu
umask 077
if [ "$(cat "$former/of" 2> /dev/null)" = "$attempt" ]; then
  echo "it was kept before"
  exit 0
fi
if ! systemctl is-active --quiet kubelet.service; then
  echo "the kubelet does not run: what was kept before stays"
  exit 0
fi
rm -rf "$former.new"
mkdir -p "$former.new"
cp -p "$kubelet" "$former.new/kubelet"
for file in config.yaml kubeadm-flags.env; do
  [ ! -e "$settings/$file" ] || cp -p "$settings/$file" "$former.new/$file"
done
for component in $components; do
  cp -p "$manifests/$component.yaml" "$former.new/$component.yaml"
done
printf '%s\n' "$attempt" > "$former.new/of"
sync
rm -rf "$former"
mv "$former.new" "$former"
"""
_CONTROL_PLANE: Final = r"""#!/bin/sh
set -eu
umask 077
grep -qF "$sign" "$log" || exit 1
[ "$(cat "$former/of" 2> /dev/null)" = "$attempt" ] || exit 1
for component in $components; do
  if ! cmp -s "$former/$component.yaml" "$manifests/$component.yaml"; then
    cp -p "$former/$component.yaml" "$former/back" && mv -f "$former/back" "$manifests/$component.yaml"
    echo "the manifest of $component was put back"
  fi
done
echo "the host went back: its static pods are those of before, and so is its kubelet"
"""
_KUBELET: Final = r"""#!/bin/sh
set -eu
umask 077
[ "$(cat "$former/of" 2> /dev/null)" = "$attempt" ] && [ -x "$former/kubelet" ] || exit 1
cp -p "$former/kubelet" "$kubelet.back" && mv -f "$kubelet.back" "$kubelet"
for file in config.yaml kubeadm-flags.env; do
  [ -e "$former/$file" ] || continue
  cp -p "$former/$file" "$settings/$file.back"
  mv -f "$settings/$file.back" "$settings/$file"
done
systemctl reset-failed kubelet.service || true
systemctl restart kubelet.service
echo "the host went back to the kubelet of before; its static pods are of the new version"
"""
_COMPONENTS: Final = "kube-apiserver kube-controller-manager kube-scheduler"


def keep(attempt: str) -> Step:
    """Before anything is changed. ``attempt``: what is being tried; the same one keeps the same things when it is begun
    again, though half of it may be done."""
    return Step("keep what the host can go back to", Script(script(_KEEP, attempt)))


def of_control_plane(attempt: str) -> str:
    """Succeeds if kubeadm has put the static pods back."""
    return script(_CONTROL_PLANE, attempt)


def of_kubelet(attempt: str) -> str:
    """Succeeds once the kubelet of before was started again."""
    return script(_KUBELET, attempt)


def script(text: str, attempt: str, **paths: str) -> str:
    """``paths``: others than those of a host, for tests."""
    values = {"attempt": attempt, "components": _COMPONENTS, "sign": KUBEADM_WENT_BACK, **_PATHS, **paths}
    shebang, _, rest = text.partition("\n")
    assigned = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return f"{shebang}\n{assigned}{rest}"
