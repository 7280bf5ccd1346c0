"""Users of a host that has joined: what steps gave to them and the spec asks for no longer is taken away again.

``account`` notes what it gives in ``USERS`` (``user ops``, ``group ops adm``, ``key ops ssh-ed25519 …``, ``sudo ops``),
a line each, before it does it. What is not noted was there before, and stays. ``TAKER`` is on the host as a program: a
change runs it at its end, the way back of a change that fails and the release of a host run it too.
"""

from __future__ import annotations

from typing import Final

from api.bootstrap import BootstrapSpec, User
from controllers.bootstrap.steps import File, Files, Script, Step

USERS: Final = "/var/lib/nodewright/users"
TAKER: Final = "/var/lib/nodewright/take-users"
WANTED: Final = "/var/lib/nodewright/users.wanted"
SHELL: Final = "/bin/bash"
"""Login shell of a user whose spec names none."""
_TAKE: Final = r"""#!/bin/sh
# take-users FILE: takes away what steps gave to users of this host, but for what lines of FILE name.
set -u
umask 077
users=/var/lib/nodewright/users
login=$(cat /var/lib/nodewright/ssh/login 2> /dev/null || echo root)

no_user() { # no_user NAME: one that steps made. Its home stays beside its place, as root's: whoever gets the number or
  # the name later has neither its files nor its keys
  usermod -L -e 1 "$1" || return
  loginctl terminate-user "$1" > /dev/null 2>&1
  home=$(getent passwd "$1" | cut -d: -f6)
  case $home in
    */"$1") [ ! -d "$home" ] || mv "$home" "$home.was-$(date +%s)" || return ;;
  esac
  for was in "$home".was-*; do
    [ ! -d "$was" ] || { chown -R -P root:root "$was" && chmod 700 "$was"; } || return
  done
  userdel -f "$1" # -f: a pod may run with the same number
}

no_key() { # no_key NAME, with the key on standard input; in a home nothing is done with more rights than its user has
  timeout 20 runuser -u "$1" -- sh -c '
    chmod u+x "$1" "$1/.ssh" 2> /dev/null
    cd "$1/.ssh" 2> /dev/null && [ -f authorized_keys ] || exit 0
    umask 077
    grep -vxFf - authorized_keys > authorized_keys.new
    [ "$?" -le 1 ] && mv -f authorized_keys.new authorized_keys' sh "$(getent passwd "$1" | cut -d: -f6)"
}

take() { # take WORD NAME [WHAT]
  if [ "$1" = sudo ]; then rm -f "/etc/sudoers.d/90-nodewright-$2"; return; fi
  getent passwd "$2" > /dev/null || return 0
  case $1 in
    user) no_user "$2" ;;
    group) case " $(id -nG "$2") " in *" $3 "*) gpasswd -d "$2" "$3" ;; esac ;;
    key) printf '%s\n' "$3" | no_key "$2" ;;
  esac
}

[ -e "$users" ] || exit 0
failed=0
grep -vxFf "$1" "$users" > "$users.taken"
while IFS= read -r line <&4; do
  word=${line%% *} rest=${line#* }
  name=${rest%% *}
  if [ "$name" = "$login" ]; then
    echo "nothing is taken from $name: the controllers log in as this user"
  elif take "$word" "$name" "${rest#* }" < /dev/null; then
    grep -vxF -e "$line" "$users" > "$users.new"
    mv -f "$users.new" "$users" || failed=1
    [ "$word" = key ] && echo "a key of $name was taken away" || echo "$line was taken away"
  else
    failed=1
  fi
done 4< "$users.taken"
while read -r word name shell <&4; do # of a user that steps made
  if [ "$word" != shell ] || [ "$name" = "$login" ] || ! grep -qxF -e "user $name" "$users"; then continue; fi
  [ "$(getent passwd "$name" | cut -d: -f7)" = "$shell" ] || usermod -s "$shell" "$name" || failed=1
done 4< "$1"
rm -f "$users.taken"
[ -s "$users" ] || rm -f "$users"
exit "$failed"
"""


def sudoers(spec: BootstrapSpec) -> tuple[str, ...]:
    """Files that the users' steps may write."""
    return tuple(f"/etc/sudoers.d/90-nodewright-{user.name}" for user in spec.users or ())


def noted(spec: BootstrapSpec) -> Step:
    """What users are to have in the end, in words of ``USERS``, and what takes the rest away. Before they get it."""
    wanted = "".join(f"{line}\n" for user in spec.users or () for line in _lines(user))
    return Step("note what users are to have", Files((File(TAKER, _TAKE, 0o700), File(WANTED, wanted, 0o600))))


def taken() -> Step:
    """The last step of a change, when nothing goes back any more: a user that is gone could not be put back."""
    return Step("take from users what is asked for no longer", Script(f"exec /bin/sh {TAKER} {WANTED}\n"))


def _lines(user: User) -> tuple[str, ...]:
    return (
        f"user {user.name}",
        f"shell {user.name} {user.shell or SHELL}",
        *(f"group {user.name} {group}" for group in user.groups or ()),
        *((f"sudo {user.name}",) if user.sudo else ()),
        *(f"key {user.name} {key}" for key in user.ssh_authorized_keys or ()),
    )
