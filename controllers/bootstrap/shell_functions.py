"""Functions of the script that prepare a host and install on it. A script holds only those that its steps call.

All are POSIX shell and find out by themselves what the host is: its package manager, the version of containerd. None
takes a value into a command line or a pattern unquoted. What they print is read by people when they fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_TEXTS: Final = {
    "umask_022": """\
umask_022() { # umask_022 COMMAND…: runs a program that writes files which others have to read
  (umask 022 && bounded "$@")
}
""",
    "give_up": """\
give_up() { # give_up CODE: the host is as it was before; what was tried is not begun again, and why can be read
  {
    echo "step $(cat "$state/progress") failed with $1, and the host went back:"
    tail -n 5 "$state/log"
  } > "$state/gave-up.new"
  mv -f "$state/gave-up.new" "$state/gave-up"
  failed "$1" "$attempt" "$(cat "$state/progress")" > /dev/null
  finish "$1"
}

if [ -e "$state/gave-up" ]; then
  cat "$state/gave-up"
  echo "0/0 given up before" > "$state/progress"
  finish 1
fi
""",
    "script": """\
script() { # script TIMEOUT, with the text as base64 on its standard input
  (mkdir -p "$state/scripts" && base64 -d > "$state/scripts/run" && chmod 700 "$state/scripts/run") || return 1
  (cd / && umask 022 && limited "$1" "$state/scripts/run" < /dev/null)
  code=$?
  rm -f "$state/scripts/run"
  return "$code"
}
""",
    "configure": """\
configure() { # configure MODE PATH OWNER UNIT, with the content as base64 on its standard input
  late=$state/restart.$4
  base64 -d > "$state/configured" || return 1
  if [ ! -e "$late" ] && [ "$(sha256sum 2>/dev/null < "$2")" = "$(sha256sum < "$state/configured")" ]; then return 0; fi
  : > "$late"
  base64 "$state/configured" | put "$1" "$2" "$3" && systemctl daemon-reload || return 1
  if systemctl is-active --quiet "$4"; then systemctl restart "$4" || return 1; fi
  rm -f "$late"
}
""",
    "family": """\
family() { # sets manager, format, host_id and codename
  host_id=$(. /etc/os-release 2>/dev/null; echo "${ID-}")
  codename=$(. /etc/os-release 2>/dev/null; echo "${VERSION_CODENAME-}")
  format=rpm
  for manager in apt-get dnf yum; do
    command -v "$manager" > /dev/null || continue
    [ "$manager" != apt-get ] || format=deb
    return 0
  done
  echo "neither apt-get nor dnf is there: set spec.bootstrap.source to Image or Archives"
  return 1
}
""",
    "apt_get": """\
apt_get() { # apt_get ARGUMENT…: asks nothing, keeps configuration, waits while another process installs
  umask_022 env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -q -y -o DPkg::Lock::Timeout=300 \\
    -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 -o Acquire::Retries=2 \\
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" < /dev/null
}

apt_update() { # apt_update OPTION…: waits while another process reads the lists
  tries=0
  while ! apt_get update -o APT::Update::Error-Mode=any "$@" > "$state/apt" 2>&1; do
    if [ "$tries" -ge 60 ] || [ "$(left)" -le 5 ] || ! grep -q 'Could not get lock' "$state/apt"; then
      cat "$state/apt"
      return 1
    fi
    tries=$((tries + 1))
    sleep 5
  done
}
""",
    "repository": """\
fill() { # fill TEXT NAME VALUE: sets filled, with VALUE for each {NAME}
  filled=$1
  while :; do
    case $filled in
      *"{$2}"*) filled=${filled%%"{$2}"*}$3${filled#*"{$2}"} ;;
      *) return 0 ;;
    esac
  done
}

expand() { # expand TEXT: sets filled
  case $1 in
    *"{codename}"*) [ -n "$codename" ] || { echo "/etc/os-release of the host has no VERSION_CODENAME"; return 1; } ;;
  esac
  fill "$1" format "$format" && fill "$filled" codename "$codename" && fill "$filled" id "$host_id"
}

repository() { # repository NAME URL SUITE COMPONENTS PACKAGES, with the key as base64 on its standard input
  family && expand "$2" || return 1
  url=$filled
  expand "$3" || return 1
  if [ "$format" = deb ]; then
    key=/etc/apt/keyrings/nodewright-$1.asc
    list=/etc/apt/sources.list.d/nodewright-$1.list
    put 644 "$key" && echo "deb [signed-by=$key] $url $filled $4" | base64 | put 644 "$list" || return 1
    apt_update -o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 && return 0
  else
    key=/etc/pki/rpm-gpg/RPM-GPG-KEY-nodewright-$1
    put 644 "$key" || return 1
    printf '[nodewright-%s]\\nname=nodewright-%s\\nbaseurl=%s\\nenabled=1\\n' "$1" "$1" "$url" > "$state/repo"
    printf 'gpgcheck=1\\ngpgkey=file://%s\\nexclude=%s\\n' "$key" "$5" >> "$state/repo"
    base64 "$state/repo" | put 644 "/etc/yum.repos.d/nodewright-$1.repo" || return 1
    umask_022 "$manager" -q -y --disablerepo='*' --enablerepo="nodewright-$1" --refresh \\
      --setopt="nodewright-$1.skip_if_unavailable=0" makecache < /dev/null && return 0
  fi
  echo "the repository $url can't be read"
  return 1
}
""",
    "packages": """\
matches() { # matches FOUND VERSION: whether the version of a package is that one, in any revision
  case ${1#*:} in "$2"|"$2"-*|"$2".*|"$2"~*|"$2"+*) return 0 ;; *) [ -z "$2" ] ;; esac
}

installed() { # installed NAME VERSION
  if [ "$format" = deb ]; then
    found=$(dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$1" 2>/dev/null) || return 1
    case $found in ?i*) matches "${found#* }" "$2" ;; *) return 1 ;; esac
  else
    found=$(rpm -q --qf '%{VERSION}-%{RELEASE}\\n' "$1" 2>/dev/null) && matches "$found" "$2"
  fi
}

candidate() { # candidate NAME VERSION: sets found to the newest version of the package that matches
  if [ "$format" = deb ]; then
    all=$(apt-cache madison "$1" | sed 's/^[^|]*| *\\([^ |]*\\).*/\\1/')
  else
    all=$(umask_022 "$manager" -q repoquery "$excludes" --qf '%{version}-%{release}\\n' "$1" < /dev/null | sort -rV)
  fi
  for found in $all; do
    if matches "$found" "$2"; then return 0; fi
  done
  others=$(echo "$all" | sort -u | tail -n 5 | tr '\\n' ' ')
  echo "no $1 of ${2:-any version} in the repositories of this host; there is: ${others:-none}"
  return 1
}

packages() { # packages HOLD NAME VERSION [NAME VERSION…]
  family || return 1
  hold=$1 names='' wanted='' excludes=--disableexcludes=all
  shift
  if [ "$format" = rpm ]; then
    case $("$manager" --version 2>/dev/null) in dnf5*) excludes='--setopt=disable_excludes=*' ;; esac
  fi
  while [ $# -ge 2 ]; do
    names="$names $1"
    if ! installed "$1" "$2"; then
      if [ "$format" = deb ] && [ -z "$wanted" ]; then apt_update || echo "a repository can't be read"; fi
      candidate "$1" "$2" || return 1
      if [ "$format" = deb ]; then wanted="$wanted $1=$found"; else wanted="$wanted $1-$found"; fi
    fi
    shift 2
  done
  change "$names" "$wanted" "$hold"
}

change() { # change NAMES WANTED HOLD: installs what is wanted, in these versions, and pins the names to them
  set -f
  if [ "$format" = deb ]; then
    if [ -n "$2" ]; then
      umask_022 env DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a < /dev/null
      apt-mark unhold $1 > /dev/null
      apt_get install --no-install-recommends --allow-downgrades --allow-change-held-packages $2 || return 1
    fi
    [ -z "$3" ] || apt-mark hold $1 > /dev/null
    return
  fi
  lock=''
  if [ -n "$3" ] && umask_022 "$manager" -q versionlock list > /dev/null 2>&1; then lock=yes; fi
  if [ -n "$2" ]; then
    [ -z "$lock" ] || umask_022 "$manager" -q versionlock delete $1 > /dev/null 2>&1
    umask_022 "$manager" -q -y "$excludes" install $2 < /dev/null || return 1
  fi
  [ -z "$lock" ] || umask_022 "$manager" -q versionlock add $1 > /dev/null
}
""",
    "architecture": """\
architecture() { # architecture NAME
  case $(uname -m) in x86_64) found=amd64 ;; aarch64) found=arm64 ;; *) found=$(uname -m) ;; esac
  [ "$found" = "$1" ] || { echo "the host is $found, spec.bootstrap.archives.architecture is $1"; return 1; }
}
""",
    "obtain": """\
obtain() { # obtain URL SHA256 FILE: nothing is left of what has another checksum
  mkdir -p "$(dirname "$3")"
  fetch "$1" "$3" || { rm -f "$3"; echo "$1 can't be fetched"; return 1; }
  echo "$2  $3" | sha256sum --check --status && return 0
  echo "$1 is not what its checksum says: it has $(sha256sum < "$3" | cut -c1-64), not $2"
  rm -f "$3"
  return 1
}
""",
    "download": """\
download() { # download URL SHA256 PATH MODE
  if [ -f "$3" ] && echo "$2  $3" | sha256sum --check --status; then return 0; fi
  (umask 022 && obtain "$1" "$2" "$3.new") && chmod "$4" "$3.new" && mv -f "$3.new" "$3"
}
""",
    "archive": """\
archive() { # archive URL SHA256 FOLDER
  [ ! -e "$state/archives/$2" ] || return 0
  obtain "$1" "$2" "$state/archive" && umask_022 mkdir -p "$3" || return 1
  umask_022 tar --no-same-owner -xf "$state/archive" -C "$3" || { echo "$1 can't be unpacked"; return 1; }
  rm -f "$state/archive" && mkdir -p "$state/archives" && : > "$state/archives/$2"
}
""",
    "account": """\
given() { # given LINE: notes what a user is about to get, which may be taken away again
  grep -qxF -e "$1" "$users" 2> /dev/null || printf '%s\\n' "$1" >> "$users"
}

account() { # account NAME SHELL GROUPS SUDO, with the keys as base64 on its standard input
  users=${state%/*}/users
  if ! getent passwd "$1" > /dev/null; then
    own=-U
    if getent group "$1" > /dev/null; then own="-g$1"; fi
    given "user $1" && umask_022 useradd -m -s "$2" "$own" "$1" || return 1
  fi
  for group in $(echo "$3" | tr ',' ' '); do
    getent group "$group" > /dev/null || groupadd "$group" || return 1
    case " $(id -nG "$1") " in *" $group "*) continue ;; esac
    given "group $1 $group" && usermod -a -G "$group" "$1" || return 1
  done
  if [ -n "$4" ] && [ "$(cat "${state%/*}/ssh/login" 2> /dev/null)" = "$1" ]; then
    echo "what $1 may do by sudo stays as it is: the controllers log in as this user"
  elif [ -n "$4" ]; then
    command -v visudo > /dev/null || { echo "sudo is not installed: the image has to bring it"; return 1; }
    mkdir -p "$state/sudoers" && echo "$1 $4" > "$state/sudoers/$1" && chmod 440 "$state/sudoers/$1" || return 1
    visudo -c -q -f "$state/sudoers/$1" || { echo "sudo does not understand $1 $4"; return 1; }
    given "sudo $1" && mv -f "$state/sudoers/$1" "/etc/sudoers.d/90-nodewright-$1" || return 1
  fi
  base64 -d > "$state/keys"
  [ ! -s "$state/keys" ] || authorized "$1" "$(getent passwd "$1" | cut -d: -f6)"
}

authorized() { # authorized NAME HOME: in a home nothing is done with more rights than its user has
  bounded runuser -u "$1" -- sh -c 'cat "$1/.ssh/authorized_keys"' sh "$2" > "$state/had" 2> /dev/null
  grep -vxFf "$state/had" "$state/keys" > "$state/new-keys" || return 0
  while IFS= read -r key; do given "key $1 $key" || return 1; done < "$state/new-keys"
  [ -d "$2" ] || { umask_022 mkdir -p "$2" && chown "$1:" "$2"; } || return 1
  limited 20 runuser -u "$1" -- sh -c 'umask 077 && mkdir -p "$1/.ssh" && chmod 700 "$1/.ssh" && cd "$1/.ssh" || exit
    if [ -n "$(tail -c 1 authorized_keys 2> /dev/null)" ]; then echo >> authorized_keys; fi
    cat >> authorized_keys && chmod 600 authorized_keys' sh "$2" < "$state/new-keys"
}
""",
    "noswap": """\
noswap() { # swap is off now and at each boot: in fstab, as a unit, and as compressed memory
  bounded swapoff -a || return 1
  if [ -f /etc/fstab ]; then
    blank='[[:space:]][[:space:]]*' word='[^[:space:]][^[:space:]]*'
    swap="^[[:space:]]*[^#[:space:]][^[:space:]]*$blank$word${blank}swap\\([[:space:]]\\|\\$\\)"
    ! grep -q "$swap" /etc/fstab || sed -i "/$swap/s/^/# off for the kubelet: /" /etc/fstab || return 1
  fi
  for folder in /usr/lib/systemd /lib/systemd; do
    [ ! -e "$folder/system-generators/zram-generator" ] || : > /etc/systemd/zram-generator.conf || return 1
  done
  systemctl mask --no-reload swap.target
}
""",
    "permissive": """\
permissive() {
  command -v getenforce > /dev/null || return 0
  [ "$(getenforce)" != Enforcing ] || setenforce 0 || return 1
  [ ! -f /etc/selinux/config ] || sed -i 's/^SELINUX=enforcing$/SELINUX=permissive/' /etc/selinux/config
}
""",
    "time_servers": """\
time_servers() { # time_servers SERVER…: these, and none of a call before
  if command -v chronyd > /dev/null; then
    file=/etc/chrony.conf
    if [ -d /etc/chrony ]; then file=/etc/chrony/chrony.conf; fi
    [ "$#" -gt 0 ] || [ -e "$file" ] || return 0
    cat "$file" 2> /dev/null | sed '/^# Nodewright: begin$/,/^# Nodewright: end$/d' > "$state/others" || return 1
    {
      cat "$state/others"
      [ "$#" -eq 0 ] || echo "# Nodewright: begin"
      for server in "$@"; do
        grep -qxF -e "server $server iburst" "$state/others" || echo "server $server iburst"
      done
      [ "$#" -eq 0 ] || echo "# Nodewright: end"
    } > "$state/time"
    timed "$file" chrony.service chronyd.service
    return
  fi
  for folder in /usr/lib/systemd /lib/systemd; do
    [ -x "$folder/systemd-timesyncd" ] || continue
    file=/etc/systemd/timesyncd.conf.d/nodewright.conf
    { [ "$#" -eq 0 ] || printf '[Time]\\nNTP=%s\\n' "$*"; } > "$state/time"
    [ "$#" -eq 0 ] || enabled systemd-timesyncd.service || return 1
    [ "$#" -gt 0 ] || [ -e "$file" ] || return 0
    timed "$file" systemd-timesyncd.service
    return
  done
  [ "$#" -gt 0 ] || return 0
  echo "neither chrony nor systemd-timesyncd is there: the image has to bring one"
  return 1
}

timed() { # timed FILE UNIT…: the file becomes as $state/time, and the unit that is there is restarted with it
  late=$state/restart.time
  if [ ! -e "$late" ] && cmp -s "$state/time" "$1"; then return 0; fi
  : > "$late"
  base64 "$state/time" | put "$(stat -c %a "$1" 2> /dev/null || echo 644)" "$1" || return 1
  shift
  for unit in "$@"; do
    if [ "$#" -gt 1 ] && ! systemctl is-active --quiet "$unit"; then continue; fi
    systemctl restart "$unit" || return 1
    break
  done
  rm -f "$late"
}
""",
}
_NEEDS: Final = {
    "apt_get": ("umask_022",),
    "repository": ("family", "apt_get"),
    "packages": ("family", "apt_get"),
    "download": ("umask_022", "obtain"),
    "archive": ("umask_022", "obtain"),
    "account": ("umask_022",),
}


def texts(names: Iterable[str]) -> str:
    """The functions of these names and those that they need, each once and always in the same order."""
    wanted, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += _NEEDS.get(name, ())
    return "\n".join(text for name, text in _TEXTS.items() if name in wanted)
