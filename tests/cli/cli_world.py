"""The command line over a data directory, without anything of the environment that the tests run in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mnemolog.infra.cli import app
from support import ROOT

SAMPLE = ROOT / "examples" / "sample_week.jsonl"
WHOSE = ("--tenant", "hanul", "--user", "min", "--project", "settlement")
VARIABLES = ("DATA", "TENANT", "USER", "PROJECT", "SESSION", "ROOT_KEY", "ROOT_KEY_FILE")
CLEAN = {f"MNEMOLOG_{name}": None for name in VARIABLES}
Run = Callable[..., Any]


def invoke(data: Path, *arguments: str, text: str | None = None, **variables: str) -> Any:
    environment = {**CLEAN, "MNEMOLOG_DATA": str(data), **variables}
    return CliRunner().invoke(app, list(arguments), input=text, env=environment)
