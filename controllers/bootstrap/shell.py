"""Steps → a POSIX shell script: idempotent, resumable, and it says how far it is.

The script writes ``/var/lib/nodewright/bootstrap/progress`` ("4/9 install kubelet 1.36.3"), ``log`` (what the step
that runs has printed) and ``result`` (one line of JSON) when it ends. Run as ``script keep-trying`` it tries a
step that failed again, with growing pauses, until all are done; else it ends at the first failure. Every value is
quoted here and nowhere else; no value of a step becomes a part of a command line unquoted.
"""

from __future__ import annotations

import base64
import shlex

from controllers.bootstrap import reporter, shell_steps
from controllers.bootstrap.failure import TIMED_OUT
from controllers.bootstrap.steps import (
    Action,
    Binary,
    Command,
    ContentFile,
    File,
    Files,
    Modules,
    Present,
    Service,
    Step,
    Steps,
)

STATE = "/var/lib/nodewright/bootstrap"
KEEP_TRYING = "keep-trying"
FIRST_PAUSE, LONGEST_PAUSE = 5, 60
"""Seconds between two tries of a step."""
CONNECT, RETRIES = 10, 30
"""Seconds for a connection, and until no other try begins. An address that swallows packets costs 3 tries of 10 s with
2 s between them: 34 s."""
KILL_AFTER = 10
"""Seconds that a program has to end once its time is over."""

_PRELUDE = f"""\
#!/bin/sh
# Brings this host to what its Machine asks for. Safe to run again: a step that is done is passed over.
set -u
umask 077
state={STATE}
mode=${{1-}}
reporter=
mkdir -p "$state" /etc/nodewright
: > "$state/log"
rm -f "$state/failure" "$state/ended" "$state/all-done"
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

put() {{ # put MODE PATH [OWNER], with the content as base64 on its standard input
  [ ! -d "$2" ] || {{ echo "$2 is a folder"; return 1; }}
  (umask 022 && mkdir -p "$(dirname "$2")") && base64 -d > "$2.new" && chmod "$1" "$2.new" || return 1
  [ -z "${{3-}}" ] || chown "$3" "$2.new" || return 1
  mv -f "$2.new" "$2"
}}

left() {{ # prints how many seconds the step has left; a clock that is set in between changes nothing
  read -r up _ < /proc/uptime
  echo "$((until - ${{up%%.*}}))"
}}

limited() {{ # limited SECONDS COMMAND…: 124 or 137 says that it was ended, with all that it has started in its group
  {{ timeout -k {KILL_AFTER} "$@" <&3 3<&- & }} 3<&0
  leader=$!
  wait "$leader"
  ended_with=$?
  case $ended_with in 124 | 137) kill -KILL "-$leader" 2>/dev/null ;; esac
  return "$ended_with"
}}

bounded() {{ # bounded COMMAND…: a program, which is ended with the time of its step; 124 says so
  seconds=$(left)
  [ "$seconds" -gt 0 ] || return 124
  limited "$seconds" "$@"
}}

systemctl() {{
  bounded systemctl "$@"
}}

enabled() {{ # enabled UNIT: it starts at each boot; systemd reloads its units, a tenth of a second, only for a change
  [ "$(systemctl is-enabled "$1" 2>/dev/null)" = enabled ] || systemctl enable "$1"
}}

versioned() {{ # versioned VERSION COMMAND: whether the command prints that version, or one of that minor
  bounded sh -c "$2" > "$state/version" 2>/dev/null
  found=$(tr ' ' '\\n' < "$state/version" | sed -n 's/^v\\{{0,1\\}}\\([0-9][0-9]*\\.[0-9][0-9.]*\\).*/\\1/p' |
    head -n 1)
  [ -n "$found" ] || return 1
  case $found in "$1"|"$1".*) return 0 ;; *) [ -z "$1" ] ;; esac
}}

present() {{ # present PATH VERSION COMMAND
  [ -x "$1" ] || {{ echo "$1 is missing: the image has to bring it, or name a mirror to install it from"; return 1; }}
  versioned "$2" "$3" || {{ echo "$1 is of version ${{found:-unknown}}, not $2"; return 1; }}
}}

fetch() {{ # fetch URL FILE
  if ! command -v curl > /dev/null; then bounded wget -q -T {CONNECT} -t 3 -O "$2" "$1"; return; fi
  bounded curl --fail --silent --show-error --location --connect-timeout {CONNECT} --speed-limit 1 --speed-time 60 \\
    --retry 5 --retry-delay 2 --retry-max-time {RETRIES} --retry-connrefused --output "$2" "$1"
}}

binary() {{ # binary PATH URL VERSION COMMAND SHA256
  if [ -x "$1" ] && versioned "$3" "$4"; then return 0; fi
  fetch "$2" "$1.new" || {{ echo "$2 can't be fetched"; return 1; }}
  sum=$5
  if [ -z "$sum" ]; then
    fetch "$2.sha256" "$1.sha256" || {{ echo "$2.sha256 can't be fetched"; return 1; }}
    sum=$(cut -c1-64 < "$1.sha256"); rm -f "$1.sha256"
  fi
  if ! echo "$sum  $1.new" | sha256sum --check --quiet; then
    rm -f "$1.new"
    echo "$2 is not what its checksum says"
    return 1
  fi
  chmod 755 "$1.new" && mv -f "$1.new" "$1"
}}

modules() {{
  for name in "$@"; do
    [ -d "/sys/module/$name" ] || bounded modprobe "$name" 2>/dev/null || echo "module $name is built in or not there"
  done
}}

said_all() {{ # after the last step nothing is left to tell
  kill "$reporter" 2>/dev/null
}}

hide() {{ # prints what lines of the console must not hold, a line each
  :
}}

finish() {{ # finish CODE
  printf '{{"code": %s, "step": "%s"}}\n' "$1" "$(cat "$state/progress")" > "$state/result"
  if [ -n "$reporter" ]; then # it has a last report to send, for which it takes 10 s at most; 40 s for that of the end
    if [ "$1" -eq 0 ]; then said_all; fi
    : > "$state/ended"
    wait "$reporter" 2>/dev/null
  fi
  exit "$1"
}}

failed() {{ # failed CODE ATTEMPT PROGRESS
  echo "nodewright: $3 failed with $1:"
  hide > "$state/hidden"
  if [ -s "$state/hidden" ]; then tail -n 20 "$state/log" | grep -vFf "$state/hidden"; else tail -n 20 "$state/log"; fi
  rm -f "$state/hidden"
  tail -c {reporter.KEPT} "$state/log" > "$state/failed.log"
  echo "$1 $2 $3" > "$state/failure.new" && mv -f "$state/failure.new" "$state/failure"
}}

step() {{ # step NUMBER NAME FUNCTION SECONDS
  attempt=1
  pause={FIRST_PAUSE}
  echo "$1 $2" > "$state/progress"
  while :; do
    : > "$state/log"
    echo "nodewright: $1 $2"
    until=0
    until=$(($4 - $(left)))
    "$3" > "$state/log" 2>&1
    code=$?
    if [ "$code" -eq 0 ]; then rm -f "$state/failure"; return 0; fi
    if [ "$(left)" -le 0 ]; then
      code={TIMED_OUT}
      echo "it did not end within $4 s" >> "$state/log"
    fi
    failed "$code" "$attempt" "$1 $2"
    [ "$mode" = {KEEP_TRYING} ] || finish "$code"
    echo "nodewright: tries again in $pause s"
    sleep "$pause"
    attempt=$((attempt + 1))
    pause=$((pause * 2))
    [ "$pause" -le {LONGEST_PAUSE} ] || pause={LONGEST_PAUSE}
  done
}}
"""


def render(steps: Steps) -> str:
    """The script for all of ``steps``."""
    total = len(steps.steps)
    parts = [
        _PRELUDE,
        *filter(None, (shell_steps.environment(steps.environment), shell_steps.functions(steps.steps))),
        *_reporting(steps),
    ]
    for number, step in enumerate(steps.steps, 1):
        lines, seconds = _lines(number, step), max(1, int(step.timeout))
        if step.rescue:
            parts.append(_function(f"step_{number}_itself", lines))
            lines = shell_steps.rescued(step, f"step_{number}_itself")
        parts.append(
            f"{_function(f'step_{number}', lines)}"
            f"step {number}/{total} {shlex.quote(step.name)} step_{number} {seconds}\n"
        )
    forget = " ".join(shlex.quote(path) for path in (*steps.forget, *((reporter.CONFIG,) if steps.reporting else ())))
    parts.append(f"rm -f {forget}\n" if forget else "")
    parts.append(f'rm -f "$state"/{reporter.PROGRAM_NAME} "$state"/failed.log\n')
    parts.append("finish 0\n")
    return "\n".join(parts)


_TELLS_END = 'said_all() {\n  : > "$state/all-done"\n}\n'


def _function(name: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{name}() {{\n{body}\n}}\n"


def _reporting(steps: Steps) -> list[str]:
    """The program that tells how far the host is, started beside the steps where there is a Python to run it.

    Lines of secret files, and those that hold the token's secret, stay off the console too.
    """
    if steps.reporting is None:
        return []
    secret = base64.b64encode(steps.reporting.token.partition(".")[2].encode()).decode()
    files = " ".join(shlex.quote(path) for path in reporter.secret_files(steps))
    program = f'"$state/{reporter.PROGRAM_NAME}"'
    return [
        f"hide() {{\n  {{ echo {secret} | base64 -d; echo; {f'cat {files}' if files else ':'}; }} 2>/dev/null |"
        " sed '/^.\\{0,5\\}$/d'\n}\n"
        f"{_TELLS_END if steps.reporting.tells_end else ''}"
        f"{_put(reporter.config(steps.reporting, steps))}\n"
        f"cat > {program} <<'END_OF_PROGRAM'\n{reporter.PROGRAM}END_OF_PROGRAM\n"
        "python=$(command -v python3 || command -v /usr/libexec/platform-python)\n"
        'if [ -n "$python" ]; then\n'
        f'  "$python" {program} "$state" < /dev/null > /dev/null 2>&1 &\n'
        "  reporter=$!\n"
        "fi\n"
    ]


def _lines(number: int, step: Step) -> list[str]:
    done = " && ".join(f"[ -e {shlex.quote(path)} ]" for path in step.done_if)
    skip = [f"if {done}; then return 0; fi"] if done else []
    body = _action(step.action, int(step.timeout))
    return [*skip, *_undo(number, step), *(shell_steps.once(step, body) if step.once else body)]


def _undo(number: int, step: Step) -> list[str]:
    if step.undo is None:
        return []
    begun = f'"$state/begun-{number}"'
    again = " ".join(_action(step.undo, int(step.timeout)))
    return [f"if [ -e {begun} ]; then {again} || return; fi", f": > {begun}"]


def _action(action: Action, timeout: int) -> list[str]:
    match action:
        case Files(files):
            return [f"{_put(file)} || return" for file in files]
        case ContentFile(path, variable, mode, owner):
            missing = _call("echo", f"the content of {path} did not come with the steps")
            put = _call("put", f"{mode:o}", path, *([owner] if owner else []))
            return [
                f'[ -n "${{content_{variable}+come}}" ] || {{ {missing}; return 1; }}',
                f'echo "$content_{variable}" | {put}',
            ]
        case Binary(path, url, version, command, sha256):
            return [_call("binary", path, url, version, command, sha256)]
        case Present(path, command, version):
            return [_call("present", path, version, command)]
        case Modules(names):
            return [_call("modules", *names)]
        case Service(unit, restart):
            verb = "restart" if restart else "start"
            return [f"enabled {shlex.quote(unit)} && systemctl {verb} {shlex.quote(unit)}"]
        case Command(argv, environment):
            call = _call("limited", str(timeout), *argv)
            values = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment)
            return [f"(export {values} && {call})" if values else call]
        case _:
            return shell_steps.lines(action, timeout)


def _put(file: File) -> str:
    data = file.content.encode() if isinstance(file.content, str) else file.content
    owner = f" {shlex.quote(file.owner)}" if file.owner else ""
    return f"echo {base64.b64encode(data).decode()} | put {file.mode:o} {shlex.quote(file.path)}{owner}"


def _call(function: str, *words: str) -> str:
    return " ".join([function, *(shlex.quote(word) for word in words)])
