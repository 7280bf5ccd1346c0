"""Join → the steps that bring the kubelet of a host that has joined to another version, or why there are none.

kubeadm's order for workers ("Upgrading Linux nodes"): kubeadm, ``kubeadm upgrade node``, kubelet, restart. The steps
need no token: kubeadm reads the cluster's settings as the Node that the host is.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from controllers.bootstrap import documents
from controllers.bootstrap.install import kubernetes_program, repositories
from controllers.bootstrap.join import Join, Refusal, refusals
from controllers.bootstrap.prepare import environment
from controllers.bootstrap.settings import PATH
from controllers.bootstrap.steps import Command, Files, Script, Service, Step, Steps

_IMAGE_HAS_IT = Refusal(f"{PATH}.source", "the image brings the kubelet, so another version needs another host")
_STEADY, _TRIES = 5, 60
_RUNS = f"""\
tries=0 steady=0
while [ "$tries" -lt {_TRIES} ]; do
  if systemctl is-active --quiet kubelet.service; then steady=$((steady + 1)); else steady=0; fi
  [ "$steady" -lt {_STEADY} ] || exit 0
  tries=$((tries + 1))
  sleep 1
done
journalctl --unit=kubelet.service --lines=10 --no-pager --output=cat
echo "the kubelet does not keep running"
exit 1
"""
"""A kubelet that can't read its configuration ends within a second, and its unit starts it again after 10 s."""


def upgrade_steps(join: Join) -> Steps | tuple[Refusal, ...]:
    """The steps, in their order. All may be repeated at any time. ``join.token`` is in none of them."""
    wrong = refusals(join)
    if wrong:
        return wrong
    kubeadm, kubelet = (kubernetes_program(join, program) for program in ("kubeadm", "kubelet"))
    if kubeadm is None or kubelet is None:
        return (_IMAGE_HAS_IT,)
    patches = documents.patch_files(join.settings.spec)
    steps = (
        *repositories(join),
        kubeadm,
        *((Step("write kubeadm's patches", Files(patches)),) if patches else ()),
        Step("read the cluster's configuration of the kubelet", Command(_upgrade_node(join, patched=bool(patches)))),
        kubelet,
        Step("restart the kubelet", Service("kubelet.service", restart=True)),
        Step("wait until the kubelet keeps running", Script(_RUNS), timeout=2.0 * _TRIES),
    )
    return Steps(steps, environment=environment(join.settings, urlsplit(join.server).hostname or ""))


def _upgrade_node(join: Join, *, patched: bool) -> tuple[str, ...]:
    ignored = documents.ignored_errors(join)
    flags = [f"--ignore-preflight-errors={','.join(ignored)}"] if ignored else []
    flags += [f"--patches={documents.PATCHES}"] if patched else []
    return ("kubeadm", "upgrade", "node", *flags)
