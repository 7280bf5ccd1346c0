"""A tree that has dnf, and a repository of RPM packages, signed, to install from. Debian brings both programs."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from hack.hosts import tree
from hack.hosts.parts import run
from tests.hosts.chroots import Chroot

_PACKAGES = ("ca-certificates", "createrepo-c", "curl", "dnf", "dnf-plugins-core", "gpg", "gpg-agent", "passwd", "rpm")

_BUILD = """\
set -eu
export HOME=/root GNUPGHOME=/root/gpg
mkdir -p -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Packages of a test <t@example.org>' rsa2048 sign never
gpg --armor --export > /srv/key
mkdir -p /srv/repo/v1.36/rpm
for version in 1.36.2 1.36.3; do
  for name in kubelet kubeadm; do
    cat > /srv/spec <<END
Name: $name
Version: $version
Release: 150500.1.1
Summary: a test
License: none
BuildArch: noarch
AutoReqProv: no
%description
a test
%install
mkdir -p %{buildroot}/usr/bin
printf '#!/bin/sh\\necho v$version\\n' > %{buildroot}/usr/bin/$name
chmod 755 %{buildroot}/usr/bin/$name
%files
/usr/bin/$name
END
    rpmbuild -bb --quiet --define '_rpmdir /srv/repo/v1.36/rpm' /srv/spec
  done
done
find /srv/repo -name '*.rpm' -exec \\
  rpmsign --define '_gpg_name Packages of a test <t@example.org>' --define '__gpg /usr/bin/gpg' --addsign {} +
createrepo_c -q /srv/repo/v1.36/rpm
gpgconf --kill all
"""


def ensure_tree() -> Path:
    """Made once (about a minute) and kept beside the tree of the lab's hosts. Raises LabError."""
    digest = hashlib.sha256(repr(_PACKAGES).encode()).hexdigest()[:12]
    target = tree.cache_folder() / f"{tree.suite()}-dnf-{digest}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        packages = f"--include={','.join(_PACKAGES)}"
        run(
            "mmdebstrap", "--mode=root", "--variant=apt", "--quiet", packages, tree.suite(), str(partial), tree.mirror()
        )
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def make(folder: Path) -> Chroot:
    """A root whose package manager is dnf, with a repository in /srv/repo that the key in /srv/key signs."""
    root = Chroot.make(ensure_tree(), folder)
    root.write("/etc/dnf/vars/releasever", "12\n")  # a host of the family has a package that says so
    done = root.run("rm /usr/bin/apt-get /usr/lib/python3/dist-packages/dnf-plugins/local.py")
    assert done.returncode == 0, done.stderr
    done = root.run(_BUILD, "/bin/bash")
    assert done.returncode == 0, done.stderr
    return root
