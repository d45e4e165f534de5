"""`EmbeddingWorker`: follows the log and keeps a vector of every turn, of its surroundings, and of every statement.

The passages of large texts follow behind, so that a very large one keeps no turn waiting. It stands beside the
projections: their replays do not touch it, and its vectors serve all their versions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Final

from mnemolog.domain.events import (
    ERASURE,
    CandidatesExtracted,
    Event,
    MemoryCorrected,
    MemoryStated,
    QuarantineReviewed,
    Recorded,
    ToolCalled,
    ToolReturned,
    TurnRecorded,
    UtteranceChunkRecorded,
)
from mnemolog.domain.gate.findings import OVERLAP
from mnemolog.domain.passages import EMBEDDED, LARGE, Passage, passages, readable
from mnemolog.domain.records import microseconds
from mnemolog.projections.embedding import Embedder, Floats
from mnemolog.projections.passages import text_in, whole_text
from mnemolog.projections.ports import EventLog, Hiding, LargeTexts
from mnemolog.projections.scopes import record_scope
from mnemolog.projections.vectors import (
    Batch,
    ErasureReader,
    Kind,
    Made,
    Place,
    Source,
    Stage,
    VectorRows,
    Window,
)

SPOKEN: Final = frozenset({"TurnRecorded", "UtteranceChunkRecorded", "ToolCalled", "ToolReturned"})
STATING: Final = frozenset({"MemoryStated", "MemoryCorrected", "QuarantineReviewed", "CandidatesExtracted"})

BATCH: Final = 128
"""Events of one step: a few hundred texts, which is one to two seconds of the default embedder."""
EMBEDDED_CHARACTERS: Final = 2_000
NEIGHBOUR_CHARACTERS: Final = 1_000
"""How much of one text goes into its vector, and into a vector with its neighbours."""
PASSAGES: Final = 256
"""Passages of one step, about: the event that reaches so many is the step's last."""

_PAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class EmbeddingLag:
    """How far a space is. due: windows to be made anew after an erasure; texts: encoded since the start;
    fenced: vectors that an erasure overtook since the start."""

    space: str
    position: int
    head: int
    due: int
    texts: int
    fenced: int

    @property
    def lag(self) -> int:
        return self.head - self.position


class Plain:
    """Hides nothing."""

    def text(self, text: str) -> str:
        return text

    def pieces(self, whole: str, pieces: Sequence[Passage]) -> list[str]:
        return [whole[start:end] for _, start, end in pieces]


class EmbeddingWorker:
    """Embeds in one space. `step` does one batch; `Vectorising` keeps doing them in the background.

    large: where texts are read of which the event has a preview. hiding: hides in a text what no vector is to hold.
    One worker at a time should write: a second one loses its work at the commit, and harms nothing.
    """

    def __init__(
        self,
        log: EventLog,
        rows: VectorRows,
        embedder: Embedder,
        *,
        batch_size: int = BATCH,
        large: LargeTexts | None = None,
        hiding: Hiding | None = None,
    ) -> None:
        self._log, self._rows, self._embedder = log, rows, embedder
        self._batch_size, self._large, self._hiding = batch_size, large, hiding or Plain()
        self._space = embedder.space
        rows.open_space(self._space, embedder.dimensions)
        self._texts = self._fenced = 0
        self._lock = RLock()
        self._erasures = erasures_of(log)

    # One step at a time ----------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Embed the next batch; False where nothing was left to do."""
        with self._lock:
            self.erase()
            return self._embed_texts() or self._embed_passages()

    def _embed_texts(self) -> bool:
        after = self._rows.position(self._space)
        page = self._log.read(after, self._batch_size, topics=SPOKEN | STATING)
        plan = self._plan(after, page.events, page.position)
        if page.position <= after and not plan.settled:
            return False
        upto = max(after, page.position)
        stages = [Stage.TEXTS] if any(map(_may_be_large, page.events)) else [*Stage]
        self._commit(Batch(self._space, after, upto, plan.sources, self._made(plan), plan.settled, stages))
        return True

    def _embed_passages(self) -> bool:
        """Of the texts that are embedded already."""
        after = self._rows.position(self._space, Stage.PASSAGES)
        head = self._rows.position(self._space)
        if after >= head:
            return False
        page = self._log.read(after, self._batch_size, topics=SPOKEN)
        wanted: list[tuple[Place, int, str]] = []
        upto = min(head, page.position)
        for recorded in page.events:
            if recorded.position <= head:
                wanted += self._passages(recorded)
            if len(wanted) >= PASSAGES:
                upto = recorded.position
                break
        vectors = self._embed([text for _, _, text in wanted])
        made = [Made(Kind.PASSAGE, Window(place), vectors[text], part) for place, part, text in wanted]
        self._commit(Batch(self._space, after, upto, made=made, stages=[Stage.PASSAGES]))
        return True

    def _passages(self, recorded: Recorded) -> list[tuple[Place, int, str]]:
        """Where each passage stands, its part, and what of it is embedded."""
        said = said_of(recorded.event)
        text = None if said is None else whole_text(recorded, self._large)
        if said is None or text is None or len(text) <= LARGE:
            return []
        place, found = Place(recorded.position, recorded.envelope.id), passages(text, EMBEDDED)
        speaker = None if said.speaker is None else self._hiding.text(said.speaker)
        hidden = self._hiding.pieces(text, found)
        letters = [
            piece if (read := readable(piece)) == piece else self._hiding.text(read) for piece in hidden
        ]
        return [
            (place, each.part, Said(piece, speaker).alone())
            for each, piece in zip(found, letters, strict=True)
        ]

    def _commit(self, batch: Batch) -> None:
        self._fenced += self._rows.commit(batch, self._erasures).fenced

    def erase(self) -> int:
        """Remove what was erased up to the head of the log, whatever is still to be embedded; the head."""
        return self._rows.erase(self._erasures)

    def catch_up(
        self,
        to: int | None = None,
        timeout: float | None = None,
        progress: Callable[[int, int], None] = lambda at, of: None,
    ) -> int:
        """Step, in this thread, up to position `to` (default: the head) or the time limit in seconds."""
        target = self._log.head() if to is None else to
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.step() and (to is None or self.position < target):
            progress(min(self.position, target), target)
            if deadline is not None and time.monotonic() >= deadline:
                break
        progress(min(self.position, target), target)
        return self.position

    @property
    def position(self) -> int:
        """How far in the log everything is embedded, passages too."""
        return min(self._rows.position(self._space, stage) for stage in Stage)

    def lag(self) -> EmbeddingLag:
        """Where the worker is, against the real head of the log."""
        position, due = self.position, self._rows.count_due(self._space)
        return EmbeddingLag(self._space, position, self._log.head(), due, self._texts, self._fenced)

    # What to embed ---------------------------------------------------------------------------------------------

    def _plan(self, after: int, events: Sequence[Recorded], upto: int) -> _Plan:
        plan = _Plan()
        for recorded in events:
            said = said_of(recorded.event)
            if said is not None:
                plan.add(_source(recorded), self._cleaned(said))
        windows = {
            window.centre.position: window for window in self._rows.due(self._space, upto, self._batch_size)
        }
        plan.settled = list(windows)
        windows.update(self._windows(plan, after))
        self._fetch(plan, {place for window in windows.values() for place in window.members})
        plan.windows = [_readable(window, plan.said) for window in windows.values()]
        return plan

    def _windows(self, plan: _Plan, after: int) -> dict[int, Window]:
        """Those of the new turns, and of the turns before them, which now have somebody behind them."""
        sessions: dict[str, list[Place]] = {}
        alone: dict[int, Window] = {}
        for source in plan.sources:
            if source.record is None and source.session is not None:
                sessions.setdefault(source.session, []).append(source.place)
            elif source.record is None:
                alone[source.place.position] = Window(source.place)
        tails = self._rows.tails(sessions, after)
        for session, new in sessions.items():
            tail = list(tails.get(session, ()))
            for window in _each_window([*tail, *new], skip=max(0, len(tail) - 1)):
                alone[window.centre.position] = window
        return alone

    def _fetch(self, plan: _Plan, places: set[Place]) -> None:
        """Read the texts of neighbours that are not in the batch. An erased one has none."""
        missing = sorted(place.position for place in places if place.position not in plan.said)
        for recorded in self._log.read_at(missing) if missing else ():
            said = said_of(recorded.event)
            if said is not None:
                plan.said[recorded.position] = self._cleaned(said)

    def _cleaned(self, said: Said) -> Said:
        """Once for all that is made of it; with what is behind the cut, so that no half of a secret is left."""
        speaker = None if said.speaker is None else self._hiding.text(said.speaker)
        return Said(self._hiding.text(said.text[: EMBEDDED_CHARACTERS + OVERLAP]), speaker)

    def _made(self, plan: _Plan) -> list[Made]:
        wanted: list[tuple[Kind, Window, str]] = []
        for source in plan.sources:
            kind = Kind.TURN if source.record is None else Kind.RECORD
            wanted.append((kind, Window(source.place), plan.said[source.place.position].alone()))
        wanted += [
            (Kind.WINDOW, window, _together(window, plan.said))
            for window in plan.windows
            if window.centre.position in plan.said
        ]
        vectors = self._embed([text for _, _, text in wanted])
        return [Made(kind, window, vectors[text]) for kind, window, text in wanted]

    def _embed(self, texts: Sequence[str]) -> Mapping[str, Floats]:
        """The vector of each different text. Short ones beside each other, so that none waits for a long one."""
        unique = sorted(set(texts), key=len)
        self._texts += len(unique)
        return dict(zip(unique, self._embedder.embed(unique), strict=True)) if unique else {}


@dataclass(slots=True)
class _Plan:
    """One batch before it is embedded. said: by position, of the sources and of their neighbours."""

    sources: list[Source] = field(default_factory=list)
    said: dict[int, Said] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)

    def add(self, source: Source, said: Said) -> None:
        self.sources.append(source)
        self.said[source.place.position] = said


def erasures_of(log: EventLog) -> ErasureReader:
    """Reads the log's erasures behind a position, up to its head."""

    def read(after: int) -> tuple[Sequence[Recorded], int]:
        found: list[Recorded] = []
        while True:
            page = log.read(after, _PAGE, topics=ERASURE, bodies=False)
            found += page.events
            if page.position <= after:
                return found, after
            after = page.position

    return read


@dataclass(frozen=True, slots=True)
class Said:
    """What of an event is embedded. speaker: its author or tool, where there is one."""

    text: str
    speaker: str | None = None

    def alone(self) -> str:
        return self._led(self.text[:EMBEDDED_CHARACTERS])

    def among(self, others: Sequence[Said]) -> str:
        """With what was said around it. Only the middle is named: names of all would drown what they say."""
        return self._led("\n".join(each.text[:NEIGHBOUR_CHARACTERS] for each in others))

    def _led(self, text: str) -> str:
        return f"{self.speaker}: {text}" if self.speaker else text


def said_of(event: object) -> Said | None:
    """None where there is nothing to embed, or nothing any more."""
    if not isinstance(event, Event):
        return None
    text, speaker = _content(event)
    if not isinstance(text, str) or not text.strip():
        return None
    return Said(text, speaker if isinstance(speaker, str) else None)


def _content(event: Event) -> tuple[object, object]:
    if isinstance(event, TurnRecorded | UtteranceChunkRecorded):
        return (None if event.role == "system" else event.content), event.author
    if isinstance(event, ToolCalled):
        return event.arguments, event.name
    if isinstance(event, ToolReturned):
        return event.output, event.name
    if isinstance(event, MemoryStated | MemoryCorrected | QuarantineReviewed):
        return event.content, None
    if isinstance(event, CandidatesExtracted):
        return event.candidates[0].get("content"), None
    return None, None


def _may_be_large(recorded: Recorded) -> bool:
    text = text_in(recorded.event)
    return text is not None and len(text) > LARGE


def _source(recorded: Recorded) -> Source:
    envelope = recorded.envelope
    user = envelope.scope.user
    return Source(
        place=Place(recorded.position, envelope.id),
        scope=record_scope(envelope.scope),
        session=envelope.scope.session,
        record=envelope.stream if envelope.topic in STATING else None,
        origin=int(envelope.origin),
        occurred_us=microseconds(envelope.occurred_at),
        subjects=tuple(sorted(envelope.subjects - {user or ""})),
    )


def _each_window(places: Sequence[Place], skip: int) -> list[Window]:
    around = [None, *places, None]
    return [Window(place, around[at], around[at + 2]) for at, place in enumerate(places) if at >= skip]


def _readable(window: Window, said: Mapping[int, Said]) -> Window:
    """The window without neighbours that were erased a moment ago."""
    before, after = (
        place if place is not None and place.position in said else None
        for place in (window.before, window.after)
    )
    return Window(window.centre, before, after)


def _together(window: Window, said: Mapping[int, Said]) -> str:
    middle = said[window.centre.position]
    if len(window.members) == 1:
        return middle.alone()
    return middle.among([said[place.position] for place in window.members])


__all__ = ["BATCH", "EmbeddingLag", "EmbeddingWorker", "erasures_of", "Said", "said_of"]
