"""A log in memory, events in few words, and small projections that can be told to fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Condition
from typing import Any

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, delete, func, insert, select

from mnemolog.domain.events import (
    CLEAR_FIELDS,
    ERASURE,
    FORGOTTEN,
    ContentErased,
    Draft,
    Envelope,
    Event,
    ParkedEventDismissed,
    ParkedEventReplayed,
    Part,
    Receipt,
    Recorded,
    SubjectErased,
    TurnRecorded,
    Undecodable,
)
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections.ports import Page, Projection
from mnemolog.projections.runner import Runner

UNREADABLE = Envelope(
    id="?", topic="?", schema=0, stream="?", version=0, occurred_at="", recorded_at="",
    scope=ScopeIds(Scope(tenant="?")), actor="?", role=Role.SERVICE, origin=Tier.IMPORT, digest="", key=None,
    sources=(), parts=(), clear={},
)  # fmt: skip


class FakeLog:
    """The `EventLog` port over a list. Erasing an event or a subject makes its bodies unreadable at once."""

    def __init__(self) -> None:
        self.rows: list[Recorded] = []
        self.destroyed: set[str] = set()
        self.reads = 0
        self._doorbell = Condition()

    def add(
        self,
        event: Event,
        user: str | None = "u1",
        *,
        project: str | None = None,
        session: str | None = "s1",
        subjects: Sequence[str] | None = None,
        sources: Sequence[str] = (),
        occurred_at: str = "2026-03-02T10:00:00+09:00",
        origin: Tier = Tier.USER_STATED,
    ) -> Recorded:
        position = len(self.rows) + 1
        sealed = tuple(subjects) if subjects is not None else (user or "t1",)
        clear = {name: getattr(event, name) for name in CLEAR_FIELDS[event.topic]}
        envelope = Envelope(
            id=f"{position:032x}",
            topic=event.topic,
            schema=event.schema,
            stream=session or "tenant",
            version=position,
            occurred_at=occurred_at,
            recorded_at="2026-03-02T01:00:00+00:00",
            scope=ScopeIds(Scope(tenant="t1", user=user, project=project, session=session)),
            actor="a1",
            role=Role.AGENT,
            origin=origin,
            digest="",
            key=None,
            sources=tuple(sources),
            parts=() if event.topic in ERASURE else (Part(position, sealed),),
            clear=clear,
        )
        return self._store(Recorded(position, envelope, event))

    def add_unreadable(self) -> Recorded:
        return self._store(Recorded(len(self.rows) + 1, UNREADABLE, Undecodable("ValueError")))

    def _store(self, recorded: Recorded) -> Recorded:
        with self._doorbell:
            self.rows.append(recorded)
            self._doorbell.notify_all()
        return recorded

    def turn(self, content: str, user: str | None = "u1", **more: Any) -> Recorded:
        return self.add(TurnRecorded("user", content, more.pop("author", None)), user, **more)

    def erase_events(self, *events: Recorded) -> Recorded:
        self.destroyed |= {event.envelope.id for event in events}
        erased = ContentErased("e1", tuple(event.envelope.id for event in events))
        return self.add(erased, None, session=None)

    def erase_subject(self, subject: str) -> Recorded:
        self.destroyed.add(subject)
        return self.add(SubjectErased("e1", subject), None, session=None)

    def replay(self, projection: str, target: Recorded) -> Recorded:
        return self.add(
            ParkedEventReplayed(projection, target.envelope.id, target.position), None, session=None
        )

    def dismiss(self, projection: str, target: Recorded) -> Recorded:
        return self.add(
            ParkedEventDismissed(projection, target.envelope.id, target.position), None, session=None
        )

    def _seen(self, recorded: Recorded, bodies: bool) -> Recorded:
        if not bodies and not isinstance(recorded.event, Undecodable):
            return replace(recorded, event=None)
        envelope = recorded.envelope
        closed = envelope.parts and ({envelope.id, *envelope.subjects} & self.destroyed)
        return replace(recorded, event=FORGOTTEN) if closed else recorded

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        raise NotImplementedError

    def read(
        self, after: int, limit: int, *, topics: Collection[str] | None = None, bodies: bool = True
    ) -> Page:
        self.reads += 1
        rows = self.rows[after:]
        wanted = [r for r in rows if topics is None or r.envelope.topic in topics or r.envelope is UNREADABLE]
        page = [self._seen(recorded, bodies) for recorded in wanted[:limit]]
        return Page(page, page[-1].position if len(wanted) >= limit else after + len(rows))

    def read_at(self, positions: Sequence[int], *, bodies: bool = True) -> list[Recorded]:
        wanted = set(positions)
        return [self._seen(recorded, bodies) for recorded in self.rows if recorded.position in wanted]

    def read_stream(self, stream: str, *, after_version: int = 0, bodies: bool = True) -> list[Recorded]:
        raise NotImplementedError

    def head(self) -> int:
        return len(self.rows)

    def wait(self, after: int, timeout: float) -> int:
        with self._doorbell:
            self._doorbell.wait_for(lambda: len(self.rows) > after, timeout)
            return len(self.rows)

    def wake(self) -> None:
        """Its waiters look again at the end of their poll."""


_METADATA = MetaData()
_NOTES = Table(
    "notes",
    _METADATA,
    Column("position", Integer, primary_key=True),
    Column("event_id", String),
    Column("owner", String),
    Column("overtook", Integer),
    Column("text", String),
)


class Notes:
    """Keeps each turn, and how many later ones of its owner were there before it; fails where it is told to."""

    name = "notes"
    version = "1"
    topics: frozenset[str] | None = frozenset({"TurnRecorded"}) | ERASURE
    bodies = True

    def __init__(self, fails: Callable[[Recorded], bool] = lambda _: False) -> None:
        self.fails = fails
        self.folded: list[int] = []

    def create(self, conn: Connection) -> None:
        _METADATA.create_all(conn)

    def fold(self, conn: Connection, batch: Sequence[Recorded]) -> None:
        for recorded in batch:
            if self.fails(recorded):
                raise ValueError("the text of the event must not be kept: " + str(recorded.event))
            self.folded.append(recorded.position)
            self._apply(conn, recorded)

    def _apply(self, conn: Connection, recorded: Recorded) -> None:
        clear = recorded.envelope.clear
        if recorded.envelope.topic == "ContentErased":
            conn.execute(delete(_NOTES).where(_NOTES.c.event_id.in_(clear["events"])))
        elif recorded.envelope.topic == "SubjectErased":
            conn.execute(delete(_NOTES).where(_NOTES.c.owner == clear["subject"]))
        elif isinstance(recorded.event, TurnRecorded):
            owner = recorded.envelope.owner
            later = (_NOTES.c.owner == owner) & (_NOTES.c.position > recorded.position)
            conn.execute(
                insert(_NOTES).values(
                    position=recorded.position,
                    event_id=recorded.envelope.id,
                    owner=owner,
                    overtook=conn.execute(select(func.count()).where(later)).scalar_one(),
                    text=recorded.event.content,
                )
            )

    def dump(self, conn: Connection) -> Iterator[tuple[object, ...]]:
        for row in conn.execute(select(_NOTES).order_by(_NOTES.c.position)):
            yield tuple(row)

    def purge(self, conn: Connection) -> None:
        pass


OPENED: list[SqliteViews] = []
"""Views to close at the end of a test."""


def runner_over(log: Any, folder: Path, *projections: Projection, **options: Any) -> Runner:
    """An opened runner with views in `folder`."""
    views = SqliteViews(folder)
    OPENED.append(views)
    runner = Runner(log, views, projections, **options)
    runner.open()
    return runner


def texts(runner: Runner, name: str = "notes") -> list[str]:
    """The texts that the view holds, in log order."""
    return [str(row[-1]) for row in runner.dump(name)]
