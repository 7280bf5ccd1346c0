#!/usr/bin/python3
"""Plays podman for deploy/up/container.sh on a host that has containerd's `ctr` alone: the same words, the same pod.

Restarts, the limit of processes and the time to stop are the engine's own business, which `ctr` has none of.
"""

from __future__ import annotations

import os
import sys

_DEFAULT = (
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
)  # fmt: skip
"""Capabilities that containerd gives where nobody says otherwise (oci/spec.go, defaultUnixCaps)."""
_NOT_OURS = ("--restart", "--stop-timeout", "--pids-limit")


def translated(words: list[str]) -> list[str]:
    """``run …`` of podman as arguments of ctr. Raises ValueError for a word that it does not know."""
    assert words[:2] == ["run", "--detach"], words
    made, name, rest = ["-n", "k8s.io", "run", "--detach"], "", words[2:]
    while rest[0].startswith("--"):
        option = rest.pop(0)
        if option == "--read-only":
            made.append(option)
            continue
        value = rest.pop(0)
        if option == "--name":
            name = value
        elif option == "--cap-drop" and value == "ALL":
            made += [word for each in _DEFAULT for word in ("--cap-drop", f"CAP_{each}")]
        elif option in ("--user", "--env"):
            made += [option, value]
        elif (option, value) == ("--network", "host"):
            made.append("--net-host")
        elif option in ("--tmpfs", "--volume"):
            made += ["--mount", _mount(option, *value.split(":", 1))]
        elif option not in _NOT_OURS and (option, value) != ("--security-opt", "no-new-privileges"):
            raise ValueError(f"{option} {value}")  # no_new_privileges is containerd's default
    return [*made, rest[0], name, *rest[1:]]


def _mount(option: str, first: str, second: str) -> str:
    if option == "--tmpfs":
        return f"type=tmpfs,src=tmpfs,dst={first},options={second.replace(',', ':')}"
    return f"type=bind,src={first},dst={second},options=rbind:rw"


if __name__ == "__main__":
    os.execvp("ctr", ["ctr", *translated(sys.argv[1:])])
