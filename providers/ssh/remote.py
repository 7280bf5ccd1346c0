"""What is done on a host: POSIX shell that reads all its values from its own standard input. Pure.

Nothing is an argument or a variable of a process: arguments and environments of processes can be read by others on
the host, what goes through ``echo`` of the shell cannot. Answers are lines of a word and base64.

| file below ``HOME`` | |
|---|---|
| ``claim`` | first line the claim's id, second line the claim. Made by link(2), which fails where there is one |
| ``before`` | what of Kubernetes was on the host when it was claimed, and stays when it is cleaned |
| ``prepare.sh`` | the steps that were begun before the host can join |
| ``started`` | the id of the claim whose steps were started |
| ``releasing`` | the host is being cleaned |
| ``changing`` | the hash of the request that the host is brought to |
| ``changed`` | the hash of the last one whose steps are done |
| ``login`` | the user as whom the controllers logged in |
| ``kubelet`` | which file the kubelet is, and the version that it tells |
| ``commanded`` | the user's command was run in this release |
| ``rebooting`` | the boot id that the host has to lose before it is free |
| ``quarantine`` | why nobody may have the host; a person removes it |
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Sequence

from providers.ssh import checkup, cleaning

HOME = "/var/lib/nodewright/ssh"
BOOTSTRAP = "/var/lib/nodewright/bootstrap"
JOIN_UNIT, CLEAN_UNIT = "nodewright-bootstrap.service", "nodewright-release.service"
CHANGE_UNIT = "nodewright-change.service"
PREPARE_UNIT = "nodewright-prepare.service"
UNITS = "/etc/systemd/system"

_PRELUDE = f"""\
set -u
umask 077
PATH=${{PATH:+$PATH:}}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
home={HOME} bootstrap={BOOTSTRAP} units={UNITS} change_unit={CHANGE_UNIT} prepare_unit={PREPARE_UNIT}

tell() {{ # tell WORD, with what to tell on standard input
  printf '%s %s\\n' "$1" "$(base64 | tr -d '\\n')"
}}

put() {{ # put MODE PATH, with the content as base64 on standard input
  base64 -d > "$2.new" && chmod "$1" "$2.new" && mv -f "$2.new" "$2"
}}

holds() {{ # holds ID: whether the host has this claim. No process of its own reads it: that could be ended alone
  held=
  [ ! -e "$home/claim" ] || IFS= read -r held < "$home/claim" || [ ! -e "$home/claim" ] || unread
  [ "$held" = "$1" ]
}}

unread() {{
  echo "$home/claim can't be read" >&2
  exit 74
}}

tell_claim() {{ # all of it or nothing: without power or memory, a part of a pipeline may end before the shell does
  line=$(sed -n 2p "$home/claim") && line=$(printf '%s\\n' "$line" | base64) && [ -n "$line" ] || unread
  printf 'claim '
  printf '%s' $line # base64 has no character that the shell expands
  echo
}}

stop() {{ # says why nothing could be written; the shell's own words don't name the disk
  free=$(df -Pk "$home" /var/lib 2> /dev/null | awk 'NR == 2 {{ print $4 }}')
  echo "$home can't be written to: ${{free:-?}} KiB are free there" >&2
  exit 70
}}

lock() {{
  mkdir -p "$home" || stop
  exec 9> "$home/lock" || stop
  flock -w 20 9 || {{ echo "another process holds $home/lock" >&2; exit 75; }}
}}

runs() {{ # runs UNIT: whether systemd runs it or is about to
  case $(systemctl is-active "$1" 2> /dev/null) in
    active | activating | deactivating | reloading) return 0 ;;
    *) return 1 ;;
  esac
}}

run_unit() {{ # run_unit UNIT: now, without waiting for its end, and at each boot
  systemctl daemon-reload && systemctl reset-failed "$1" > /dev/null 2>&1
  systemctl enable --quiet "$1" && systemctl start --no-block "$1"
}}
"""

_LOOK = """\
# look
uname -n | tell hostname
date +%s | tell time
tell boot < /proc/sys/kernel/random/boot_id
[ ! -e "$home/claim" ] || tell_claim
[ ! -e "$home/quarantine" ] || head -c 1000 "$home/quarantine" | tell quarantine
[ ! -e "$home/releasing" ] || echo yes | tell releasing
[ ! -e "$home/started" ] || tell started < "$home/started"
[ ! -e "$home/changing" ] || tell changing < "$home/changing"
[ ! -e "$bootstrap/failure" ] || head -c 300 "$bootstrap/failure" | tell failure
[ ! -e "$bootstrap/failed.log" ] || [ ! -e "$bootstrap/failure" ] || tail -c 1000 "$bootstrap/failed.log" | tell log
settled=/etc/kubernetes/kubelet.conf # of a host that has joined, and to which nothing is being done
for busy in releasing changing join.sh; do [ ! -e "$home/$busy" ] || settled=; done
if [ -e "$home/claim" ] && [ -n "$settled" ] && [ -e "$settled" ]; then
  systemctl is-active kubelet.service 2> /dev/null | tell kubelet
  file=$(stat -L -c '%i %Y %s' /usr/bin/kubelet 2> /dev/null)
  if [ "$(sed -n 1p "$home/kubelet" 2> /dev/null)" != "$file" ]; then # asked once for each program: it takes 0.1 s
    { echo "$file" && timeout 10 /usr/bin/kubelet --version; } > "$home/kubelet.new" 2> /dev/null
    mv -f "$home/kubelet.new" "$home/kubelet"
  fi
  sed -n 2p "$home/kubelet" 2> /dev/null | tell version
fi
"""

_CLAIM = """\
# claim
lock
if [ -e "$home/quarantine" ]; then head -c 1000 "$home/quarantine" | tell quarantine; exit 0; fi
if [ ! -e "$home/claim" ]; then
  rm -rf "$home"/claim.* "$home"/*.new "$bootstrap" "$home/started" "$home/releasing" "$home/changing" "$home/changed"
  rm -f "$home/commanded" "$home/rebooting" "$home/kubelet" "$home/starts" "$home/prepare.sh"
  before > "$home/before" || stop
fi
{ echo "$id" && echo "$claim" | base64 -d && echo; } > "$home/claim.$id" && sync || stop
ln "$home/claim.$id" "$home/claim" 2>/dev/null
rm -f "$home/claim.$id"
tell_claim
"""

_PREPARE = """\
# prepare
lock
holds "$id" && [ ! -e "$home/releasing" ] && [ ! -e "$home/started" ] || { echo gone | tell gone; exit 0; }
if [ ! -e "$home/prepare.sh" ]; then
  echo "$unit" | put 644 "$units/$prepare_unit" && echo "$script" | put 600 "$home/prepare.sh" || stop
  systemctl daemon-reload && systemctl start --no-block "$prepare_unit" || stop
fi
echo yes | tell preparing
"""

_START = """\
# start
lock
holds "$id" && [ ! -e "$home/releasing" ] || { echo gone | tell gone; exit 0; }
if [ "$(cat "$home/started" 2>/dev/null)" != "$id" ]; then
  login
  echo "$script" | put 600 "$home/join.sh" && echo "$unit" | put 644 "$units/$join_unit" || stop
  run_unit "$join_unit" || stop
  echo "$id" > "$home/started.new" && mv -f "$home/started.new" "$home/started" || stop
fi
echo yes | tell started
"""

_CHANGE = """\
# change
lock
holds "$id" && [ ! -e "$home/releasing" ] || { echo gone | tell gone; exit 0; }
if [ -e "$home/join.sh" ] || [ ! -e /etc/kubernetes/kubelet.conf ]; then
  if runs "$join_unit" && [ ! -e "$bootstrap/failure" ]; then echo yes | tell busy; else echo yes | tell joining; fi
  exit 0
fi
login
runs "$change_unit" && state=running || state=still
if [ ! -e "$home/changing" ] && [ "$(cat "$home/changed" 2>/dev/null)" = "$hash" ]; then
  { echo "$id" && echo "$claim" | base64 -d && echo; } > "$home/claim.new" && sync || stop
  mv -f "$home/claim.new" "$home/claim" && rm -f "$home/change.sh" && echo yes | tell changed
  exit 0
fi
if [ "$(cat "$home/changing" 2>/dev/null)" != "$hash" ]; then
  if [ "$state" = running ] && [ ! -e "$bootstrap/failure" ]; then echo yes | tell busy; exit 0; fi
  timeout 60 systemctl stop "$change_unit" > /dev/null 2>&1
  if runs "$change_unit"; then echo yes | tell busy; exit 0; fi
  rm -f "$home/changed" "$bootstrap/failure" "$bootstrap/failed.log" "$bootstrap/progress" "$bootstrap/gave-up"
  echo "$script" | put 600 "$home/change.sh" && echo "$unit" | put 644 "$units/$change_unit" || stop
  echo "$hash" > "$home/changing.new" && mv -f "$home/changing.new" "$home/changing" || stop
  state=still
fi
if [ -e "$bootstrap/gave-up" ]; then head -c 1000 "$bootstrap/gave-up" | tell gave-up; exit 0; fi
[ "$state" = running ] || run_unit "$change_unit" || stop
[ ! -e "$bootstrap/progress" ] || head -c 300 "$bootstrap/progress" | tell progress
[ ! -e "$bootstrap/failure" ] || head -c 300 "$bootstrap/failure" | tell failure
[ ! -e "$bootstrap/failed.log" ] || [ ! -e "$bootstrap/failure" ] || tail -c 1000 "$bootstrap/failed.log" | tell log
"""

_REBIND = """\
# rebind
lock
holds "$id" && [ ! -e "$home/releasing" ] || { echo gone | tell gone; exit 0; }
case $(sed -n 2p "$home/claim") in
  *"$before"*)
    { echo "$id" && echo "$claim" | base64 -d && echo; } > "$home/claim.new" && sync || stop
    mv -f "$home/claim.new" "$home/claim" || stop ;;
esac
tell_claim
"""

_REBOOT = """\
# reboot
holds "$id" && [ ! -e "$home/releasing" ] || { echo gone | tell gone; exit 0; }
ordered=/run/nodewright-reboot # gone with the boot; systemd refuses a second order while it goes down
if [ "$(cat /proc/sys/kernel/random/boot_id)" = "$boot" ] && [ "$(cat "$ordered" 2> /dev/null)" != "$attempt" ]; then
  said=$(systemctl reboot 2>&1 < /dev/null) || { echo "systemctl reboot: $said" >&2; exit 71; }
  { echo "$attempt" > "$ordered"; } 2> /dev/null
fi
echo yes | tell rebooting
"""

_START_KUBELET = """\
# start-kubelet
lock
holds "$id" && [ -e /etc/kubernetes/kubelet.conf ] || { echo gone | tell gone; exit 0; }
for busy in releasing changing join.sh; do [ ! -e "$home/$busy" ] || { echo "$busy" | tell busy; exit 0; }; done
if runs kubelet.service; then echo yes | tell runs; exit 0; fi
now=$(date +%s)
awk -v now="$now" 'now - $1 < 3600 && $1 - now < 3600' "$home/starts" > "$home/starts.new" 2> /dev/null
number=$(wc -l < "$home/starts.new")
if [ "$number" -ge "$most" ]; then echo yes | tell spent; exit 0; fi
echo "$now" >> "$home/starts.new" && sync && mv -f "$home/starts.new" "$home/starts" || stop
systemctl reset-failed kubelet.service > /dev/null 2>&1
said=$(systemctl start --no-block kubelet.service 2>&1 < /dev/null) || { echo "systemctl start: $said" >&2; exit 71; }
echo "$((number + 1))" | tell started
"""

_FREE = """\
# free
lock
if [ -e "$home/claim" ]; then echo yes | tell claimed; exit 0; fi
rm -f "$home/quarantine" && echo yes | tell freed
"""

_RELEASE = """\
# release
if holds "$id" && [ -e "$home/releasing" ]; then
  if runs "$clean_unit"; then echo yes | tell releasing; exit 0; fi
fi
lock
holds "$id" || { echo gone | tell gone; exit 0; }
login
: > "$home/releasing"
echo "$script" | put 600 "$home/clean.sh" && echo "$unit" | put 644 "$units/$clean_unit" || stop
run_unit "$clean_unit" || stop
echo yes | tell releasing
"""

_PREPARE_SERVICE = f"""\
[Unit]
Description=Make this host ready to join its cluster
Wants=network-online.target
After=network-online.target containerd.service

[Service]
Type=oneshot
ExecStart=/bin/sh {HOME}/prepare.sh
StandardOutput=journal
"""

_JOIN_SERVICE = f"""\
[Unit]
Description=Join this host to its cluster
Wants=network-online.target
After=network-online.target containerd.service {PREPARE_UNIT}
ConditionPathExists={HOME}/join.sh

[Service]
Type=oneshot
ExecStart=/bin/sh {HOME}/join.sh keep-trying
ExecStartPost=/bin/rm -f {HOME}/join.sh
StandardOutput=journal

[Install]
WantedBy=multi-user.target
"""

_CHANGE_SERVICE = f"""\
[Unit]
Description=Bring this host to what its Machine asks for
Wants=network-online.target
After=network-online.target containerd.service
ConditionPathExists={HOME}/changing

[Service]
Type=oneshot
ExecStart=/bin/sh {HOME}/change.sh keep-trying
ExecStartPost=/bin/mv -f {HOME}/changing {HOME}/changed
StandardOutput=journal

[Install]
WantedBy=multi-user.target
"""

_CLEAN_SERVICE = f"""\
[Unit]
Description=Take Kubernetes off this host
After=network.target containerd.service
ConditionPathExists={HOME}/releasing

[Service]
ExecStart=/bin/sh {HOME}/clean.sh
Restart=on-failure
RestartSec=10

[Install]
WantedBy=multi-user.target
"""


def look() -> str:
    """Answers hostname, time and boot (its boot id); claim, quarantine, releasing, started, changing, failure and log
    where they are there; kubelet (as systemd calls its state) and version of a host that has joined and to which
    nothing is being done.
    """
    return _PRELUDE + _LOOK


def check() -> str:
    """Answers what ``checkup.findings`` reads. It changes nothing."""
    return _PRELUDE + checkup.SCRIPT


def reboot(claim_id: str, boot: str, attempt: str) -> str:
    """Boots the host anew unless it has another boot id than ``boot``, or was told to for ``attempt``. No lock: what
    hangs may hold it. Answers rebooting, or gone.
    """
    return _PRELUDE + _values(id=claim_id, boot=boot, attempt=attempt) + _REBOOT


def start_kubelet(claim_id: str, most: int) -> str:
    """Starts a kubelet that does not run, ``most`` times within an hour. Answers started (which time it is), spent,
    runs, busy (something is being done to the host), or gone.
    """
    return _PRELUDE + _values(id=claim_id, most=str(most)) + _START_KUBELET


def free() -> str:
    """Takes a host out of quarantine. Answers freed, or claimed: then nothing is done."""
    return _PRELUDE + _FREE


def claim(claim_id: str, text: str) -> str:
    """Answers the claim that is on the host now, ours or another's, or quarantine."""
    return _PRELUDE + cleaning.BEFORE + _values(id=claim_id) + _data(claim=text.encode()) + _CLAIM


def prepare(claim_id: str, script: bytes) -> str:
    """Steps that run once, as a unit; those of ``start`` begin when they have ended. Answers preparing, or gone."""
    return _PRELUDE + _values(id=claim_id) + _data(script=script, unit=_PREPARE_SERVICE.encode()) + _PREPARE


def start(claim_id: str, script: bytes) -> str:
    """The steps run as a unit of the host: neither a cut connection nor our own end stops them. Answers started."""
    values = _values(id=claim_id, join_unit=JOIN_UNIT)
    return _PRELUDE + values + _data(script=script, unit=_JOIN_SERVICE.encode()) + _START


def change(claim_id: str, text: str, spec_hash: str, script: bytes) -> str:
    """Begins the steps, or tells how far they are: progress, failure and log, or gave-up. Once they are done ``text``
    is the claim, and the answer is changed. Else gone, joining, or busy with steps for another request.
    """
    values = _values(id=claim_id, hash=spec_hash, join_unit=JOIN_UNIT)
    data = _data(claim=text.encode(), script=script, unit=_CHANGE_SERVICE.encode())
    return _PRELUDE + values + data + _CHANGE


def rebind(claim_id: str, machine_uid: str, text: str) -> str:
    """``text`` becomes the claim if that is ``machine_uid``'s. Answers the claim that is on the host then, or gone."""
    values = _values(id=claim_id, before=f'"machine_uid": "{machine_uid}"')
    return _PRELUDE + values + _data(claim=text.encode()) + _REBIND


def release(claim_id: str, how: str = "Reset", command: Sequence[str] = ()) -> str:
    """Answers releasing, or gone. ``how`` and ``command``: as in SSHMachineConfig."""
    values = _values(id=claim_id, clean_unit=CLEAN_UNIT)
    text = _PRELUDE + _values(id=claim_id, join_unit=JOIN_UNIT, clean_unit=CLEAN_UNIT) + cleaning.script(how, command)
    return _PRELUDE + values + _data(script=text.encode(), unit=_CLEAN_SERVICE.encode()) + _RELEASE


def _values(**values: str) -> str:
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def _data(**values: bytes) -> str:
    """As base64: bytes of any kind, in a form that needs no quotes."""
    return "".join(f"{name}={base64.b64encode(value).decode()}\n" for name, value in values.items())
