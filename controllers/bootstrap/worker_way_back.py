"""The way back of a host without a control plane: what a change in place keeps before, and what puts it back.

Its kubelet, the container runtime, their configuration and the files of ``spec.bootstrap`` are kept once, before the
first step of a change, and until a change has succeeded or was taken back: a change that takes the place of a half one
goes back to what was there before both.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from controllers.bootstrap.documents import MODULES_FILE, SYSCTL_FILE
from controllers.bootstrap.prepare import LISTED, PROXY_FILES
from controllers.bootstrap.steps import Script, Step
from controllers.bootstrap.way_back import FORMER
from controllers.bootstrap.worker_users import TAKER, USERS

PROGRAMS: Final = (
    "/usr/bin/kubelet", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env",
    "/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/runc", "/usr/sbin/runc",
    "/usr/local/bin/containerd", "/usr/local/bin/containerd-shim-runc-v2", "/usr/local/sbin/runc",
    "/etc/containerd/config.toml", "/etc/systemd/system/containerd.service", LISTED,
    *PROXY_FILES.values(), SYSCTL_FILE, MODULES_FILE,
    "/etc/chrony.conf", "/etc/chrony/chrony.conf", "/etc/systemd/timesyncd.conf.d/nodewright.conf",
)  # fmt: skip
"""Where kubelet and container runtime are, however they came there, and what else of a host a change writes."""
_KEEP: Final = r"""#!/bin/sh
set -eu
umask 077
if [ "$(cat "$former/of" 2> /dev/null)" = "$attempt" ] && [ ! -e "$former/over" ]; then
  echo "it was kept before"
  exit 0
fi
new=$former
if [ ! -e "$former/of" ] || [ -e "$former/over" ]; then
  rm -rf "$former"
  if ! systemctl is-active --quiet kubelet.service; then
    echo "the kubelet does not run: there is nothing to go back to"
    exit 0
  fi
  new=$former.new
  rm -rf "$new"
  mkdir -p "$new/root"
  : > "$new/absent"
fi
keep() { # keep PATH: unless it was kept or noted before
  if [ -e "$new/root$1" ] || grep -qxF -e "$1" "$new/absent"; then return 0; fi
  if [ -f "$root$1" ]; then
    mkdir -p "$new/root$(dirname "$1")"
    cp -p "$root$1" "$new/part"
    mv -f "$new/part" "$new/root$1"
  elif [ ! -e "$root$1" ]; then
    echo "$1" >> "$new/absent"
  fi
}
while IFS= read -r path; do
  [ -z "$path" ] || keep "$path"
done <<END
$paths
$(cat "$root$listed" 2> /dev/null)
END
if [ ! -e "$new/users" ]; then # what users have by then
  if [ -e "$root$users" ]; then cp "$root$users" "$new/users.new"; else : > "$new/users.new"; fi
  mv -f "$new/users.new" "$new/users"
fi
while IFS= read -r name; do # what the kernel has now, unless it was noted before
  if [ -z "$name" ] || grep -qF -e "$name = " "$new/sysctls" 2> /dev/null; then continue; fi
  value=$(sysctl -n "$name" 2> /dev/null) || continue
  printf '%s = %s\n' "$name" "$value" >> "$new/sysctls"
done <<END
$sysctls
END
echo "$back" | base64 -d > "$new/back"
printf '%s\n' "$attempt" > "$new/of.new"
mv -f "$new/of.new" "$new/of"
sync
[ "$new" = "$former" ] || mv "$new" "$former"
"""
_BACK: Final = r"""#!/bin/sh
set -eu
umask 077
[ -e "$former/of" ]
# Put beside their places before anything is renamed: a disk that is full leaves all as it is.
restored=$former/restored
: > "$restored"
find "$former/root" -type f > "$former/list"
while IFS= read -r kept; do
  path=${kept#"$former/root"}
  if cmp -s "$kept" "$root$path"; then continue; fi
  mkdir -p "$(dirname "$root$path")"
  cp -p "$kept" "$root$path.nodewright-back"
  echo "$path" >> "$restored"
done < "$former/list"
while IFS= read -r path; do
  mv -f "$root$path.nodewright-back" "$root$path"
  echo "$path was put back"
done < "$restored"
while IFS= read -r path; do
  [ ! -f "$root$path" ] || { rm -f "$root$path" && echo "$path" >> "$restored" && echo "$path was removed"; }
done < "$former/absent"
rm -rf "$archives" # what was unpacked is no longer what is there
if [ -e "$former/sysctls" ]; then sysctl -e -q -p "$former/sysctls" || true; fi
systemctl daemon-reload
if grep -q -e chrony -e timesyncd "$restored"; then
  for unit in chrony.service chronyd.service systemd-timesyncd.service; do systemctl try-restart "$unit" || true; done
fi
systemctl restart containerd.service || true
systemctl reset-failed kubelet.service || true
systemctl restart kubelet.service
steady=0
while [ "$steady" -lt 3 ]; do
  sleep 1
  systemctl is-active --quiet kubelet.service || { echo "the kubelet of before does not run either"; exit 1; }
  steady=$((steady + 1))
done
[ ! -e "$former/users" ] || [ ! -e "$root$taker" ] || /bin/sh "$root$taker" "$former/users"
: > "$former/over"
echo "the host went back: kubelet, container runtime, configuration and files are those of before"
"""
_PUT_BACK: Final = r"""#!/bin/sh
[ "$(cat "$former/of" 2> /dev/null)" = "$attempt" ] && [ ! -e "$former/over" ] && exec /bin/sh "$former/back"
exit 1
"""
_ARCHIVES: Final = "/var/lib/nodewright/bootstrap/archives"
OVER: Final = f"[ ! -e {FORMER}/of ] || : > {FORMER}/over\n"
"""Last of all: what was kept is no longer a way back."""


def keep(attempt: str, files: Sequence[str], sysctls: Iterable[str]) -> Step:
    """Before anything is changed. ``attempt``: another text for another change; ``files``: paths that it writes;
    ``sysctls``: names of what it sets.
    """
    return Step("keep what the host can go back to", Script(keeping(attempt, files, sysctls=sysctls)))


def put_back(attempt: str) -> str:
    """The rescue of each step after it. Succeeds once the kubelet of before keeps running."""
    return script(_PUT_BACK, former=FORMER, attempt=attempt)


def keeping(
    attempt: str, files: Sequence[str], *, sysctls: Iterable[str] = (), root: str = "", former: str = FORMER
) -> str:
    """``root``: folder in which the host's files are, for tests."""
    back = script(_BACK, former=former, root=root, archives=root + _ARCHIVES, taker=TAKER)
    paths = "\n".join(dict.fromkeys([*PROGRAMS, *files]))
    encoded = base64.b64encode(back.encode()).decode()
    noted = "\n".join(sorted(sysctls))
    values = {"former": former, "root": root, "attempt": attempt, "paths": paths, "listed": LISTED, "users": USERS}
    return script(_KEEP, **values, back=encoded, sysctls=noted)


def script(text: str, **values: str) -> str:
    """``text`` with ``values`` as variables of the shell, after its first line."""
    shebang, _, rest = text.partition("\n")
    assigned = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return f"{shebang}\n{assigned}{rest}"
