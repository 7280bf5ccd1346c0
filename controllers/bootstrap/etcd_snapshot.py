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
folder=%(folder)s keep=%(keep)s version=%(version)s mark=%(mark)s pki=%(pki)s url=%(url)s
if [ ! -e "$pki/healthcheck-client.key" ]; then
  echo "no etcd of kubeadm runs on this host: there is nothing to take a snapshot of"
  exit 0
fi
# A try after one that failed must not push out what was taken before the first.
if [ -s "$mark" ] && [ "$(sed -n 1p "$mark")" = "$version" ] && [ -s "$(sed -n 2p "$mark")" ] &&
  [ -n "$(find "$mark" -mmin -1440)" ]; then
  echo "it was taken before: $(sed -n 2p "$mark")"
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
if ! curl --silent --show-error --fail --cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" \
  --key "$pki/healthcheck-client.key" --data '{}' --output "$part.json" "$url/v3/maintenance/snapshot"; then
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
printf '%%s\n%%s\n' "$version" "$name" > "$mark.new"
mv -f "$mark.new" "$mark"
ls -1 "$folder" | grep -E '^etcd-[0-9]{8}T[0-9]{6}Z-before-[^/]*\.db$' | sort -r | tail -n +$((keep + 1)) |
  while read -r old; do rm -f "$folder/$old"; done
echo "etcd was saved to $name ($size bytes, SHA-256 $have)"
"""


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


def script(
    snapshot: EtcdSnapshot, version: str, *, url: str = _URL, pki: str = f"{PKI_FOLDER}/etcd", mark: str = _MARK
) -> str:
    """What runs on the host. The last three: where kubeadm and these steps have things; others for tests."""
    values = {
        "folder": snapshot.folder, "keep": str(snapshot.keep), "version": version, "mark": mark, "pki": pki, "url": url,
    }  # fmt: skip
    return _SCRIPT % {name: shlex.quote(value) for name, value in values.items()}
