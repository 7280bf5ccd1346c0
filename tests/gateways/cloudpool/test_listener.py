"""Who may ask a gateway, how much, and what is written down of it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog

from controllers.kernel.refs import NODE
from hack.cloudpool.scene import Scene, options_for
from nodewright.cli.exits import CliError
from nodewright.cli.gateways.listener_flags import ListenerFlags
from nodewright.gateways.admission.certificate import ServedCertificate
from nodewright.gateways.cloudpool.backend import Backend, BackendOptions
from nodewright.gateways.cloudpool.basic_auth import encode
from nodewright.gateways.cloudpool.config import ConfigError, backend_of, parse, seconds_of
from nodewright.gateways.cloudpool.instances import InstanceError, Instances, parse_pool
from nodewright.gateways.cloudpool.listener import ListenerError, ListenerOptions, read_users
from nodewright.gateways.cloudpool.proxy import CloudpoolProxy, ProxyOptions
from nodewright.runtime.election.leadership import LeaseLeadership
from nodewright.runtime.election.lease_options import LeaseOptions
from nodewright.runtime.kube.errors import ConfigurationError
from nodewright.runtime.kube.kubeconfig import load_kubeconfig_for
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.observability import ObservabilityServer
from tests.gateways.pems import issue
from tests.runtime.stub_server import until

LOOPBACK = ListenerOptions(port=0)
JSON = {"Content-Type": "application/json"}


async def test_defect_21_the_proxy_speaks_tls_and_asks_for_certificates_and_passwords(
    stage: Scene, tmp_path: Path
) -> None:
    server, client = issue("server"), issue("client")
    (tmp_path / "client").mkdir()
    certificate = ServedCertificate(*server.write(tmp_path), metrics.CLOUDPOOL_CERTIFICATE_EXPIRY)
    client_files = client.write(tmp_path / "client")
    listener = ListenerOptions(port=0, certificate=certificate, client_ca=client_files[0], users={"scaler": "s3cret"})
    proxy = await stage.start(listener=listener)
    assert proxy.url.startswith("https://127.0.0.1:")

    async def status(with_certificate: bool, password: str) -> int:
        context = ssl.create_default_context(cadata=server.certificate.decode())
        if with_certificate:
            context.load_cert_chain(*client_files)
        headers = {"Authorization": encode("scaler", password)}
        async with stage.session.get(f"{proxy.url}/status", ssl=context, headers=headers) as answer:
            return answer.status

    assert await status(True, "s3cret") == 200
    assert await status(True, "other") == 401
    with pytest.raises(aiohttp.ClientError):
        await status(False, "s3cret")


def test_a_gateways_certificate_has_a_metric_that_is_not_the_webhooks(tmp_path: Path) -> None:
    metrics.WEBHOOK_CERTIFICATE_EXPIRY.set(0)
    cert_file, key_file = issue("server").write(tmp_path)
    certificate = ListenerFlags("127.0.0.1", 0, None, cert_file, key_file).listener().certificate
    assert certificate is not None
    assert certificate.expires is not None
    assert metrics.CLOUDPOOL_CERTIFICATE_EXPIRY.collect()[0].samples[0].value == certificate.expires.timestamp()
    assert metrics.WEBHOOK_CERTIFICATE_EXPIRY.collect()[0].samples[0].value == 0


@pytest.mark.slow
async def test_defect_21_the_backend_is_asked_with_a_name_and_a_password(stage: Scene) -> None:
    seen: list[str] = []

    async def noted(request: Any) -> Any:
        seen.append(request.headers.get("Authorization", ""))
        return await asyncio.to_thread(stage.pool._answer, request, {})

    stage.pool.instead["GET /pool"] = stage.pool.instead["GET /status"] = noted
    await stage.node("n1")
    login = encode("proxy", "s3cret")
    options = ProxyOptions(BackendOptions(stage.pool.url, 5.0, login=login), LOOPBACK)
    stage.proxy = await CloudpoolProxy(stage.proxy_client, options).__aenter__()
    assert (await stage.set_size(1))[0] == 200
    assert (await stage.ask("GET", "/status"))[0] == 200
    assert seen == [login] * 2
    assert "s3cret" not in repr(options)


def test_defect_21_the_cluster_may_be_reached_as_a_pod(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    config = parse(
        json.dumps(
            {
                "apiServer": {"url": "https://10.0.0.1", "auth": {"inCluster": True}},
                "backend": {"url": "http://pool/", "auth": {"username": "u", "passwordPath": str(password)}},
            }
        )
    )
    assert config.auth.in_cluster
    options = backend_of(config)
    assert options.url == "http://pool"
    assert options.login == encode("u", "s3cret")


async def test_defect_24_one_of_several_proxies_works_and_the_others_refuse(stage: Scene) -> None:
    await stage.node("n1")
    await stage.node("n2")
    lease = LeaseOptions("proxy", "default")
    leaderships = [LeaseLeadership(stage.kube, lease, utc_now) for _ in range(2)]
    proxies = [CloudpoolProxy(stage.proxy_client, options_for(stage.pool), each) for each in leaderships]
    async with proxies[0] as first:
        await until(lambda: leaderships[0].held)
        async with proxies[1] as second:
            stage.proxy = second
            status, body = await stage.set_size(1)
            assert (status, body["message"]) == (503, "another process holds the Lease")
            assert second.readiness()["leader"] == "another process holds the Lease"
            assert (await stage.ask("GET", "/pool"))[0] == 200, "what only reads is answered by all"
            stage.proxy = first
            assert (await stage.set_size(1))[0] == 200
        stage.proxy = None
    for each in leaderships:
        await each.release()
    assert len((await stage.kube.list_page(NODE)).items) == 1


@pytest.mark.slow
async def test_changes_are_written_down_and_reads_are_not(stage: Scene) -> None:
    await stage.node("n1")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    await stage.start()
    with structlog.testing.capture_logs() as logs:
        await stage.ask("GET", "/pool")
        await stage.set_size(1)
        await stage.ask("POST", "/pool/detach", json={"machineId": "n1"})
    written = [log for log in logs if log.get("gateway")]
    assert [(log["event"], log["path"], log["status"]) for log in written] == [
        ("changed", "/pool/size", 200),
        ("refused", "/pool/detach", 404),
    ]
    assert written[0]["body"] == '{"desiredSize": 1}'
    assert written[0]["client"] == "127.0.0.1"


@pytest.mark.slow
async def test_what_is_too_large_too_slow_or_too_much_is_refused(stage: Scene) -> None:
    proxy = await stage.start(listener=ListenerOptions(port=0, read_timeout=0.1))
    big = b'{"desiredSize": 1, "x": "' + b"x" * (1 << 20) + b'"}'
    assert (await stage.ask("POST", "/pool/size", data=BytesIO(big)))[0] == 413
    host, port = proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /pool/size HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n\r\n")
    assert b" 408 " in await reader.readline()
    writer.close()
    await stage.stop()
    await stage.start(listener=ListenerOptions(port=0, in_flight=0))
    assert (await stage.ask("GET", "/pool"))[0] == 503


WRONG = [
    ("", "failed to decode setDesiredSize message"),
    ("{", "failed to decode setDesiredSize message"),
    ('{"desiredSize": 2.0}', "failed to decode setDesiredSize message"),
    ('{"desiredSize": "2"}', "failed to decode setDesiredSize message"),
    ('{"desiredSize": true}', "failed to decode setDesiredSize message"),
    ('{"desiredSize": 1} x', "failed to decode setDesiredSize message"),
    ("[]", "failed to decode setDesiredSize message"),
    ("{}", "setDesiredSize message did not specify a desiredSize"),
    ("null", "setDesiredSize message did not specify a desiredSize"),
    ('{"desired": 2}', "setDesiredSize message did not specify a desiredSize"),
    ('{"desiredSize": -1}', "setDesiredSize message: desiredSize must be non-negative"),
]


async def test_bad_input_is_refused_in_the_words_of_the_original(stage: Scene) -> None:
    await stage.start()
    for body, message in WRONG:
        status, said = await stage.ask("POST", "/pool/size", data=body, headers=JSON)
        assert (status, said["message"]) == (400, message), body
        assert "Expecting" not in said["detail"] or said["detail"].startswith("not JSON: "), body
    assert stage.pool.calls == []


@pytest.mark.slow
async def test_field_names_are_known_whatever_their_case(stage: Scene) -> None:
    await stage.node("n1")
    await stage.start()
    assert (await stage.ask("POST", "/pool/size", data='{"DESIREDSIZE": 3, "more": 1}', headers=JSON))[0] == 200
    assert stage.pool.desired == 3
    assert (await stage.ask("POST", "/pool/terminate", data='{"machineID": ""}', headers=JSON))[0] == 400
    status, said = await stage.ask("POST", "/pool/terminate", data='{"machineID": "nobody"}', headers=JSON)
    assert (status, said["message"]) == (404, "failed to terminate machine")


@pytest.mark.slow
async def test_health_and_metrics_are_served_beside_it(stage: Scene) -> None:
    await stage.node("n1")
    proxy = await stage.start()
    await stage.ask("GET", "/pool")
    async with ObservabilityServer("127.0.0.1", 0, proxy) as beside:
        async with stage.session.get(f"{beside.url}/readyz?verbose") as answer:
            assert "[+]nodes ok" in await answer.text()
        async with stage.session.get(f"{beside.url}/metrics") as answer:
            assert 'nodewright_cloudpool_requests_total{code="200",route="forwarded"}' in await answer.text()


CERTIFICATES = {"clientCertPath": "c", "clientKeyPath": "k", "caCertPath": "a"}
GOOD: dict[str, Any] = {
    "apiServer": {"url": "https://master:6443", "auth": CERTIFICATES},
    "backend": {"url": "http://pool:9010"},
}


def test_the_originals_configuration_is_read_with_its_defaults() -> None:
    config = parse(json.dumps(GOOD))
    assert (config.server_timeout, config.api_timeout, config.backend_timeout) == (60.0, 60.0, 300.0)
    assert (config.auth.certificate, config.auth.key, config.auth.ca) == ("c", "k", "a")
    times = {**GOOD, "server": {"timeout": "1m35s"}, "backend": {"url": "http://p", "TIMEOUT": "-1s"}, "x": 1}
    assert parse(json.dumps(times)).server_timeout == 95.0
    assert parse(json.dumps(times)).backend_timeout == 300.0


BAD: dict[str, tuple[Any, str]] = {
    "no API server": ({"backend": GOOD["backend"]}, "proxy config: apiServer: missing field: url"),
    "an URL without a scheme": (
        {**GOOD, "apiServer": {"url": ":", "auth": CERTIFICATES}},
        'proxy config: apiServer: url: parse ":": missing protocol scheme',
    ),
    "no key": (
        {**GOOD, "apiServer": {"url": "https://m", "auth": {"clientCertPath": "c"}}},
        "proxy config: apiServer: auth: missing value: clientKeyPath",
    ),
    "no backend": ({"apiServer": GOOD["apiServer"]}, "proxy config: backend: backend: missing field: url"),
    "a number as a time": ({**GOOD, "server": {"timeout": 60}}, "server.timeout: invalid duration 60"),
    "a list": ([], "failed to parse proxy config"),
    "a text as a part": ({**GOOD, "backend": "x"}, "backend: an object is needed"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_configuration_that_can_not_be_used_is_told_with_its_field(what: str) -> None:
    document, told = BAD[what]
    with pytest.raises(ConfigError, match=re.escape(told)):
        parse(json.dumps(document))


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("1.5s", 1.5), ("100ms", 0.1), ("1us", 1e-6), ("0", 0)])
def test_times_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert seconds_of(text, "x") == pytest.approx(seconds)


def test_a_file_of_users_that_can_not_be_used_is_told_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("# who\nscaler:pass:word\n")
    assert read_users(file) == {"scaler": "pass:word"}
    for text in ("", "scaler\n", "scaler:\n"):
        file.write_text(text)
        with pytest.raises(ListenerError, match="users"):
            read_users(file)


def test_the_flags_of_the_original_are_there() -> None:
    import typer.main  # noqa: PLC0415

    from nodewright.cli.main import build_app  # noqa: PLC0415

    command = typer.main.get_command(build_app(["gateway"])).commands["gateway"]  # type: ignore[attr-defined]
    params = {option: p for p in command.commands["cloudpool-proxy"].params for option in p.opts}
    assert str(params["--config-file"].default) == "/etc/elastisys/kubeaware-cloudpool-proxy.json"
    assert params["--port"].default == 8080
    assert {"--v", "--version", "--logtostderr", "--vmodule", "--stderrthreshold", "--log_dir"} <= set(params)


async def test_a_kubeconfig_is_asked_for_the_cluster_of_that_url(tmp_path: Path) -> None:
    file = tmp_path / "config"
    clusters = [{"name": name, "cluster": {"server": f"https://{name}:6443"}} for name in ("a", "b", "c")]
    contexts = [{"name": f"{c}{n}", "context": {"cluster": c, "user": f"{c}{n}"}} for c in "ab" for n in (1, 2)]
    users = [{"name": f"{c}{n}", "user": {"token": f"token-{c}{n}"}} for c in "ab" for n in (1, 2)]
    file.write_text(json.dumps({"clusters": clusters, "contexts": contexts, "users": users, "current-context": "b2"}))

    async def token(server: str) -> str:
        tokens = (await load_kubeconfig_for(file, server)).tokens
        assert tokens is not None
        return await tokens.token()

    assert await token("https://b:6443") == "token-b2", "the current context is of that cluster"
    assert await token("https://a:6443/") == "token-a1", "else the first one that is"
    with pytest.raises(ConfigurationError, match="no cluster with server https://x") as caught:
        await token("https://x")
    assert caught.value.remedy == "Servers there: https://a:6443, https://b:6443, https://c:6443"
    with pytest.raises(ConfigurationError, match="no context for the cluster 'c'"):
        await token("https://c:6443")


FOREIGN = [
    ({"Host": "evil.test"}, 421),
    ({"Host": "evil.test:8080"}, 421),
    ({"Host": "127.0.0.1.evil.test"}, 421),
    ({"Host": "user@127.0.0.1"}, 421),
    ({"Origin": "http://evil.test"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Content-Type": "text/plain"}, 415),
    ({"Content-Type": "text/plain; a=application/json"}, 415),
    ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
]


async def test_a_web_page_can_not_make_a_browser_change_the_pool(stage: Scene) -> None:
    """Neither what is taken over nor what is passed on, by any of the ways that a page has."""
    await stage.node("n1")
    await stage.start()
    for headers, status in FOREIGN:
        for path in ("/pool/size", "/pool/detach", "/stop"):
            answer = await stage.ask("POST", path, data=b'{"desiredSize": 0}', headers={**JSON, **headers})
            assert answer[0] == status, (path, headers, answer)
    assert stage.pool.calls == []


async def test_a_name_of_the_gateway_is_allowed_when_it_is_listed(stage: Scene) -> None:
    await stage.start(listener=ListenerOptions(port=0, allowed_hosts=frozenset({"Pool.Example.com"})))
    assert (await stage.ask("GET", "/pool", headers={"Host": "pool.example.com:8080"}))[0] == 200
    assert (await stage.ask("GET", "/pool", headers={"Host": "localhost:1"}))[0] == 200
    assert (await stage.ask("GET", "/pool", headers={"Host": "other.example.com"}))[0] == 421


async def test_the_audit_log_holds_no_passwords(stage: Scene) -> None:
    await stage.start()
    body = {"machineId": "n1", "password": "s3cret", "membershipStatus": {"active": True, "token": "s3cret"}}
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    with structlog.testing.capture_logs() as logs:
        await stage.ask("POST", "/pool/terminate?password=s3cret", json={**body, "s3cret": {"a": "s3cret"}})
        await stage.ask("POST", "/pool/terminate", data=b"s3cret", headers=JSON)
        await stage.ask("POST", "/config?key=s3cret", json={"cloudApiSettings": {"password": "s3cret"}})
    assert len([log for log in logs if log.get("gateway")]) == 3
    assert "s3cret" not in str(logs)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "pool.example.com"])
def test_beyond_loopback_a_gateway_needs_tls_and_a_login(host: str, tmp_path: Path) -> None:
    cert_file, key_file = issue("server").write(tmp_path)
    users = tmp_path / "users"
    users.write_text("scaler:s3cret\n")
    for asked in (
        ListenerFlags(host, 0, None),
        ListenerFlags(host, 0, None, users_file=users),
        ListenerFlags(host, 0, None, cert_file, key_file),
    ):
        with pytest.raises(CliError, match="TLS and a login are needed"):
            asked.listener()
    assert ListenerFlags(host, 0, None, cert_file, key_file, users_file=users).listener().host == host
    assert ListenerFlags(host, 0, None, insecure=True).listener().host == host


@pytest.mark.parametrize(
    "url", ["http://a:b@pool", "http://pool?x=1", "http://pool#x", "http://po ol", "http://pool\\x"]
)
def test_a_backend_url_has_no_user_info_and_nothing_behind_its_path(url: str) -> None:
    with pytest.raises(ConfigError, match="user info"):
        parse(json.dumps({"apiServer": {"url": "https://x", "auth": {"inCluster": True}}, "backend": {"url": url}}))


@pytest.mark.parametrize("target", ["@evil.test/pool", ":1@evil.test/", ".evil.test/", ""])
async def test_the_backends_login_goes_to_no_other_host(target: str) -> None:
    backend = Backend(BackendOptions("http://pool"))
    assert str(backend.url_of("/pool/size")) == "http://pool/pool/size"
    with pytest.raises(ValueError, match="host"):
        backend.url_of(target)


@pytest.mark.parametrize("name", [".", ".."])
def test_no_cloudpool_is_named_as_a_step_of_a_path(name: str) -> None:
    with pytest.raises(InstanceError):
        Instances({}).create(name)
    with pytest.raises(InstanceError):
        parse_pool(f"{name}=md/default/workers")
