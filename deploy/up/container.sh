#!/bin/sh
# `nodewright up` for good in a container: ./container.sh IMAGE [FOLDER]. ENGINE=docker takes Docker in podman's place.
# The network is the machine's: the control plane listens on loopback alone, and reaches hosts and clouds from there.
set -eu
image=${1:?"usage: $0 IMAGE [FOLDER]"}
folder=${2:-/var/lib/nodewright}
engine=${ENGINE:-podman}
user=${CONTAINER_USER:-65532:65532}

install -d -m 0700 -o "${user%%:*}" -g "${user##*:}" "$folder"
exec "$engine" run --detach --name nodewright-up --restart on-failure --stop-timeout 90 \
  --network host --user "$user" --read-only --tmpfs /tmp:rw,noexec,nosuid,nodev,mode=1777 \
  --cap-drop ALL --security-opt no-new-privileges --pids-limit 512 \
  --volume "$folder:/var/lib/nodewright" --env HOME=/var/lib/nodewright \
  "$image" up --data-dir /var/lib/nodewright/up --port 16443 --no-web --log-format json
