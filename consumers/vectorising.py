"""`Vectorising`: the vectors of one data directory, opened at their first use and kept behind the log by one thread.

Nothing here is needed to write or to fold: without an embedder, or before the first vector, recall goes by words.
This module is imported with every store, so what brings numpy along is imported where it is used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Final, Protocol

from mnemolog.domain.errors import StoreClosed
from mnemolog.domain.scope import ScopeIds
from mnemolog.projections.ports import EventLog, Hiding, LargeTexts
from mnemolog.projections.supervision import Background, Supervisor, Trouble

if TYPE_CHECKING:
    from mnemolog.consumers.embedding import EmbeddingWorker
    from mnemolog.consumers.indexing import IndexFiller
    from mnemolog.projections.dense import Cosines, DenseScan
    from mnemolog.projections.embedding import Embedder
    from mnemolog.projections.vectors import VectorIndex, VectorRows

EXACT_UP_TO: Final = 20_000
"""Turns of a scope up to which every cosine is computed; above, the index gives the nearest."""
UNINDEXED: Final = 10_000
"""Changes that the index may lag behind while there is still something to embed."""
_PATIENCE: Final = 10.0
"""Seconds that an erasure waits for the process that has the index."""
_LOOK: Final = 0.05
_TRUSTED: Final = 1.0
"""Seconds for which a reader believes that there are no vectors yet."""
_TEXTS: Final = 64
"""Embedded in one call."""
_BACKOFF: Final = (0.5, 60.0)


class VectorFiles(Protocol):
    """Where the vectors of a data directory are."""

    def rows(self, *, make: bool) -> VectorRows | None:
        """The rows, opened; None where there are none and `make` is not set."""

    @property
    def far(self) -> bool:
        """Whether to look for the rows takes a connection."""

    def index(self, *, make: bool) -> VectorIndex | None:
        """The index, opened; None where there is none and `make` is not set, or where another process has it."""

    def erased_elsewhere(self) -> int | None:
        """Up to which position of the log the index of another process holds nothing erased; None: there is none."""

    def close(self) -> None:
        """Let go of what is kept between calls. What was handed out is closed by who has it. Idempotent."""


@dataclass(frozen=True, slots=True)
class VectorLag:
    """How far vectors or index are. position and head: of the log for vectors, of changes for the index."""

    name: str
    version: str
    position: int
    head: int
    condition: str


@dataclass(slots=True)
class _Opened:
    embedder: Embedder
    rows: VectorRows
    worker: EmbeddingWorker
    scan: DenseScan


class Vectorising:
    """Any thread may use it. embedder: makes the embedder when it is first needed; None for a store without one.

    large: where texts are read of which the event has a preview. hiding: hides in a text what no vector is to hold.
    """

    def __init__(
        self,
        log: EventLog,
        files: VectorFiles,
        embedder: Callable[[], Embedder] | None,
        *,
        exact_up_to: int = EXACT_UP_TO,
        poll: float = 0.1,
        large: LargeTexts | None = None,
    ) -> None:
        self._log, self._files, self._embedder = log, files, embedder
        self._exact_up_to, self._poll, self._large = exact_up_to, poll, large
        self.hiding: Hiding | None = None
        self._lock = RLock()
        self._opened: _Opened | None = None
        self._rows: VectorRows | None = None
        self._index: VectorIndex | None = None
        self._filler: IndexFiller | None = None
        self._looked = self._cleaned = 0
        self._missed = -math.inf
        self._background = Background("vectors", self._go_round, log.wake, _BACKOFF)
        self._asked = Supervisor(*_BACKOFF)

    # Keeping up --------------------------------------------------------------------------------------------------

    def catch_up(
        self,
        timeout: float | None = None,
        progress: Callable[[int, int], None] = lambda at, of: None,
    ) -> int:
        """Embed and index, in this thread, up to the head of the log or the time limit; how far it is embedded."""
        if self._embedder is None or not self._log.head():
            return self._log.head()
        worker = self._open().worker
        target, deadline = self._log.head(), None if timeout is None else time.monotonic() + timeout
        position = worker.catch_up(target, timeout, progress)
        if deadline is None or time.monotonic() < deadline:
            self._fill()
        return position

    @property
    def backgrounds(self) -> tuple[Background, ...]:
        """The thread that keeps up, if there is an embedder."""
        return () if self._embedder is None else (self._background,)

    def close(self) -> None:
        """Stop, and let go of the files. Idempotent."""
        self._background.stop()
        with self._lock:
            for part in (self._index, self._rows):
                if part is not None:
                    part.close()
            self._files.close()

    def _go_round(self) -> None:
        head = self._log.head()
        moved = bool(head) and self._open().worker.step()
        if moved:
            if self._filler is not None and self._filler.lag() > UNINDEXED:
                self._fill()
            return
        if head:
            self._fill()
            self._clean()
        self._log.wait(head, self._poll)

    def _clean(self) -> None:
        """What other processes have erased leaves the bytes of the index, too: it is only ours to change."""
        from mnemolog.consumers.embedding import erasures_of

        erased, upto = erasures_of(self._log)(self._cleaned)
        if erased and self._filler is not None:
            self.erase()
            self._purge_index()
        self._cleaned = upto

    def _fill(self) -> None:
        """Follow with the index, where there is one already or a scope has become too large to do without."""
        filler = self._following(make=self._is_large())
        if filler is not None and filler.lag():
            filler.catch_up()

    def _is_large(self) -> bool:
        """Counted anew only when there could be a difference."""
        rows = self._open().rows
        change = rows.change()
        if self._filler is not None or change - self._looked <= self._exact_up_to // 10:
            return False
        self._looked = change
        return rows.largest() > self._exact_up_to

    # Asking ------------------------------------------------------------------------------------------------------

    def cosines(self, question: str, scopes: Collection[ScopeIds], turns: int, limit: int) -> Cosines | None:
        """How near everything in these scopes is to the question; None where that cannot be said.

        turns: how many there are in these scopes, passages included;
        limit: how many of the nearest are wanted where they are many.
        """
        if (
            self._embedder is None
            or not question.strip()
            or self._stored(_TRUSTED if self._files.far else 0.0) is None
            or not self._asked.is_due()
        ):
            return None
        try:
            found = self._cosines(question, scopes, turns, limit)
        except StoreClosed:
            raise
        except Exception as error:  # an endpoint that is away, a model that is not installed: words must do
            self._asked.crashed(error)
            return None
        self._asked.worked()
        return found

    def _cosines(self, question: str, scopes: Collection[ScopeIds], turns: int, limit: int) -> Cosines | None:
        from mnemolog.projections.dense import by_index, by_scan
        from mnemolog.projections.embedding import embed_query

        opened = self._open()
        index = self._usable_index() if turns > self._exact_up_to else None
        change = opened.scan.change() if index is None else 0
        if index is None and not opened.scan.holds(scopes, change):
            return None
        asked = question if self.hiding is None else self.hiding.text(question)
        vector = embed_query(opened.embedder, asked)
        if index is None:
            return by_scan(opened.scan, vector, scopes, change)
        return by_index(opened.rows, opened.scan, index, vector, scopes, limit)

    def alike(self, texts: Sequence[str], least: float) -> list[tuple[int, int, float]]:
        """Pairs of these texts, by their places, with a cosine of at least so much; none where nothing is embedded."""
        if len(texts) < 2 or self._embedder is None or self._stored() is None or not self._asked.is_due():
            return []
        import numpy as np

        try:
            embed = self._open().embedder.embed
            made = np.vstack([embed(texts[at : at + _TEXTS]) for at in range(0, len(texts), _TEXTS)])
        except StoreClosed:
            raise
        except Exception as error:
            self._asked.crashed(error)
            return []
        self._asked.worked()
        cosines = made @ made.T
        near = np.argwhere(np.triu(cosines >= least, 1)).tolist()
        return [(one, other, float(cosines[one, other])) for one, other in near]

    def _usable_index(self) -> VectorIndex | None:
        filler = self._following(make=False)
        return self._index if filler is not None and filler.lag() <= UNINDEXED else None

    # Erasing -----------------------------------------------------------------------------------------------------

    def erase(self) -> None:
        """Take out, everywhere, what the log says was erased. What is being embedded meanwhile is fenced."""
        from mnemolog.consumers.embedding import erasures_of

        rows = self._stored()
        if rows is None:
            return
        rows.erase(erasures_of(self._log))
        self.forget()
        filler, index = self._following(make=False), self._stored_index()
        if filler is not None:
            filler.catch_up()
        elif (
            index is not None
        ):  # of a store that had an embedder: empty it, it is made anew when it is needed
            with index.exclusively():
                index.begin("", 1, "")
                index.activate()

    def forget(self) -> None:
        """Drop the vectors that are kept in memory."""
        if self._opened is not None:
            self._opened.scan.forget()

    def holding(self, positions: Sequence[int]) -> dict[str, int]:
        """Store → how much it still holds of the events at these positions."""
        rows, index = self._stored(), self._stored_index()
        held = {} if rows is None else {"vectors": rows.holding(positions)}
        return held if index is None else {**held, "index": index.holding(positions)}

    def purge(self) -> dict[str, bool]:
        """Make removed bytes leave the files. False: a reader was in the way, so purge again later."""
        rows = self._stored()
        purged = {} if rows is None else {"vectors": rows.purge()}
        index = self._purge_index()
        return purged if index is None else {**purged, "index": index}

    def _purge_index(self) -> bool | None:
        """None where there is no index. One of another process is cleaned by that process, for some seconds at most."""
        from mnemolog.consumers.embedding import erasures_of

        erased, _ = erasures_of(self._log)(0)
        last = erased[-1].position if erased else 0
        index = self._stored_index()
        if index is not None:
            with index.exclusively():
                index.compact(last)
            return True
        deadline = time.monotonic() + _PATIENCE
        while (clean := self._files.erased_elsewhere()) is not None and clean < last:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK)
        return None if clean is None else True

    # Looking -----------------------------------------------------------------------------------------------------

    def position(self) -> int:
        """How far the log can be found by vectors; its head where there are none to be."""
        if self._embedder is None:
            return self._log.head()
        rows = self._stored()
        return 0 if rows is None else rows.position(self._open().embedder.space)

    def lags(self) -> list[VectorLag]:
        """Of the vectors and of the index, where there are any. Loads no model."""
        if self._embedder is None or self._stored() is None:
            return []
        opened = self._open()
        lag, condition = opened.worker.lag(), "failing" if self._background.trouble.backoff else "live"
        found = [VectorLag("vectors", lag.space, lag.position, lag.head, condition)]
        filler = self._following(make=False)
        if filler is not None:
            head = opened.rows.change()
            found.append(VectorLag("index", lag.space, head - filler.lag(), head, condition))
        return found

    def troubles(self) -> dict[str, Trouble]:
        """What went wrong since the start: in the background, and with the questions of readers."""
        return {"vectors": self._background.trouble, "the question's vector": self._asked.trouble}

    def rebuild_index(self) -> None:
        """Fill the index anew from the stored vectors, where there are any."""
        if self._embedder is not None and self._stored() is not None:
            filler = self._following(make=True)
            if filler is not None:
                filler.rebuild()

    # Opening -----------------------------------------------------------------------------------------------------

    def _stored(self, trusted: float = 0.0) -> VectorRows | None:
        """trusted: seconds for which it is believed that there are none; to look may take a connection."""
        with self._lock:
            if self._rows is None and time.monotonic() - self._missed >= trusted:
                self._rows = self._files.rows(make=False)
                self._missed = time.monotonic()
            return self._rows

    def _stored_index(self) -> VectorIndex | None:
        with self._lock:
            if self._index is None:
                self._index = self._files.index(make=False)
            return self._index

    def _open(self) -> _Opened:
        from mnemolog.consumers.embedding import EmbeddingWorker
        from mnemolog.projections.dense import DenseScan

        with self._lock:
            if self._opened is None:
                assert self._embedder is not None
                embedder = self._embedder()
                self._rows = rows = self._rows or self._files.rows(make=True)
                assert rows is not None
                worker = EmbeddingWorker(self._log, rows, embedder, large=self._large, hiding=self.hiding)
                self._opened = _Opened(embedder, rows, worker, DenseScan(rows, embedder.space))
            return self._opened

    def _following(self, *, make: bool) -> IndexFiller | None:
        """What fills the index; None where there is no index, and none is to be made."""
        from mnemolog.consumers.indexing import IndexFiller

        with self._lock:
            if self._filler is None and self._embedder is not None:
                self._index = self._index or self._files.index(make=make)
                if self._index is not None:
                    opened, embedder = self._open(), self._open().embedder
                    self._filler = IndexFiller(opened.rows, self._index, embedder.space, embedder.dimensions)
            return self._filler
