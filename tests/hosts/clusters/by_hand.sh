#!/bin/bash
# A cluster of one control plane and two workers by ssh, kubeadm and kubectl alone, as a person in a hurry writes it:
# hosts are prepared at once, workers join at once. test_create_cluster_beside_a_script.py takes its time.
#
# FRONT, WORKERS: addresses. MIRROR: where kubelet and kubeadm of VERSION are. KEY, KNOWN_HOSTS: files of ssh.
# CONTAINERD: its configuration, a file. ADDON: manifests, a file. OUT: where the kubeconfig goes. KUBECTL: the program.
set -euo pipefail

on() {
  local host=$1
  shift
  ssh -i "$KEY" -o UserKnownHostsFile="$KNOWN_HOSTS" -o BatchMode=yes "root@$host" "$@"
}

at_once() { # each of the jobs that were begun, or the end
  local job
  for job in $(jobs -p); do wait "$job"; done
}

prepare() {
  on "$1" 'cat > /etc/containerd/config.toml.new' < "$CONTAINERD"
  on "$1" bash -s <<END
set -euo pipefail
modprobe -a overlay br_netfilter 2> /dev/null || true
printf 'overlay\nbr_netfilter\n' > /etc/modules-load.d/kubernetes.conf
printf '%s = 1\n' net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables net.ipv4.ip_forward \
  > /etc/sysctl.d/90-kubernetes.conf
sysctl --quiet --load /etc/sysctl.d/90-kubernetes.conf
cd /etc/containerd
if ! cmp -s config.toml config.toml.new; then
  mv config.toml.new config.toml
  systemctl restart containerd
fi
for program in kubelet kubeadm; do
  curl --silent --show-error --fail --output /usr/bin/\$program.new $MIRROR/$VERSION/bin/linux/amd64/\$program
  digest=\$(curl --silent --show-error --fail $MIRROR/$VERSION/bin/linux/amd64/\$program.sha256)
  echo "\$digest  /usr/bin/\$program.new" | sha256sum --check --quiet
  chmod 755 /usr/bin/\$program.new
  mv /usr/bin/\$program.new /usr/bin/\$program
done
cat > /etc/systemd/system/kubelet.service <<'UNIT'
[Unit]
Description=kubelet: the Kubernetes node agent
Wants=network-online.target
After=network-online.target containerd.service
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/bin/kubelet \$KUBELET_KUBECONFIG_ARGS \$KUBELET_CONFIG_ARGS \$KUBELET_KUBEADM_ARGS
Restart=always
StartLimitInterval=0
RestartSec=10
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --quiet kubelet
END
}

init() {
  on "$FRONT" 'umask 077; cat > /root/init.yaml' <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: $TOKEN, ttl: 1h0m0s}]
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
  ignorePreflightErrors: [SystemVerification]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: prod
kubernetesVersion: $VERSION
controlPlaneEndpoint: $FRONT:6443
encryptionAlgorithm: ECDSA-P256
dns: {disabled: true}
proxy: {disabled: true}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
END
  on "$FRONT" kubeadm init --config /root/init.yaml --skip-token-print
  (umask 077; on "$FRONT" cat /etc/kubernetes/admin.conf > "$OUT")
  on "$FRONT" 'openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der |
    sha256sum | cut -d" " -f1' > "$OUT.ca"
}

join() {
  on "$1" kubeadm join "$FRONT:6443" --token "$TOKEN" --discovery-token-ca-cert-hash "sha256:$(cat "$OUT.ca")" \
    --ignore-preflight-errors SystemVerification
}

TOKEN=$(od -An -N3 -tx1 /dev/urandom | tr -d ' \n').$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
for host in $FRONT $WORKERS; do prepare "$host" & done
at_once
init
for host in $WORKERS; do join "$host" & done
"$KUBECTL" --kubeconfig "$OUT" apply --server-side -f "$ADDON"
at_once
nodes=$(echo "$FRONT" $WORKERS | wc -w)
until [ "$("$KUBECTL" --kubeconfig "$OUT" get nodes -o name | wc -l)" = "$nodes" ]; do sleep 0.2; done
"$KUBECTL" --kubeconfig "$OUT" wait --for=condition=Ready nodes --all --timeout=120s
