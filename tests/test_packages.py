"""The libraries that Mnemolog stands on are declared, installed in their declared ranges, and importable."""

from __future__ import annotations

import tomllib
from importlib import import_module, metadata

import pytest
from packaging.requirements import Requirement

from support import ROOT, require_module

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

FOUNDATIONS = [
    ("eventsourcing", None, "eventsourcing.sqlite", "SQLiteApplicationRecorder"),
    ("orjson", None, "orjson", "dumps"),
    ("kafka-python", "kafka", "kafka", "KafkaProducer"),
    ("faust-streaming", "kafka", "faust", "App"),
    ("qdrant-client", "qdrant", "qdrant_client", "QdrantClient"),
]


@pytest.mark.parametrize(("distribution", "extra", "module", "name"), FOUNDATIONS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_foundation_imports(distribution: str, extra: str | None, module: str, name: str) -> None:
    """Each foundation can be imported and offers what we use."""
    require_module(
        module.partition(".")[0], f"pip install 'mnemolog[{extra}]'" if extra else "pip install mnemolog"
    )
    assert callable(getattr(import_module(module), name))
    assert metadata.version(distribution)


@pytest.mark.parametrize(("distribution", "extra"), [row[:2] for row in FOUNDATIONS])
def test_foundation_is_declared(distribution: str, extra: str | None) -> None:
    """Each foundation is declared where a user would look for it: required, or in its extra."""
    declared = EXTRAS[extra] if extra else PROJECT["dependencies"]
    assert distribution in {Requirement(line).name for line in declared}


ALL_REQUIREMENTS = sorted({*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)})


@pytest.mark.parametrize("line", ALL_REQUIREMENTS)
def test_requirement_is_pinned_and_met(line: str) -> None:
    """Every requirement names a range, and the installed version lies in it."""
    requirement = Requirement(line)
    assert requirement.specifier, f"{line} has no version range"
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        require_module(requirement.name.replace("-", "_"), "make test")
    else:
        assert requirement.specifier.contains(installed, prereleases=True)


def test_checksums_of_kafka_are_native() -> None:
    """`kafka-python[crc32c]` brings the native checksum, without which producing is many times slower."""
    require_module("crc32c", "pip install 'mnemolog[kafka]'")
    assert import_module("crc32c").crc32c(b"123456789") == 0xE3069283
