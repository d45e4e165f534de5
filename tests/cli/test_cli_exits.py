"""Exit codes, errors, help: the parts of the command line that need no store."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from mnemolog.domain import errors
from mnemolog.infra.cli import app
from mnemolog.infra.cli.exits import CODES, HINTS, Exit, asks_json, guarded
from support import ROOT

DOCUMENT = (ROOT / "docs" / "cli.md").read_text()
KINDS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.MnemologError),
    key=lambda kind: kind.__name__,
)
HEAVY = (
    "sqlalchemy", "eventsourcing", "cryptography", "pydantic", "orjson", "Stemmer", "sqlite3",
    "mnemolog.memory", "mnemolog.infra.compose", "mnemolog.infra.log", "mnemolog.infra.views",
)  # fmt: skip


def an_error(kind: type[errors.MnemologError]) -> errors.MnemologError:
    if kind is errors.VersionConflict:
        return errors.VersionConflict("s", 1, 2)
    if kind is errors.RebuildRefused:
        return errors.RebuildRefused("curated", [(7, "ValueError in\nfold \x1b[2J")])
    return kind("one\nproblem \x1b[2J")


def command_paths() -> list[tuple[str, ...]]:
    """Every command, with its group."""
    root = typer.main.get_command(app)
    paths: list[tuple[str, ...]] = []
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        paths += [(name, one) for one in inner] if inner else [(name,)]
    return paths


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_its_code(
    kind: type[errors.MnemologError], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each error becomes one line and a documented code of its own sort, and tells programs its type and a hint."""
    error = an_error(kind)

    def fail() -> None:
        raise error

    code = guarded(fail, as_json=False)
    shown = capsys.readouterr()
    assert (code, shown.out) == (CODES[kind], "")
    assert re.fullmatch(r"error: [^\n\x1b]+\n", shown.err)
    assert guarded(fail, as_json=True) == code
    told = json.loads(capsys.readouterr().err)
    assert told == {"error": str(error), "type": kind.__name__, "hint": HINTS[kind]}


def test_every_code_is_documented() -> None:
    """The reference explains each exit code, and no other."""
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCUMENT, re.M)}
    assert documented == {int(code) for code in Exit}


def test_the_unexpected_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody foresaw gives code 1 and no traceback, unless one asks for it."""
    monkeypatch.delenv("MNEMOLOG_DEBUG", raising=False)

    def fail() -> None:
        raise KeyError("x\ny")

    assert guarded(fail, as_json=False) == Exit.UNEXPECTED
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("MNEMOLOG_DEBUG", "1")
    with pytest.raises(KeyError):
        guarded(fail, as_json=False)


def test_interruption_has_its_code() -> None:
    """Ctrl-C ends with 130, as shells expect."""

    def stop() -> None:
        raise KeyboardInterrupt

    assert guarded(stop, as_json=False) == Exit.INTERRUPTED


def test_json_is_asked_for_by_an_option() -> None:
    """A text behind `--` that reads `--json` is a text."""
    assert asks_json(["recall", "x", "--json"])
    assert not asks_json(["recall", "--", "--json"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["recall"],
        ["recall", "x"],
        ["recall", "x", "-k", "0"],
        ["recall", "x", "--tenant", " "],
        ["recall", "x", "--tenant", "a", "--since", "yesterday"],
        ["recall", "x", "--tenant", "a", "--any", "planet"],
        ["recall", "x", "--tenant", "a", "--as", "emperor:nero"],
        ["recall", "x", "--as", "agent:sol"],
        ["erase", "--tenant", "a"],
        ["erase", "--tenant", "a", "--event", "e", "--subject", "s"],
        ["erase", "--tenant", "a", "--event", "e", "--json"],
        ["import", "no-such-file.jsonl"],
    ],
    ids=" ".join,
)
def test_usage_errors(arguments: list[str], tmp_path: object) -> None:
    """What the caller can mend in the command line ends with 2, one line, and no traceback; as JSON when asked."""
    environment = {f"MNEMOLOG_{name}": None for name in ("TENANT", "USER", "SESSION")}
    environment["MNEMOLOG_DATA"] = str(tmp_path)  # type: ignore[assignment]
    result = CliRunner().invoke(app, arguments, env=environment)
    assert result.exit_code == Exit.USAGE
    assert re.fullmatch(r"(error: [^\n]+|\{.*\})\n", result.stderr)
    as_json = CliRunner().invoke(app, [*arguments, "--json"], env=environment)
    assert as_json.exit_code == Exit.USAGE
    assert set(json.loads(as_json.stderr)) == {"error", "type", "hint"}


def test_a_session_is_not_erased_by_a_variable() -> None:
    """MNEMOLOG_SESSION says where one is; it never says what to erase."""
    result = CliRunner().invoke(app, ["erase", "--tenant", "a", "--yes"], env={"MNEMOLOG_SESSION": "s-1"})
    assert result.exit_code == Exit.USAGE
    assert "name one thing to erase" in result.stderr


@pytest.mark.parametrize("path", command_paths(), ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    """Each command has a help text with one example of itself, the common options, and a place in the reference."""
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    words = " ".join(result.stdout.replace("│", " ").split())
    assert result.exit_code == 0
    assert words.count("Example: ") == 1
    assert f"Example: mnemolog {' '.join(path)}" in words
    assert "--json" in words
    assert "--data" in words
    assert f"`{path[0]}" in DOCUMENT


@pytest.mark.parametrize("arguments", [[], ["records"], ["log"], ["projections"], ["keys"]], ids=str)
def test_a_group_alone_shows_what_it_has(arguments: list[str]) -> None:
    """Whoever names no command gets the list of them."""
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Usage: mnemolog" in result.stdout


def test_help_starts_fast() -> None:
    """Help loads neither the store nor any of the libraries beneath it."""
    program = (
        "import sys\n"
        "from mnemolog.infra.cli import main\n"
        "sys.argv = ['mnemolog', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stderr.strip() == "[]"
    assert "First steps" in done.stdout


def test_version() -> None:
    """The version is that of the installed distribution."""
    from importlib.metadata import version

    assert CliRunner().invoke(app, ["version"]).stdout == f"mnemolog {version('mnemolog')}\n"
    assert CliRunner().invoke(app, ["--version"]).stdout == f"mnemolog {version('mnemolog')}\n"
    assert json.loads(CliRunner().invoke(app, ["version", "--json"]).stdout) == {
        "version": version("mnemolog")
    }


def test_a_missing_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """What is not installed is no fault of the program; another missing module is."""

    def needs(name: str) -> int:
        def run() -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return guarded(run, as_json=False)

    assert needs("psycopg.rows") == Exit.USAGE
    assert "mnemolog[postgres]" in capsys.readouterr().err
    assert needs("something") == Exit.UNEXPECTED
