"""Mutual TLS: who is let in, renewed certificates, and the command that makes them."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import structlog
from structlog.testing import capture_logs

from nodewright.cli.main import run
from nodewright.gateways.externalgrpc.certificates import CertificateError, CertificateOptions, cloud_config, write_all
from nodewright.gateways.externalgrpc.gateway import GatewayOptions
from nodewright.gateways.externalgrpc.tls import ServerTls, TlsError, TlsFiles
from tests.gateways.externalgrpc.caller import Caller, serving
from tests.runtime.town import Town

DESIRED = CertificateOptions(("localhost", "127.0.0.1"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path / "tls", DESIRED)
    return tmp_path / "tls"


def files(folder: Path) -> TlsFiles:
    return TlsFiles(folder / "server.crt", folder / "server.key", folder / "ca.crt")


def secured(folder: Path) -> GatewayOptions:
    options = GatewayOptions()
    return replace(options, server=replace(options.server, tls=ServerTls(files(folder))))


def client(folder: Path, ca: Path | None = None, *, presents: bool = True) -> grpc.ChannelCredentials:
    pair = [(folder / f"client.{end}").read_bytes() for end in ("key", "crt")] if presents else [None, None]
    return grpc.ssl_channel_credentials((ca or folder / "ca.crt").read_bytes(), *pair)


async def reached(address: str, credentials: grpc.ChannelCredentials) -> str:
    where = f"localhost:{address.rpartition(':')[2]}"
    async with grpc.aio.secure_channel(where, credentials) as channel:
        return (await Caller(channel).status("Refresh"))[0]


async def test_only_holders_of_a_certificate_of_that_ca_are_let_in(town: Town, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_all(other, DESIRED)
    async with serving(town, secured(folder), client(folder)) as served:
        await served.caller("Refresh")
        assert await reached(served.address, client(folder, presents=False)) == "UNAVAILABLE"
        assert await reached(served.address, client(other, folder / "ca.crt")) == "UNAVAILABLE"


@pytest.mark.slow
async def test_nothing_older_than_tls_1_3_is_spoken(town: Town, folder: Path) -> None:
    """In a process of its own: gRPC reads its cipher suites once, when it is loaded."""
    flags = [f"--kubeconfig={town.plane.kubeconfig_path}", "--port=0", f"--tls-cert-file={folder / 'server.crt'}"]
    flags += [f"--tls-private-key-file={folder / 'server.key'}", f"--client-ca-file={folder / 'ca.crt'}"]
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nodewright.cli", "gateway", "externalgrpc", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert gateway.stdout is not None
    ready = (await gateway.stdout.readline()).decode()
    address = ready.removeprefix("ready: serving externalgrpc at ").split()[0]
    refused = {version: await no_cipher(version, address, folder) for version in ("-tls1_2", "-tls1_3")}
    gateway.terminate()
    assert await gateway.wait() == 0
    assert refused == {"-tls1_2": True, "-tls1_3": False}


async def no_cipher(version: str, address: str, folder: Path) -> bool:
    process = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", version, "-alpn", "h2", "-connect", address),
        *("-cert", str(folder / "client.crt"), "-key", str(folder / "client.key")),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    return b"Cipher is (NONE)" in out


async def test_renewed_certificates_are_taken_without_a_restart(town: Town, folder: Path, tmp_path: Path) -> None:
    """A new CA as well: the old client is shut out, the new one let in. A broken file in between changes nothing."""
    new = tmp_path / "new"
    write_all(new, DESIRED)
    options = secured(folder)
    async with serving(town, options, client(folder)) as served:
        await served.caller("Refresh")
        (folder / "server.key").write_bytes((new / "server.key").read_bytes())
        assert await reached(served.address, client(folder)) == "OK"
        for name in ("server.crt", "ca.crt"):
            (folder / name).write_bytes((new / name).read_bytes())
        assert await reached(served.address, client(new)) == "OK"
        assert await reached(served.address, client(folder, new / "ca.crt")) == "UNAVAILABLE"


async def test_changes_are_logged_with_the_name_in_the_callers_certificate(town: Town, folder: Path) -> None:
    async with serving(town, secured(folder), client(folder)) as served:
        structlog.reset_defaults()
        with capture_logs() as lines:
            await served.caller.status("NodeGroupIncreaseSize", id="MachineDeployment/default/none", delta=3)
        (line,) = [line for line in lines if line["event"] == "size change"]
        assert line["caller"][0] == "cluster-autoscaler"
        assert (line["group"], line["delta"], line["result"]) == ("MachineDeployment/default/none", 3, "NOT_FOUND")


@pytest.mark.parametrize("name", ["certificate", "key", "client_ca"])
def test_files_that_are_no_good_are_refused_at_the_start(folder: Path, name: str) -> None:
    wrong = folder / "wrong"
    wrong.write_text("nonsense")
    with pytest.raises(TlsError, match="wrong"):
        ServerTls(replace(files(folder), **{name: wrong}))
    with pytest.raises(TlsError, match="missing: No such file"):
        ServerTls(replace(files(folder), **{name: folder / "missing"}))


def test_keys_are_for_their_owner_alone_and_a_ca_is_used_again(folder: Path) -> None:
    for name in ("ca", "server", "client"):
        assert stat.S_IMODE(os.stat(folder / f"{name}.key").st_mode) == 0o600
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_all(folder, DESIRED)
    kept = {name for name, content in before.items() if (folder / name).read_bytes() == content}
    assert kept == {"ca.crt", "ca.key"}


def test_a_ca_with_a_foreign_key_is_not_used(folder: Path, tmp_path: Path) -> None:
    write_all(tmp_path / "other", DESIRED)
    (folder / "ca.key").write_bytes((tmp_path / "other" / "ca.key").read_bytes())
    with pytest.raises(CertificateError, match=r"ca\.key is not the key of"):
        write_all(folder, DESIRED)


def test_the_command_says_how_to_use_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["gateway", "externalgrpc", "certs", "--out", str(out), "--host", "gateway.example", "--port", "9"]) == 0
    said = capsys.readouterr().out
    assert f"--cloud-provider=externalgrpc --cloud-config={out / 'cloud-config.yaml'}" in said
    assert f"--client-ca-file={out / 'ca.crt'}" in said
    assert (out / "cloud-config.yaml").read_text() == cloud_config("gateway.example:9", out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "0.0.0.0"], "certificates are needed to listen on 0.0.0.0"),
        (["--listen", "gateway.example"], "is not loopback"),
        (["--tls-cert-file", "a"], "belong together"),
        (["--tls-cert-file", "a", "--insecure"], "contradict"),
    ],
)
def test_plaintext_is_for_loopback_unless_it_is_meant(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gateway", "externalgrpc", *arguments]) == 2
    assert words in capsys.readouterr().err
