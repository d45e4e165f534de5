"""`mnemolog move`, as an operator uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from moving_world import FILES, fill
from typer.testing import CliRunner

from face_world import open_memory
from mnemolog.infra.cli import app
from postgres_world import new_schema

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]


def run(*arguments: str, **variables: str) -> Any:
    environment = {"MNEMOLOG_EMBEDDER": "none", "COLUMNS": "120", **variables}
    return CliRunner().invoke(app, list(arguments), env=environment)


@pytest.fixture
def target(tmp_path: Path, postgres_url: str) -> Path:
    """A file of settings, whose urls have a password that is not to be seen."""
    url = postgres_url.replace("postgres@", "postgres:hunter2@")
    lines = {
        "DATA": tmp_path / "server",
        "DATABASE_URL": url,
        "KEYS_URL": url,
        "DATABASE_SCHEMA": new_schema(),
        "ROOT_KEY_FILE": tmp_path / "secure" / "root.key",
    }
    file = tmp_path / "postgres.env"
    file.write_text("".join(f"MNEMOLOG_{name}={value}\n" for name, value in lines.items()))
    return file


def variables(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_there_with_an_account_and_back_with_json(tmp_path: Path, target: Path) -> None:
    """The target is the file's, whatever the environment says; the other way the environment is the source's."""
    with open_memory(tmp_path / "files", settings=FILES) as memory:
        fill(memory)
    done = run("move", str(tmp_path / "files"), "--to", str(target))
    assert done.exit_code == 0, done.output
    assert "moved:" in done.stdout
    assert "delete it" in done.stderr
    assert "hunter2" not in done.output
    refused = run("status", "--data", str(tmp_path / "files"))
    assert refused.exit_code == 6
    assert "moved to postgresql://127.0.0.1" in refused.stderr
    there = variables(target)
    found = run("recall", "budget friday", "--tenant", "acme", "--any", "all", **there)
    assert found.exit_code == 0
    assert "budget" in found.stdout
    again = run("move", "--to", str(tmp_path / "back"), "--json", **there)
    assert again.exit_code == 0, again.output
    receipt = json.loads(again.stdout)
    assert receipt["events"] == receipt["carried"] > 30
    assert receipt["target"] == str(tmp_path / "back")
    assert len(receipt["root"]) == 64
    verified = run("log", "verify", "--data", str(tmp_path / "back"))
    assert verified.exit_code == 0


def test_what_cannot_be_is_said(tmp_path: Path, target: Path) -> None:
    """A url, a file without a directory, a wrong name in it, a target with something else; no secret is shown."""
    with open_memory(tmp_path / "files", settings=FILES) as memory:
        memory.operations.catch_up()
    other = variables(target)
    assert run("init", other["MNEMOLOG_DATA"], **other).exit_code == 0
    said = run("remember", "another one's", "--tenant", "bolt", **other)
    assert said.exit_code == 0, said.output
    lacking, wrong = tmp_path / "lacking.env", tmp_path / "wrong.env"
    lacking.write_text("MNEMOLOG_DATABASE_SCHEMA=x\n")
    wrong.write_text(f"{target.read_text()}MNEMOLOG_DATABSE_URL=hunter2\n")
    cases = {
        "postgresql://postgres:hunter2@127.0.0.1/x": (2, "write the url into a file"),
        str(lacking): (2, "lacks MNEMOLOG_DATA"),
        str(wrong): (2, "DATABSE_URL"),
        str(target): (4, "move the other way"),
        str(tmp_path / "files"): (2, "the same"),
    }
    for place, (code, sentence) in cases.items():
        refused = run("move", str(tmp_path / "files"), "--to", place)
        assert refused.exit_code == code, (place, refused.output)
        assert sentence in refused.stderr
        assert "hunter2" not in refused.output


def test_the_sql_of_the_roles_is_printed(tmp_path: Path) -> None:
    """For the schema of the settings; nothing is connected to."""
    shown = run("privileges", MNEMOLOG_DATABASE_SCHEMA="mine")
    assert "CREATE POLICY every_tenant ON mine.stored_events" in shown.stdout
    assert "'mine_keeper'" in run("privileges", "--keys", MNEMOLOG_DATABASE_SCHEMA="mine").stdout
