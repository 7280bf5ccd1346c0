"""Join → the steps that bring a worker that has joined to what its Machine asks for now, where it stands.

Users, files, proxies, time servers, kernel settings, container runtime, kubeadm, ``kubeadm upgrade node`` (which writes
the kubelet's configuration), kubelet. Each step may be repeated, does nothing where all is as asked for, and has a way
back. What users lose comes last, and has none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from api.bootstrap import BootstrapSpec
from controllers.bootstrap import documents, prepare, worker_users, worker_way_back
from controllers.bootstrap.install import kubernetes_program, present, repositories, runtime_steps
from controllers.bootstrap.join import Join
from controllers.bootstrap.steps import Account, ContentFile, File, Files, Present, Script, Service, Step, TimeServers
from controllers.kernel.memory import digest

TRIES: Final = 10
"""Of a step that fetches something, before the host goes back: about 6 min. The others fail for good at once."""
STEADY, _LONGEST = 5, 60
RUNS: Final = f"""\
tries=0 steady=0
while [ "$tries" -lt {_LONGEST} ]; do
  if systemctl is-active --quiet kubelet.service; then steady=$((steady + 1)); else steady=0; fi
  [ "$steady" -lt {STEADY} ] || exit 0
  tries=$((tries + 1))
  sleep 1
done
journalctl --unit=kubelet.service --lines=10 --no-pager --output=cat
echo "the kubelet does not keep running"
exit 1
"""
"""A kubelet that can't read its configuration ends within a second, and its unit starts it again after 10 s."""
WAIT: Final = Step("wait until the kubelet keeps running", Script(RUNS), timeout=2.0 * _LONGEST)
_UNLIST: Final = r"""#!/bin/sh
set -eu
[ -e "$listed" ] || exit 0
while IFS= read -r path; do
  printf '%s' "$wanted" | grep -qxF -e "$path" || { rm -f "$path" && echo "$path was removed"; }
done < "$listed"
"""
_RERUN: Final = r"""#!/bin/sh
systemctl daemon-reload
wanted=$(systemctl show --property=ExecStart --value containerd.service | sed -n 's/^{ path=\([^ ;]*\).*/\1/p')
pid=$(systemctl show --property=MainPID --value containerd.service)
if [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$wanted")" ]; then
  echo "it runs already"
else
  systemctl restart containerd.service
fi
"""
"""One that was replaced on the disk still runs as it was, and one with another unit from another place."""


_UNPROXY: Final = r"""#!/bin/sh
for unit in $units; do
  file=/etc/systemd/system/$unit.d/nodewright-proxy.conf late=/var/lib/nodewright/bootstrap/restart.$unit
  if [ ! -e "$file" ] && [ ! -e "$late" ]; then continue; fi
  : > "$late" && rm -f "$file" && systemctl daemon-reload || exit 1
  if systemctl is-active --quiet "$unit"; then systemctl restart "$unit" || exit 1; fi
  rm -f "$late"
done
"""
"""``late``, as of ``configure``: a restart that is still owed if all ends in between."""
_APPLY: Final = "apply kernel settings"


def steps(join: Join, upgraded: Step) -> tuple[Step, ...]:
    """``upgraded``: kubeadm's own step."""
    spec = join.settings.spec
    plain, secret = prepare.plain_files(spec), prepare.content_files(spec)
    kubeadm, kubelet = (kubernetes_program(join, each) or present(join, each) for each in ("kubeadm", "kubelet"))
    patches = documents.patch_files(spec)
    changes = (
        worker_users.noted(spec),
        *prepare.user_steps(spec),
        *_files(spec, plain),
        *(Step(f"write {each.path}", each) for each in secret),
        *_proxies(join),
        Step("set time servers", TimeServers(tuple(spec.ntp.servers) if spec.ntp else ())),
        *prepare.kernel_files(spec),
        _applied(spec),
        *repositories(join),
        *runtime_steps(join),
        Step("run the containerd that is installed", Script(_RERUN)),
        kubeadm,
        *((Step("write kubeadm's patches", Files(patches)),) if patches else ()),
        upgraded,
        kubelet,
        *((present(join, "kubelet"),) if not isinstance(kubelet.action, Present) else ()),
        Step("restart the kubelet", Service("kubelet.service", restart=True)),
        WAIT,
    )
    attempt = digest([repr(changes)], 16)
    back = worker_way_back.put_back(attempt)
    rescued = (replace(step, rescue=back, rescue_after=_tries(step)) for step in changes)
    over = Step("note that the change is done", Script(worker_way_back.OVER))
    paths = [*(file.path for file in plain), *(file.path for file in secret), *worker_users.sudoers(spec)]
    kept = worker_way_back.keep(attempt, paths, {**documents.SYSCTLS, **(spec.sysctls or {})})
    return (kept, *rescued, over, worker_users.taken())


def _tries(step: Step) -> int:
    at_once = isinstance(step.action, Present | Service | ContentFile | Account | TimeServers)
    return 1 if at_once or step is WAIT or step.name == _APPLY else TRIES


def _applied(spec: BootstrapSpec) -> Step:
    """Of ours alone: ``--system`` would also write anew what a network plugin has set since. Those of the spec have to
    be possible, as at the join.
    """
    lenient = "" if spec.sysctls else " -e"
    return Step(_APPLY, Script(f"sysctl -q{lenient} -p {documents.SYSCTL_FILE}\n"))


def _proxies(join: Join) -> tuple[Step, ...]:
    """Each restarts its unit if it is another file than before. Containers run on."""
    unset = Step("take the proxies away", Script(worker_way_back.script(_UNPROXY, units=" ".join(prepare.PROXY_FILES))))
    return prepare.proxy_steps(join.settings, urlsplit(join.server).hostname or "") or (unset,)


def _files(spec: BootstrapSpec, plain: tuple[File, ...]) -> tuple[Step, ...]:
    """Those that are asked for no longer go, as far as the host has a list of them."""
    listed = prepare.file_list(spec)
    unlist = worker_way_back.script(_UNLIST, listed=listed.path, wanted=str(listed.content))
    gone = Step("remove files that are asked for no longer", Script(unlist))
    return (gone, Step("write files", Files((*plain, listed))))
