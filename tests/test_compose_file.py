"""The container files: they run the command line, unprivileged, on a volume of its own."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml

from support import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES = sorted(COMPOSE["services"])


@pytest.mark.parametrize("name", SERVICES)
def test_service_uses_named_volumes_only(name: str) -> None:
    """No folder of the host is mounted, and every volume that is mounted is declared."""
    for volume in COMPOSE["services"][name].get("volumes", []):
        source = volume.partition(":")[0] if isinstance(volume, str) else volume["source"]
        assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_confined(name: str) -> None:
    """A service gets no more rights than it needs, and opens no port beyond this machine."""
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged")
    assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))


def test_image_is_pinned_and_unprivileged() -> None:
    """The image is the pinned slim one, and its last user is not root."""
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"python:3.12-slim"}
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.M)[-1] not in {"root", "0"}


def test_image_copies_what_exists() -> None:
    """Everything that the image is built from is part of the project and not hidden from the build."""
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.M)
        for source in shlex.split(line)[:-1]
    }
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == kept
    assert all((ROOT / source).exists() for source in copied)


def commands_of_the_cli() -> set[str]:
    import typer.main

    from mnemolog.infra import cli

    return set(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in SERVICES if "command" in COMPOSE["services"][name]])
def test_service_runs_a_command_that_exists(name: str) -> None:
    """What the service runs is a command of `mnemolog`."""
    assert re.search(r'^ENTRYPOINT \["mnemolog"\]$', DOCKERFILE, re.M)
    assert COMPOSE["services"][name]["command"][0] in commands_of_the_cli()
