"""A memory in a folder of its own, with a clock and ids that repeat, and ways to look at everything it holds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mnemolog import FORGOTTEN, Memory, MnemologError, Principal, Role, Scope
from mnemolog.infra.clock import SeededClock, SeededIds
from mnemolog.infra.settings import Settings
from support import files_below

VIEWS = ("catalog", "turns", "curated", "summaries", "working", "access")
_OPENED = count()
"""A directory that is opened again gets other ids than before."""
U1 = Scope("acme", user="u-1", project="billing", session="s-1")
U2 = Scope("acme", user="u-2", project="billing", session="s-1")
ACME = Scope("acme")


def open_memory(path: Path, **options: Any) -> Memory:
    """A memory without threads. What is not about power cuts need not wait for the disk."""
    defaults: dict[str, Any] = {
        "background": False,
        "clock": SeededClock(),
        "ids": SeededIds(next(_OPENED)),
        "settings": Settings.load(durability="os"),
    }
    return Memory.open(path, **(defaults | options))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "data") as opened:
        yield opened


def user(name: str, tenant: str = "acme") -> Principal:
    return Principal(name, Role.USER, (Scope(tenant, user=name),))


def agent(name: str = "bot", scope: Scope = ACME) -> Principal:
    return Principal(name, Role.AGENT, (scope,))


def texts(memory: Memory, scope: Scope, query: str, **options: Any) -> list[str]:
    """What recall hands over, best first."""
    return [hit.text for hit in memory.recall(scope, query, **options)]


def contents(memory: Memory, scope: Scope, **options: Any) -> list[object]:
    """What the scope's records say."""
    return [record.content for record in memory.records(scope, **options)]


def everything(memory: Memory, scope: Scope, query: str) -> str:
    """Every text that any read of this scope hands over for a query, history included."""
    found: list[object] = [memory.recall(scope, query, k=1000, history=True)]
    records = memory.records(scope, history=True)
    found += [memory.recall(scope, query, k=1000), records, memory.records(scope)]
    found += [memory.records(scope, history=True, believed_at=at) for at in range(1, _head(memory) + 1)]
    found += [memory.history(scope, record.record_id) for record in records]
    found += [memory.get(scope, record.record_id) for record in records]
    found += [memory.context(scope, query, budget=5000)]
    for event in _event_ids(memory):
        with suppress(MnemologError):
            found += [memory.get(scope, event), memory.read_output(scope, event)]
    return repr([one for one in found if one is not FORGOTTEN])


def dump_hashes(memory: Memory) -> dict[str, str]:
    memory._store.accesses.flush()
    memory.operations.catch_up()
    return {name: memory.operations.dump_hash(name) for name in VIEWS}


def rebuilt_hashes(memory: Memory, batch_size: int | None = None) -> dict[str, str]:
    for name in VIEWS:
        memory.operations.rebuild(name, batch_size=batch_size)
    return dump_hashes(memory)


def forms(text: str) -> list[bytes]:
    """The ways in which a text could stand in a file: encodings, JSON escapes, decomposed, single search tokens."""
    spelled = {text, unicodedata.normalize("NFD", text), text.casefold()}
    spelled |= {text.encode("unicode-escape").decode(), text.encode("unicode-escape").decode().upper()}
    if not text.isascii():
        spelled |= {text[at : at + 2] for at in range(len(text) - 1)}
    return [form.encode(code) for form in spelled for code in ("utf-8", "utf-16-le", "utf-16-be")]


def files_with(folder: Path, *markers: str) -> set[str]:
    """The files below a folder, side files included, that hold a marker in any form."""
    wanted = re.compile(b"|".join(re.escape(form) for marker in markers for form in forms(marker)))
    return {str(path.relative_to(folder)) for path, content in files_below(folder) if wanted.search(content)}


def _head(memory: Memory) -> int:
    return memory.operations.status().head


def _event_ids(memory: Memory) -> list[str]:
    return [recorded.envelope.id for recorded in memory.log(limit=10_000)]
