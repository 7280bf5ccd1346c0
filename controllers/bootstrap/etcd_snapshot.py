"""A snapshot of etcd on its host, taken before a control plane is upgraded: a step, and how it is asked for.

The member is asked at its client port with the certificate that kubeadm makes for health checks, through etcd's JSON
gateway (``/v3/maintenance/snapshot``, etcd 3.5 and 3.6): no etcdctl is needed. The stream is the database, and behind
it the SHA-256 of all before (etcd's ``snapshot.go``), which is compared before the file gets its name.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from controllers.bootstrap.authorities import PKI_FOLDER
from controllers.bootstrap.steps import Script, Step

MOST_KEPT: Final = 99
_FOLDER: Final = re.compile(r"/[A-Za-z0-9._/-]{1,200}")
_URL: Final = "https://127.0.0.1:2379"
_TIME: Final = 1800.0
"""Seconds. etcd's own limit of a database is 8 GiB: at 10 MB/s that takes 14 minutes."""
_MARK: Final = "/var/lib/nodewright/etcd-snapshot"
_SCRIPT: Final = r"""#!/bin/sh
set -eu
umask 077
folder=%(folder)s keep=%(keep)s version=%(version)s mark=%(mark)s pki=%(pki)s url=%(url)s key=%(key)s
%(streams)s
if [ ! -e "$pki/healthcheck-client.key" ]; then
  echo "no etcd of kubeadm runs on this host: there is nothing to take a snapshot of"
  exit 0
fi
tell() { echo "saved $(($(date +%%s) - ${2:-0})) ${3:-0} ${4:-0} $1" >&3; }
asks() {
  curl --silent --show-error --fail --cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" \
    --key "$pki/healthcheck-client.key" --data '{}' "$@"
}
# A try after one that failed must not push out what was taken before the first.
if [ -s "$mark" ] && [ "$(sed -n 1p "$mark")" = "$version" ] && [ -s "$(sed -n 2p "$mark")" ] &&
  { [ -z "$key" ] || [ "$(sed -n 3p "$mark")" = "$key" ]; } && [ -n "$(find "$mark" -mmin -%(minutes)s)" ]; then
  echo "it was taken before: $(sed -n 2p "$mark")"
  tell "$(sed -n 2p "$mark")" $(sed -n 4p "$mark")
  exit 0
fi
if ! command -v curl > /dev/null; then
  echo "curl is missing on this host: a snapshot is taken with it"
  exit 1
fi
[ -d "$folder" ] || mkdir -p "$folder"
rm -f "$folder"/.etcd-snapshot.*
part=$folder/.etcd-snapshot.$$
trap 'rm -f "$part" "$part.json"' EXIT
at=$(date +%%s)
revision=$(asks "$url/v3/maintenance/status" | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p') || revision=
if ! asks --output "$part.json" "$url/v3/maintenance/snapshot"; then
  echo "etcd at $url gives no snapshot; is there room in $folder for twice its database?"
  df -P "$folder" | tail -n 1
  exit 1
fi
# A line for each part of the database, each padded for itself. What is no part says what went wrong.
awk -F '"blob":"' 'NF == 2 { sub(/".*/, "", $2); print $2 | "base64 -d"; close("base64 -d") }' "$part.json" > "$part"
rm -f "$part.json"
size=$(wc -c < "$part")
if [ "$size" -le 32 ] || [ $((size %% 512)) -ne 32 ]; then
  echo "the snapshot is cut off: it has $size bytes"
  exit 1
fi
want=$(tail -c 32 "$part" | od -An -v -tx1 | tr -d ' \n')
have=$(head -c $((size - 32)) "$part" | sha256sum | cut -c1-64)
if [ "$want" != "$have" ]; then
  echo "the snapshot is damaged: its SHA-256 is $have, etcd says $want"
  exit 1
fi
name=$folder/etcd-$(date -u +%%Y%%m%%dT%%H%%M%%SZ)-before-$version.db
sync "$part" 2> /dev/null || sync
mv -f "$part" "$name"
mkdir -p "$(dirname "$mark")"
printf '%%s\n%%s\n%%s\n%%s\n' "$version" "$name" "$key" "$at $size ${revision:-0}" > "$mark.new"
mv -f "$mark.new" "$mark"
ls -1 "$folder" | grep -E '^etcd-[0-9]{8}T[0-9]{6}Z-before-[^/]*\.db$' | sort -r | tail -n +$((keep + 1)) |
  while read -r old; do rm -f "$folder/$old"; done
echo "etcd was saved to $name ($size bytes, SHA-256 $have)"
tell "$name" "$at" "$size" "${revision:-0}"
"""
_SAVED: Final = re.compile(r"saved (\d{1,7}) (\d{1,12}) (\d{1,19}) (/[A-Za-z0-9._/-]{1,300})")


@dataclass(frozen=True, slots=True)
class EtcdSnapshot:
    """``folder``: absolute, on the host; ``keep``: that many files of ours stay in it, at least 1."""

    folder: str
    keep: int


def text_of(snapshot: EtcdSnapshot) -> str:
    """The value of the Machine's annotation: ``3:/var/backups/etcd``."""
    return f"{snapshot.keep}:{snapshot.folder}"


def read(text: object) -> EtcdSnapshot | str:
    """Of such a value; else what is wrong with it."""
    keep, _, folder = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not re.fullmatch(r"[1-9][0-9]?", keep):
        return f"must be KEEP:FOLDER, with KEEP from 1 to {MOST_KEPT}"
    if not _FOLDER.fullmatch(folder) or posixpath.normpath(folder) != folder.rstrip("/") or folder.startswith("//"):
        return "must be KEEP:FOLDER, with FOLDER an absolute path of letters, digits, dots, dashes and slashes"
    return EtcdSnapshot(folder.rstrip("/"), int(keep))


def step(snapshot: EtcdSnapshot, version: str) -> Step:
    """``version``: to which the host is about to be upgraded. Safe to repeat: within a day it is taken once for it."""
    return Step(f"take a snapshot of etcd to {snapshot.folder}", Script(script(snapshot, version)), timeout=_TIME)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where kubeadm and these steps have things; others for tests."""

    url: str = _URL
    pki: str = f"{PKI_FOLDER}/etcd"
    mark: str = _MARK


_LAYOUT: Final = Layout()


def script(snapshot: EtcdSnapshot, version: str, key: str = "", layout: Layout = _LAYOUT) -> str:
    """What runs on the host. With a ``key`` somebody waits for it: it is taken once for that key within an hour, what
    is printed is for ``saved_of``, and all else goes to stderr. The step of the same version takes it for its own.
    """
    values = {
        "folder": snapshot.folder, "keep": str(snapshot.keep), "version": version, "key": key,
        "mark": layout.mark, "pki": layout.pki, "url": layout.url,
    }  # fmt: skip
    quoted = {name: shlex.quote(value) for name, value in values.items()}
    streams, minutes = ("exec 3>&1 1>&2", "60") if key else ("exec 3> /dev/null", "1440")
    return _SCRIPT % {**quoted, "streams": streams, "minutes": minutes}


@dataclass(frozen=True, slots=True)
class Saved:
    """``age``: since it began. ``revision``: etcd's then, 0 if it did not say. ``path``: on the host."""

    age: timedelta
    size_bytes: int
    revision: int
    path: str


def saved_of(printed: str) -> Saved | None:
    """What a script with a key has printed; None if that is nothing of it."""
    found = next((match for line in printed.splitlines() if (match := _SAVED.fullmatch(line.strip()))), None)
    if found is None:
        return None
    age, size, revision, path = found.groups()
    return Saved(timedelta(seconds=int(age)), int(size), int(revision), path)
