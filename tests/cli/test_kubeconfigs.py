"""Which kubeconfig may be replaced, and how a context is added to the one that kubectl reads."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.program import Up
from nodewright.apiserver.app.kubeconfig import IN_MEMORY
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.kubeconfigs import kubectls_file, merge, must_be_ours
from nodewright.cli.main import run
from nodewright.cli.merging import merge_into_kubectls
from tests.cli.processes import nodewright

OURS, THEIRS = b"b3Vycw==", b"dGhlaXJz"


@pytest.fixture
def port() -> Iterator[int]:
    """Nobody listens there, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def config(authority: bytes = OURS, name: str = "nodewright", port: int = 1, **cluster: Any) -> dict[str, Any]:
    about = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority.decode(), **cluster}
    return {
        "clusters": [{"name": name, "cluster": about}],
        "users": [{"name": f"{name}-admin", "user": {"token": "secret"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
        "current-context": name,
    }


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


class TestSeparate:
    def test_none_an_empty_one_and_the_plane_s_own_may_be_replaced(self, tmp_path: Path) -> None:
        must_be_ours(tmp_path / "none", None)
        must_be_ours(written(tmp_path / "empty", ""), None)
        must_be_ours(written(tmp_path / "own", config()), OURS)

    def test_the_plane_s_own_may_be_replaced_after_kubectl_has_rewritten_it(self, tmp_path: Path) -> None:
        must_be_ours(written(tmp_path / "own", yaml.safe_dump(config())), OURS)

    @pytest.mark.parametrize("authority", [OURS, None])
    def test_that_of_another_plane_is_refused(self, tmp_path: Path, authority: bytes | None) -> None:
        with pytest.raises(CliError, match="another control plane"):
            must_be_ours(written(tmp_path / "k", config(THEIRS)), authority)

    @pytest.mark.parametrize("content", ["words", "[1]", "clusters: x", "clusters: [1]", "a: [", config(name="prod")])
    def test_what_is_none_of_a_plane_is_refused(self, tmp_path: Path, content: Any) -> None:
        with pytest.raises(CliError, match="is not ours"):
            must_be_ours(written(tmp_path / "k", content), OURS)

    def test_that_of_a_plane_in_memory_may_be_replaced_once_it_has_ended(self, tmp_path: Path, port: int) -> None:
        path = written(tmp_path / "k", config(THEIRS, port=port, extensions=[IN_MEMORY]))
        must_be_ours(path, None)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            alive = config(THEIRS, port=listening.getsockname()[1], extensions=[IN_MEMORY])
            with pytest.raises(CliError, match="another control plane"):
                must_be_ours(written(path, alive), None)


class TestMerged:
    def merged(self, path: Path, name: str = "lab", **options: Any) -> dict[str, Any]:
        merge(path, json.dumps(config(**options)).encode(), name)
        found: dict[str, Any] = yaml.safe_load(path.read_text())
        return found

    def test_into_no_file_it_is_a_whole_kubeconfig_for_its_owner_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "kube" / "config"
        found = self.merged(path)
        assert found["current-context"] == "lab"
        assert found["contexts"] == [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}]
        assert (found["apiVersion"], found["kind"]) == ("v1", "Config")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in path.parent.iterdir()] == ["config"]

    def test_what_is_others_stays_word_for_word(self, tmp_path: Path) -> None:
        others = {**config(THEIRS, "prod"), "preferences": {"colors": True}, "x": "2026-01-01T00:00:00Z"}
        others["users"][0]["user"] = {"exec": {"command": "login", "args": ["on", "01"]}}
        text = yaml.safe_dump(others).replace("'2026-01-01T00:00:00Z'", "2026-01-01T00:00:00Z")
        path = written(tmp_path / "config", text)
        found = self.merged(path)
        assert found["current-context"] == "prod"
        for section in ("clusters", "users", "contexts"):
            assert found[section][0] == others[section][0]
            assert [each["name"] for each in found[section]][1:] == ["lab"]
        assert (found["preferences"], found["x"]) == (others["preferences"], others["x"])

    def test_again_it_follows_the_address_and_keeps_the_namespace_of_the_context(self, tmp_path: Path) -> None:
        path = tmp_path / "config"
        first = self.merged(path)
        first["contexts"][0]["context"]["namespace"] = "shop"
        written(path, yaml.safe_dump(first))
        found = self.merged(path, port=2)
        assert [each["cluster"]["server"] for each in found["clusters"]] == ["https://127.0.0.1:2"]
        assert found["contexts"][0]["context"]["namespace"] == "shop"

    def test_a_name_of_another_cluster_is_refused_and_the_file_stays(self, tmp_path: Path) -> None:
        path = written(tmp_path / "config", config(THEIRS, "lab"))
        before = path.read_bytes()
        with pytest.raises(CliError, match="another cluster") as refused:
            self.merged(path)
        assert "--merge-as" in refused.value.hint
        assert path.read_bytes() == before

    def test_a_context_of_that_name_that_means_another_cluster_is_refused(self, tmp_path: Path) -> None:
        other = config(THEIRS, "prod")
        other["contexts"][0]["name"] = "lab"
        with pytest.raises(CliError, match="another cluster"):
            self.merged(written(tmp_path / "config", other))

    def test_that_of_a_plane_in_memory_is_replaced_once_it_has_ended(self, tmp_path: Path, port: int) -> None:
        path = tmp_path / "config"
        self.merged(path, authority=THEIRS, port=port, extensions=[IN_MEMORY])
        assert self.merged(path)["clusters"][0]["cluster"]["certificate-authority-data"] == OURS.decode()

    def test_while_another_program_changes_it_nothing_is_written(self, tmp_path: Path) -> None:
        path = written(tmp_path / "config", "")
        (tmp_path / "config.lock").touch()
        with pytest.raises(CliError, match="is being changed"):
            self.merged(path)
        assert (path.read_text(), (tmp_path / "config.lock").exists()) == ("", True)

    def test_a_link_stays_one(self, tmp_path: Path) -> None:
        link, file = tmp_path / "config", written(tmp_path / "dotfiles", "")
        link.symlink_to(file)
        assert self.merged(link)["current-context"] == "lab"
        assert link.is_symlink()

    @pytest.mark.parametrize("content", ["words", "clusters: [1]", "a: ["])
    def test_what_is_no_kubeconfig_is_left_as_it_is(self, tmp_path: Path, content: str) -> None:
        path = written(tmp_path / "config", content)
        with pytest.raises(CliError):
            self.merged(path)
        assert path.read_text() == content


def test_the_file_is_the_one_that_kubectl_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    assert kubectls_file() == second
    first.touch()
    assert kubectls_file() == first
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kubectls_file() == tmp_path / ".kube" / "config"


def test_a_file_is_not_merged_into_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "k", config())
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(CliError, match="into itself"):
        merge_into_kubectls(path, "lab")


def test_an_empty_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--merge-as", " "]) == USAGE
    assert "--merge-as" in capsys.readouterr().err


def test_kubectl_reaches_a_plane_by_its_context_beside_others(
    tmp_path: Path, kubectl_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = written(tmp_path / "usual", config(THEIRS, "prod"))
    monkeypatch.setenv("KUBECONFIG", str(usual))
    flags = (f"--data-dir={tmp_path / 'data'}", "--no-controllers", "--merge-as=lab")
    with Up(tmp_path, kubectl_binary, *flags) as up:
        assert "default" in up.kubectl("--kubeconfig", str(usual), "--context=lab", "get", "namespaces")
        assert up.kubectl("--kubeconfig", str(usual), "config", "current-context").strip() == "prod"
        refused = nodewright("up", "--in-memory", "--no-controllers", "--kubeconfig", str(up.kubeconfig))
        assert refused.returncode == 1
        assert "another control plane" in refused.stderr
        assert up.kubectl("get", "namespaces")
