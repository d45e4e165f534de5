"""The container files: every part in a container of its own, unprivileged, with secrets from files."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field

from mnemolog.infra.roles import ROLES
from mnemolog.infra.settings import PREFIX, SECRETS, Settings
from support import ROOT

Duration = Annotated[str, Field(pattern=r"^\d+(s|m|h)$")]

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES = sorted(COMPOSE["services"])


class Strict(BaseModel):
    """Of the compose specification, what we use; anything else is an error."""

    model_config = ConfigDict(extra="forbid")


class Condition(Strict):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class Deploy(Strict):
    replicas: int = Field(ge=1)


class Healthcheck(Strict):
    test: list[str] = Field(min_length=2)
    interval: Duration
    timeout: Duration
    retries: int
    start_period: Duration


class ConfigMount(Strict):
    source: str
    target: str


class Service(Strict):
    image: str
    build: str | None = None
    command: list[str] = []
    entrypoint: list[str] = []
    environment: dict[str, str] = {}
    volumes: list[str] = []
    ports: list[str] = []
    secrets: list[str] = []
    configs: list[ConfigMount] = []
    depends_on: dict[str, Condition] = {}
    deploy: Deploy = Deploy(replicas=1)
    healthcheck: Healthcheck | None = None
    profiles: list[str] = []
    restart: Literal["no", "always", "on-failure", "unless-stopped"] = "no"
    user: str | None = None
    read_only: bool = False
    tmpfs: list[str] = []
    cap_drop: list[str] = []
    security_opt: list[str] = []
    shm_size: str | None = None
    stop_grace_period: Duration | None = None


class Content(Strict):
    content: str


class SecretFile(Strict):
    file: str = Field(pattern=r"^\./secrets/[a-z_]+$")


class Composed(Strict):
    services: dict[str, Service]
    volumes: dict[str, None]
    configs: dict[str, Content]
    secrets: dict[str, SecretFile]


WHOLE = Composed.model_validate({key: value for key, value in COMPOSE.items() if not key.startswith("x-")})
ROLE_SERVICES = [name for name, one in WHOLE.services.items() if one.command[:1] == ["serve"]]


def test_every_part_of_a_deployment_is_there() -> None:
    """Servers, every role on Kafka with two workers, and an embedder; all but the command line are watched."""
    roles = {"relay", "records", "ingest", "worker", "embedder"}
    parts = {"postgres", "kafka", "qdrant", "mnemolog"} | roles
    assert set(WHOLE.services) == parts
    assert WHOLE.services["worker"].deploy.replicas == 2
    for name, service in WHOLE.services.items():
        assert (service.healthcheck is None) == (name == "mnemolog")
        assert set(service.depends_on) <= parts
        assert set(service.secrets) <= set(WHOLE.secrets)
        assert {one.source for one in service.configs} <= set(WHOLE.configs)


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    """What is pulled has a version of three numbers (two for PostgreSQL, which has no more)."""
    tag = WHOLE.services[name].image.partition(":")[2]
    assert re.match(r"v?\d+\.\d+(\.\d+)?(-[a-z]+)?$", tag), tag


@pytest.mark.parametrize("name", [*ROLE_SERVICES, "mnemolog"])
def test_environment_fits_the_settings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variable and every secret of a service is a setting, and together they are valid."""
    service = WHOLE.services[name]
    given = {key: value for key, value in service.environment.items() if key != SECRETS}
    secrets = [one for one in service.secrets if one.startswith(PREFIX.lower())]
    for variable in (*given, *secrets):
        assert variable.upper().removeprefix(PREFIX).lower() in Settings.model_fields
    for secret in secrets:
        urls = "postgresql://mnemolog@postgres/mnemolog"
        (tmp_path / secret).write_text(urls if secret.endswith("_url") else "a" * 43 + "=")
    for variable in [one for one in os.environ if one.startswith(PREFIX)]:
        monkeypatch.delenv(variable)
    for variable, value in {**given, SECRETS: str(tmp_path)}.items():
        monkeypatch.setenv(variable, value)
    settings = Settings.load()
    assert settings.workers and settings.database is not None and settings.qdrant_key is not None
    assert settings.kafka is not None and settings.root_key is not None


def test_the_image_is_built_from_the_lock() -> None:
    """Everything that the image installs has one version, and it is one that the project allows."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert "--constraint requirements.lock" in DOCKERFILE
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = re.search(r'"\.\[([a-z,]+)\]"', DOCKERFILE)
    assert extras
    wanted = list(project["dependencies"])
    for extra in extras[1].split(","):
        wanted += project["optional-dependencies"][extra]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(locked[name]), name


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


@pytest.mark.parametrize("name", [*ROLE_SERVICES, "mnemolog"])
def test_service_runs_a_command_that_exists(name: str) -> None:
    """What the service runs is a command of `mnemolog`, and its role is one."""
    assert re.search(r'^ENTRYPOINT \["mnemolog"\]$', DOCKERFILE, re.M)
    assert COMPOSE["services"][name]["command"][0] in commands_of_the_cli()
    if name in ROLE_SERVICES:
        assert WHOLE.services[name].command[1] in ROLES
