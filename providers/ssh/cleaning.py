"""How Kubernetes is taken off a host, and what of it was there before. Shell for ``remote``. Pure.

After a reset the script looks whether all is gone. What is not puts the host into quarantine: nobody gets a host on
which the kubelet, pods or rules of somebody else's cluster may still be.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

BEFORE = """\
before() { # prints the files of Kubernetes that are there
  for file in /usr/bin/kubelet /usr/bin/kubeadm /etc/systemd/system/kubelet.service /etc/cni/net.d/*; do
    [ ! -e "$file" ] || echo "$file"
  done
}
"""

_TROUBLE = """\
trouble() { # trouble TEXT: notes what is not as it should be
  problems="${problems:+$problems; }$1"
}
"""

_COMMAND = """\
commanded() { # commanded COMMAND…: what the user asks for, once for each release unless it fails
  [ ! -e "$home/commanded" ] || return 0
  if (cd / && umask 022 && timeout 600 "$@") > "$home/output" 2>&1 < /dev/null 9>&-; then
    : > "$home/commanded"
  else
    trouble "releaseCommand ended with $?: $(tail -n 3 "$home/output" | tr '\\n' ' ' | head -c 400)"
  fi
}
"""

_REBOOT = """\
booted=$(cat /proc/sys/kernel/random/boot_id)
[ -e "$home/rebooting" ] || { echo "$booted" > "$home/rebooting.new" && mv -f "$home/rebooting.new" "$home/rebooting"; }
if [ -z "$problems" ] && [ "$(cat "$home/rebooting")" = "$booted" ]; then
  sync
  systemctl reboot
  exit 1 # this unit goes on at the next boot; where there is none it is asked for again
fi
"""

_RESET = (
    _TROUBLE
    + """\
bounded() { # bounded COMMAND…: what hangs must not keep the host for ever
  timeout 180 "$@" > "$home/output" 2>&1
}

packaged() { # packaged FILE: whether a package of the host brought it
  dpkg -S "$1" > /dev/null 2>&1 || rpm -qf "$1" > /dev/null 2>&1
}

empty() { # empty FOLDER: all in it, file systems that are mounted there first; the folder may be a mount itself
  [ -d "$1" ] || return 0
  awk -v at="$1/" 'index($2, at) == 1 { print $2 }' /proc/self/mounts | sort -r | while read -r mount; do
    umount "$mount" 2>/dev/null || umount -l "$mount" 2>/dev/null
  done
  find "$1" -mindepth 1 -xdev -delete 2>/dev/null
  [ -z "$(find "$1" -mindepth 1 2>/dev/null | head -n 1)" ] || trouble "$1 can't be emptied"
}

unrule() { # unrule IPTABLES: takes out chains of kube-proxy, kubelet and CNI plugins, and rules that name them
  command -v "$1" > /dev/null 2>&1 || return 0
  if ! "$1-save" > /dev/null 2>&1; then return 0; fi # the host has no such tables
  "$1-save" > "$home/rules" 2> /dev/null || { trouble "rules of $1 can't be kept: is the disk full?"; return 0; }
  grep -E 'KUBE-|CNI-' "$home/rules" > /dev/null || return 0
  grep -v -E 'KUBE-|CNI-' "$home/rules" | "$1-restore" || trouble "rules of $1 can't be written"
  if "$1-save" 2>/dev/null | grep -E 'KUBE-|CNI-' > /dev/null; then trouble "chains of Kubernetes are left in $1"; fi
}

kept() { # kept FILE: whether it was there before the host was claimed
  grep -qxF "$1" "$home/before" 2>/dev/null
}

reset() {
  if [ -x /usr/bin/kubeadm ] && [ -e /etc/kubernetes ]; then
    bounded kubeadm reset --force || trouble "kubeadm reset: $(tail -n 3 "$home/output" | tr '\\n' ' ' | head -c 400)"
  fi
  bounded systemctl disable --now kubelet.service
  if systemctl is-active --quiet kubelet.service; then trouble "the kubelet still runs"; fi
  empty /var/lib/kubelet
  if [ -e /var/lib/nodewright/control-plane-begun ]; then # kubeadm made an etcd here, or began to
    empty /var/lib/etcd
    rm -f /var/lib/nodewright/control-plane /var/lib/nodewright/control-plane-begun
  fi
  taker=/var/lib/nodewright/take-users # there if steps made users, or gave something to one
  if [ -e "$taker" ] && ! bounded /bin/sh "$taker" /dev/null; then
    trouble "users of its Machine are left: $(tail -n 3 "$home/output" | tr '\\n' ' ' | head -c 400)"
  fi
  rm -rf /etc/kubernetes /etc/nodewright /var/lib/nodewright/former /var/lib/nodewright/files
  rm -f "$taker" /var/lib/nodewright/users.wanted
  rm -rf /var/lib/cni /var/lib/dockershim /var/run/kubernetes
  [ ! -e /etc/kubernetes ] || trouble "/etc/kubernetes can't be removed"
  for file in /usr/bin/kubelet /usr/bin/kubeadm /etc/systemd/system/kubelet.service /etc/cni/net.d/*; do
    [ -e "$file" ] && ! kept "$file" && ! packaged "$file" || continue
    rm -rf "$file"
    [ ! -e "$file" ] || trouble "$file can't be removed"
  done
  rm -rf /etc/systemd/system/kubelet.service.d
  systemctl daemon-reload
  unrule iptables
  unrule ip6tables
  for link in cni0 flannel.1 kube-ipvs0 nodelocaldns; do
    [ ! -e "/sys/class/net/$link" ] || ip link delete "$link" || trouble "the interface $link can't be removed"
  done
}
"""
)

_MAIN = """\
problems=''
lock
if [ -e "$home/claim" ]; then # else the host lost its power after its claim went, and before the rest did
holds "$id" || exit 0
for unit in "$prepare_unit" "$join_unit" "$change_unit"; do
  systemctl disable --quiet "$unit" > /dev/null 2>&1
  timeout 60 systemctl stop "$unit" > "$home/output" 2>&1
  if runs "$unit"; then problems='the steps still run'; fi
done
%s
%s
rm -rf "$bootstrap" "$units/$join_unit" "$home/join.sh" "$home/started" "$home/output" "$home/rules"
rm -f "$units/$change_unit" "$home/change.sh" "$home/changing" "$home/changed"
rm -f "$units/$prepare_unit" "$home/prepare.sh"
if [ -n "$problems" ]; then
  printf '%%s\\n' "$problems" > "$home/quarantine.new" && mv -f "$home/quarantine.new" "$home/quarantine" || exit 1
fi
%s
sync
fi
rm -f "$home/claim" # from here on the host is another one's to claim, as soon as this script gives the lock back
systemctl disable --quiet "$clean_unit" > /dev/null 2>&1
rm -f "$home/before" "$units/$clean_unit" "$home/clean.sh" "$home/releasing" "$home/commanded" "$home/rebooting"
rm -f "$home/kubelet"
"""


def script(how: str = "Reset", command: Sequence[str] = ()) -> str:
    """The body of the script; ``id``, ``home``, ``units`` and the units' names are set before it."""
    reset = how != "Leave"
    asked = f"commanded {shlex.join(command)}" if command else ""
    functions = (_RESET if reset else _TROUBLE) + (_COMMAND if command else "")
    return functions + _MAIN % ("reset" if reset else "", asked, _REBOOT if how == "Reboot" else "")
