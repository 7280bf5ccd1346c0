"""How the site looks and what is refused: mkdocs with the theme Material, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent / "assets"

SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": ("README.md", "ideas.md", "tasks/first-cluster.md", "tasks/coming-from.md", "glossary.md", "features.md"),
    "Machines and sets": (
        "tasks/scale.md", "tasks/upgrade.md", "tasks/rollouts.md", "tasks/drain.md", "tasks/health-checks.md",
        "tasks/failure-domains.md", "tasks/limit-creation.md", "tasks/node-ownership.md", "tasks/orphan-hosts.md",
        "tasks/convert.md",
    ),
    "Clusters": (
        "tasks/three-machines.md", "tasks/create-cluster.md", "tasks/make-a-cluster.md", "tasks/join.md",
        "tasks/control-planes.md", "tasks/workload-clusters.md", "tasks/move.md", "tasks/cluster-certificates.md",
        "tasks/certificates.md",
    ),
    "Scaling": (
        "tasks/autoscale.md", "autoscaler.md", "scheduling.md", "performance.md", "tasks/provisioning-request.md",
        "tasks/cluster-autoscaler.md", "tasks/cloudpool.md", "tasks/cloudpool-proxy.md",
    ),
    "Operate": (
        "tasks/run-on-kubernetes.md", "tasks/one-machine.md", "tasks/operate.md", "tasks/web-view.md",
        "tasks/troubleshoot.md", "tasks/situations.md", "runbooks.md", "threats.md", "promises.md", "releasing.md",
        "deprecation.md",
    ),
    "Providers": ("providers.md", "providers/*.md"),
    "Reference": ("reference/*.md", "cli.md", "api/README.md", "api/*.md"),
    "How it is built": (
        "project/ARCHITECTURE.md", "embedded-control-plane.md", "embedded-differences.md", "simulation.md",
        "tasks/test-on-a-real-control-plane.md", "adr/README.md", "adr/*.md",
    ),
    "Project": (
        "project/README.md", "project/SCOPE.md", "not-yet.md", "asked-elsewhere.md", "project/CONTRIBUTING.md",
        "project/SECURITY.md", "project/CHANGELOG.md",
    ),
}  # fmt: skip
"""The menu. A page that is in no section fails the build."""


def navigation(pages: Path) -> list[dict[str, list[str]]]:
    """``SECTIONS`` with each page once, and pages that no section has at the end, for the build to name them."""
    seen: set[str] = set()
    menu = []
    for title, patterns in SECTIONS.items():
        found = [path.relative_to(pages).as_posix() for each in patterns for path in sorted(pages.glob(each))]
        menu.append({title: [page for page in dict.fromkeys(found) if page not in seen]})
        seen.update(found)
    return menu


def slug(text: str, separator: str) -> str:
    """The anchor of a heading as the repository's pages have it: ``What is `left`?`` is at ``what-is-left``."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", separator)


def config(pages: Path, out: Path, version: str) -> dict[str, Any]:
    """Keyword arguments of ``mkdocs.config.load_config``."""
    return {
        "site_name": f"Nodewright {version}",
        "site_description": "Declarative machines for Kubernetes",
        "docs_dir": str(pages),
        "site_dir": str(out),
        "nav": navigation(pages),
        "strict": True,
        "theme": _theme(),
        "extra": {
            "generator": False,
            "version": {"provider": "mike"},
            "polyfills": ["assets/iframe-worker.js"],
        },
        "extra_css": ["assets/site.css"],
        "plugins": [{"search": {}}, {"offline": {}}],
        "markdown_extensions": [
            "tables",
            {"toc": {"slugify": slug, "permalink": True}},
            "pymdownx.superfences",
            {"pymdownx.highlight": {"guess_lang": False}},
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn", "unrecognized_links": "warn"},
        },
    }


def _theme() -> dict[str, Any]:
    schemes = (("default", "weather-night", "dark"), ("slate", "weather-sunny", "light"))
    return {
        "name": "material",
        "font": False,
        "language": "en",
        "features": ["navigation.top", "navigation.sections", "search.highlight", "search.suggest", "toc.follow"],
        "palette": [
            {
                "media": f"(prefers-color-scheme: {'dark' if scheme == 'slate' else 'light'})",
                "scheme": scheme,
                "primary": "indigo",
                "toggle": {"icon": f"material/{icon}", "name": f"Switch to {other}"},
            }
            for scheme, icon, other in schemes
        ],
    }
