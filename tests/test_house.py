"""The rules of the house that a formatter cannot hold: sizes, purity, and a project that names no machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import PACKAGES, ROOT

LONGEST_FILE = 500
LONGEST_FUNCTION = 40
IMPURE = {
    "aiokafka", "asyncio", "cryptography", "eventsourcing", "faust", "httpx", "kafka", "numpy", "orjson", "os",
    "pathlib", "pydantic", "qdrant_client", "random", "secrets", "socket", "sqlalchemy", "sqlite3", "subprocess",
    "threading", "time", "typer",
}  # fmt: skip
IMPURE_CALLS = re.compile(r"\b(datetime\.now|datetime\.utcnow|date\.today|uuid[14]|uuid7|open|print|input)\(")

# Written in pieces, so that this file passes its own test.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"), ("pythonhosted", "org"), ("crates", "io"), ("npmjs", "org"), ("npmjs", "com"),
        ("proxy", "golang", "org"), ("repo", "maven", "apache", "org"), ("repo1", "maven", "org"),
        ("deb", "debian", "org"), ("security", "debian", "org"), ("docker", "io"), ("ghcr", "io"),
        ("quay", "io"), ("conda", "anaconda", "org"),
    )
]  # fmt: skip
HOSTS = re.compile("|".join(map(re.escape, REGISTRY_HOSTS)))
MACHINE_PATHS = re.compile(r"(?<![\w.~$}*/-])/(?:work|root|home|Users|mnt)/[\w.~]")
BROAD_ADDRESS = re.compile(r"\b" + r"\.".join(["0"] * 4) + r"\b")


def sources() -> list[Path]:
    """Every module of the four packages and of the public face."""
    folders = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted([*folders, *(ROOT / "src" / "mnemolog").glob("*.py")])


def project_files() -> list[Path]:
    """Every file of the project: what git would keep, or, outside a work tree, what is not hidden or built."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    built = {"build", "dist", "__pycache__"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not {part for part in path.relative_to(ROOT).parts if part[0] == "." or part in built}
    ]


def texts() -> Iterator[tuple[Path, str]]:
    for path in project_files():
        raw = path.read_bytes()
        if b"\0" not in raw[:1024]:
            yield path.relative_to(ROOT), raw.decode("utf-8")


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def test_no_file_is_too_long() -> None:
    """A module has one subject, and at most 500 lines."""
    sizes = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in sources()}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_no_function_is_too_long() -> None:
    """A function fits on a screen: at most 40 lines without its docstring."""
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": length(node)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > LONGEST_FUNCTION
    }
    assert long == {}


@pytest.mark.parametrize("path", sorted((ROOT / "domain").rglob("*.py")), ids=lambda path: path.stem)
def test_domain_is_pure(path: Path) -> None:
    """The domain imports itself and the standard library's values: no I/O, no clock, no randomness, no library."""
    text = path.read_text()
    imported = {
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in imported if name.partition(".")[0] == "mnemolog"}
    others = {name.partition(".")[0] for name in imported - ours}
    assert {name for name in ours if not name.startswith("mnemolog.domain")} == set()
    assert others & IMPURE == set()
    assert others - set(sys.stdlib_module_names) == set()
    code = ast.unparse(ast.parse(text))
    assert IMPURE_CALLS.findall(code) == []


def test_folders_are_linked_into_the_package() -> None:
    """The four folders stand at the top and are imported as `mnemolog.<folder>` through relative links."""
    for package in PACKAGES:
        link = ROOT / "src" / "mnemolog" / package
        assert link.is_symlink()
        assert link.readlink() == Path("..", "..", package)
        assert (ROOT / package / "__init__.py").is_file()


def test_every_folder_of_modules_is_a_package() -> None:
    """A folder without `__init__.py` would be missing from the wheel."""
    assert [
        path for path in {source.parent for source in sources()} if not (path / "__init__.py").is_file()
    ] == []


def test_no_registry_is_named() -> None:
    """Where packages come from is for the machine to say, not for the project."""
    assert lines_that_match(HOSTS) == []


def test_no_machine_is_named() -> None:
    """No path of somebody's machine is part of the project."""
    assert lines_that_match(MACHINE_PATHS) == []


def test_servers_bind_to_this_machine_only() -> None:
    """Nothing binds to every interface."""
    assert lines_that_match(BROAD_ADDRESS) == []


def test_every_test_states_its_behaviour() -> None:
    """Every test states the behaviour that it holds, in one sentence."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_files_of_tests_have_names_of_their_own() -> None:
    """Two of one name are not collected together."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []
