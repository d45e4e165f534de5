"""Curated memory is a function of its events, whatever the batches, and equals a naive model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curated_world import LATER, Log, Reader, dumped, fold, reading, view
from mnemolog.domain.errors import CorruptStore
from mnemolog.domain.events import MEMORY, MemoryCorrected, MemoryRetracted, MemoryStated, Recorded
from mnemolog.domain.principal import Role
from mnemolog.domain.scope import Scope, ScopeIds

SCOPES = [ScopeIds(Scope(tenant="acme", user=user, session="s")) for user in ("min", "eve")]
ROLES = st.sampled_from([Role.USER, Role.AGENT, Role.OPERATOR, Role.SERVICE])
CONTENTS = st.sampled_from(["red", "green", "blue"])
SLOTS = st.sampled_from([None, ("wall", "colour"), ("door", "colour")])
STATE = st.tuples(st.just("state"), CONTENTS, SLOTS, ROLES, st.integers(0, 1))
ON_EARLIER = st.tuples(
    st.sampled_from(["correct", "retract", "dispute", "confirm", "rate", "rate_about", "erase"]),
    st.integers(0, 50),
    CONTENTS,
    ROLES,
)
PERSON = st.tuples(st.just("erase_subject"))
OPS = st.lists(st.one_of(STATE, STATE, ON_EARLIER, ON_EARLIER, PERSON), max_size=25)
PLAIN = st.lists(
    st.one_of(STATE, ON_EARLIER.filter(lambda op: op[0] in ("correct", "retract", "erase"))), max_size=25
)
SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def written(ops: Sequence[tuple[object, ...]]) -> Log:
    """A log of these operations; an operation on an earlier event that is not there is passed over."""
    log = Log()
    for op in ops:
        said = [e for e in log.events if e.envelope.topic in MEMORY]
        if op[0] == "state":
            cited = ({"event_id": said[0].envelope.id},) if said and op[4] else ()
            log.state(op[1], SCOPES[op[4]], op[3], slot=op[2], evidence=cited)
        elif op[0] == "erase_subject":
            log.erase_subject("eve")
        elif said:
            on_earlier(log, said[op[1] % len(said)], *op[:1], *op[2:])
    return log


def on_earlier(log: Log, target: Recorded, act: str, content: str, role: Role) -> None:
    if act == "correct":
        log.correct(target, content, role)
    elif act == "rate":
        log.rate(target, "up")
    elif act == "rate_about":
        log.rate(target, "down", subjects=("min", "eve"))
    elif act == "erase":
        log.erase(target)
    else:
        getattr(log, act)(target, role)


@given(OPS, SIZES)
def test_promise_3_rebuild_equals_live(ops: list[tuple[object, ...]], sizes: list[int]) -> None:
    """Event by event as it happened, and rebuilt in any batches with the erased bodies gone: the same dump."""
    log = written(ops)
    assert dumped(log.events, (1,)) == dumped(log.as_read_now(), sizes) == dumped(log.events, sizes)


@given(OPS, SIZES)
def test_redelivery_changes_nothing(ops: list[tuple[object, ...]], sizes: list[int]) -> None:
    """Folding everything once more leaves every row as it was."""
    log = written(ops)
    assert dumped([*log.events, *log.events], sizes) == dumped(log.events)


@given(OPS, st.integers(0, 50))
def test_erased_is_as_if_it_had_never_been(ops: list[tuple[object, ...]], which: int) -> None:
    """After an erasure the records say what they would say had the event never been written."""
    log = written(ops)
    said = [e for e in log.events if e.envelope.topic in MEMORY]
    if not said:
        return
    target = said[which % len(said)]
    without = [e for e in log.events if e is not target]
    log.erase(target)
    assert answers(log.events) == answers([*without, log.events[-1]])


def answers(events: Sequence[Recorded]) -> list[tuple[object, ...]]:
    """What readers are told, without versions, confidence and the shells of what is forgotten."""
    with view() as (conn, curated):
        fold(conn, curated, events)
        reader = Reader(conn, curated)
        records = reader.view.records(conn, reader.scopes, LATER, include_history=True)
        return [
            (r.id, r.status, r.content, r.slot, r.trust, r.superseded_by, r.event_ids, r.last_verified)
            for r in records
            if r.content is not None
        ]


@given(OPS)
def test_the_index_finds_what_is_there_and_nothing_else(ops: list[tuple[object, ...]]) -> None:
    """Every readable record is found by its words, in its scope, and nothing else is."""
    log = written(ops)
    for scope in SCOPES:
        with reading(log, scope) as reader:
            texts = reader.texts()
            for word in ("red", "green", "blue"):
                assert sorted(map(str, reader.found(word))) == sorted(t for t in texts if t == word)


@given(OPS)
def test_at_most_one_value_of_a_slot_is_readable(ops: list[tuple[object, ...]]) -> None:
    """Never both: within a scope and slot one record at most is current or disputed."""
    with reading(written(ops)) as reader:
        records = reader.view.records(reader.conn, reader.scopes, LATER)
        keys = [(r.scope, r.group) for r in records]
        assert len(keys) == len(set(keys))


@given(PLAIN)
@settings(max_examples=100)
def test_views_equal_a_naive_model(ops: list[tuple[object, ...]]) -> None:
    """Statements, corrections, retractions and erasures of four roles, against a model written from the rules alone."""
    log = written(ops)
    with reading(log) as reader:
        records = reader.view.records(reader.conn, reader.scopes, LATER)
        assert sorted((r.id, str(r.content)) for r in records) == sorted(model(log))


def model(log: Log) -> list[tuple[str, str]]:
    """(record id, content) of all that is current, from a plain reading of the rules."""
    live = [e for e in log.events if e.envelope.topic in MEMORY and e.envelope.id not in log.dead]
    standing = [found for stream in {e.envelope.stream for e in live} if (found := _effective(live, stream))]
    groups: dict[object, list[tuple[Recorded, Recorded, str]]] = {}
    for found in standing:
        effective, origin, content = found
        slot = origin.event.slot if isinstance(origin.event, MemoryStated) else None
        groups.setdefault((effective.envelope.scope, slot or content), []).append(found)
    return [_best(group) for group in groups.values()]


def _is_human(e: Recorded) -> bool:
    return e.envelope.role in (Role.USER, Role.OPERATOR)


def _ranks(events: Sequence[Recorded]) -> dict[str, tuple[bool, int]]:
    """A human correction or retraction outranks all machines; a person's later statement may answer it."""
    ranks = {}
    for e in events:
        acts = [
            h
            for h in events
            if _is_human(h) and isinstance(h.event, MemoryCorrected | MemoryRetracted)
            and h.position <= e.position and h.envelope.origin <= e.envelope.origin
        ]  # fmt: skip
        ranks[e.envelope.id] = (_is_human(e) and bool(acts), int(e.envelope.origin))
    return ranks


def _effective(live: Sequence[Recorded], stream: str) -> tuple[Recorded, Recorded, str] | None:
    """The last act that nothing before it outranks; its content, and the statement that gives the slot."""
    mine = [e for e in live if e.envelope.stream == stream]
    ranks = _ranks(mine)
    counting = [
        e for n, e in enumerate(mine) if all(ranks[e.envelope.id] >= ranks[b.envelope.id] for b in mine[:n])
    ]
    last = counting[-1]
    if isinstance(last.event, MemoryRetracted):
        return None
    origins = [e for e in counting if isinstance(e.event, MemoryStated) and e.position <= last.position]
    assert isinstance(last.event, MemoryStated | MemoryCorrected)
    return last, origins[-1] if origins else last, last.event.content


def _best(group: list[tuple[Recorded, Recorded, str]]) -> tuple[str, str]:
    ranks = _ranks([effective for effective, _, _ in group])
    effective, _, content = max(group, key=lambda f: (ranks[f[0].envelope.id], f[0].position))
    return effective.envelope.stream, content


def test_a_parked_event_may_come_late() -> None:
    """An event that is folded after later ones gives the same rows as in its own place."""
    log = written([("state", "red", ("wall", "colour"), Role.USER, 0), ("correct", 0, "blue", Role.USER)])
    log.state("green", slot=("wall", "colour"))
    shuffled = log.events.copy()
    random.Random(5).shuffle(shuffled)
    assert dumped(shuffled, (1,)) == dumped(log.events)


def test_a_body_that_cannot_be_read_is_for_the_runner_to_park() -> None:
    """The fold raises before it writes anything."""
    log = written([("state", "red", None, Role.USER, 0)])
    with view() as (conn, curated):
        with pytest.raises(CorruptStore):
            fold(conn, curated, [replace(log.events[0], event=None)])
        assert list(curated.dump(conn)) == []
