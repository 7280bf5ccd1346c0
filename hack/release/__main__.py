"""``python -m hack.release make|image|audit``; see docs/releasing.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hack.release import audit, bundles, image, making, proof, version
from hack.release.parts import ROOT, ReleaseError, commit_time


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return int(options.does(options))
    except ReleaseError as error:
        print(f"hack.release: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.release", description=__doc__)
    commands = parser.add_subparsers(required=True)
    making_ = commands.add_parser("make", help="all artefacts, their checksums and signatures as asked for")
    _signing(making_)
    making_.add_argument("--out", type=Path, default=ROOT / "dist")
    making_.add_argument("--downloads-url", default="", help="where the artefacts are going to be, for krew")
    making_.set_defaults(does=_make)
    only = commands.add_parser("image", help="the image alone, as an OCI archive")
    only.add_argument("--out", type=Path, default=ROOT / "build/nodewright-image.tar")
    only.set_defaults(does=_image)
    for each in (making_, only):
        each.add_argument("--arch", default="amd64", help="amd64, arm64 or both with a comma (default: amd64)")
        each.add_argument(
            "--registry", default="", help="what comes before the image's name, such as ghcr.example/team"
        )
        each.add_argument("--downloads", type=Path, default=ROOT / "build/debian", help="keeps Debian's packages")
    audits = commands.add_parser(
        "audit", help="the lock against advisories: OSV's export of PyPI, as a zip, a folder or one JSON file"
    )
    audits.add_argument("database", type=Path)
    audits.set_defaults(does=_audit)
    return parser


def _signing(parser: argparse.ArgumentParser) -> None:
    """No token is an argument: other users of the machine can read those."""
    parser.add_argument("--key", type=Path, help="Ed25519 key in PEM: `openssl genpkey -algorithm ed25519`")
    parser.add_argument("--sigstore", action="store_true", help="sign by an identity: a bundle beside each artefact")
    parser.add_argument(
        "--trust-config", type=Path, help="ClientTrustConfig of a private Sigstore (default: the public)"
    )
    parser.add_argument(
        "--identity-token-file", type=Path, help=f"for Sigstore (default: ${bundles.TOKEN}, else that of the CI system)"
    )


def _make(options: argparse.Namespace) -> int:
    sigstore = _sigstore(options)
    settings = making.Settings(
        options.arch.split(","), options.registry, options.key, options.downloads.absolute(), options.downloads_url
    )
    made = making.artefacts(settings)
    signed = bundles.signed(proof.signable(made), sigstore) if sigstore else None
    options.out.mkdir(parents=True, exist_ok=True)
    bundles.drop(options.out)
    for name, data in sorted({**made, **(signed.bundles if signed else {})}.items()):
        (options.out / name).write_bytes(data)
        print(f"{len(data):>12,} {name}")
    unsigned = "" if options.key or signed else "; not signed: neither --key nor --sigstore is given"
    print(f"{version.released()} is in {options.out}, checked by `sha256sum --check {proof.SUMS}`{unsigned}")
    if signed:
        print(f"signed through Sigstore by {signed.identity}, issuer {signed.issuer}: say so where users look")
    return 0


def _sigstore(options: argparse.Namespace) -> bundles.Instance | None:
    """Where to sign, known to work before the artefacts are made. Raises ReleaseError."""
    instance = bundles.Instance(options.trust_config, options.identity_token_file)
    if not options.sigstore:
        if instance != bundles.Instance():
            raise ReleaseError("--trust-config and --identity-token-file are for --sigstore, which is not given")
        return None
    bundles.check(instance)
    return instance


def _image(options: argparse.Namespace) -> int:
    number, when = version.released(), commit_time()
    wheel = next(data for name, data in making.distributions(when).items() if name.endswith(".whl"))
    name = f"{options.registry.rstrip('/')}/nodewright:{number}".lstrip("/")
    downloads = options.downloads.absolute()
    built = image.build(image.Request(name, number, wheel, options.arch.split(","), when, downloads))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(built.archive)
    print(f"{name}@{built.digest} is in {options.out}: `ctr -n k8s.io images import {options.out}`")
    return 0


def _audit(options: argparse.Namespace) -> int:
    found = audit.findings((ROOT / "requirements-runtime.lock").read_text(encoding="utf-8"), options.database)
    print("\n".join(found) or "no advisory of this database is about a version in requirements-runtime.lock")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
