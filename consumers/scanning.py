"""The worker that looks for secrets and personal identifiers in what was said, behind the log; and what it hides.

It appends where they stand, never what they are. The view of turns hides them from there on; until then, whatever
shows a turn looks itself (`Masking`).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from threading import RLock
from typing import Any, Final

from mnemolog.consumers.behind import DerivingLog, KeyedHashes, Places, append_new, following
from mnemolog.consumers.hearing import SPOKEN, Heard, heard_of
from mnemolog.domain.events import Draft, Json, SensitiveFound, ToolCalled
from mnemolog.domain.gate.findings import (
    OVERLAP,
    Finding,
    Scanner,
    Sort,
    apart,
    clipped,
    fingerprint,
    found_around,
    mask,
    scan,
)
from mnemolog.domain.passages import INDEXED, LARGE, WHOLE, Passage, passages, readable
from mnemolog.domain.policy import DEFAULT
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import SESSION_LEVELS
from mnemolog.projections.passages import PassageRow, whole_text
from mnemolog.projections.ports import Clock, Ids, LargeTexts
from mnemolog.projections.turns import shown_text
from mnemolog.projections.turns_view import TurnRow

WORKER: Final = "findings"
RULES: Final = "1"
"""Names what is looked for. With another name, and from the beginning of the log, everything is looked at again."""
_BATCH: Final = 200
_REMEMBERED: Final = 20_000


class Scanning:
    """Appends `SensitiveFound` for every text with a finding, once. Thread-safe: one thread at a time works."""

    def __init__(
        self,
        log: DerivingLog,
        places: Places,
        hashes: KeyedHashes,
        ids: Ids,
        clock: Clock,
        actor: Callable[[str], str],
        scanners: Sequence[Scanner],
        large: LargeTexts | None = None,
    ) -> None:
        self._log, self._places, self._hashes, self._ids, self._clock = log, places, hashes, ids, clock
        self._actor, self._scanners, self._large = actor, scanners, large
        self._working = RLock()
        self.position = int(places.get(WORKER) or 0)
        self.settled = self.position, log.head()
        """Up to where it has looked, and up to which position what it found until then lies at most."""
        self.background = following(WORKER, log, self.run_once)

    def run_once(self) -> int:
        """Look at the next batch; how many positions it went on."""
        with self._working:
            return self._run_once()

    def _run_once(self) -> int:
        began_at = self._log.head()
        if self.position > began_at:
            self.position = 0  # the log is an older one, restored from a backup
        page = self._log.read(self.position, _BATCH, topics=SPOKEN)
        heard = [one for one in map(heard_of, page.events) if one is not None]
        drafts = [self._draft(one, found, began_at) for one in heard if (found := list(self._found(one)))]
        append_new(self._log, drafts)
        moved, self.position = page.position - self.position, page.position
        self.settled = self.position, self._log.head()
        if moved:
            self._places.put(WORKER, self.position)
        return moved

    def catch_up(self, progress: Callable[[int, int], None] = lambda at, of: None) -> int:
        """Look at everything that is in the log now; the position then."""
        with self._working:
            head = self._log.head()
            while self.position < head and self.run_once():
                progress(min(self.position, head), head)
            return self.position

    def _found(self, heard: Heard) -> Iterator[Json]:
        self.background.give_way()
        key = self._hashes.keyed_hash(heard.home, b"fingerprints", b"")
        for part, text, findings in self._texts(heard):
            for one in findings:
                yield {
                    "part": part,
                    "sort": one.sort.value,
                    "start": one.start,
                    "end": one.end,
                    "rule": one.rule,
                    "print": fingerprint(text, one, key),
                }

    def _scan(self, text: str) -> tuple[Finding, ...]:
        """What is found in it. Of a text that cannot be looked through nothing is shown, and it holds up no other."""
        try:
            return scan(text, self._scanners)
        except Exception:
            return (Finding(Sort.SECRET, 0, len(text), "cannot be looked through"),)

    def _texts(self, heard: Heard) -> Iterator[tuple[int, str, tuple[Finding, ...]]]:
        """What the view shows of it, its text and the passages of a large one, with what is found in each.

        What a passage or the preview has only a part of is found in the whole.
        """
        shown = shown_text(heard.recorded.event)
        whole = whole_text(heard.recorded, self._large)
        if whole is None or len(whole) <= LARGE:
            if shown is not None:
                yield WHOLE, shown, self._scan(shown)
            return
        pieces, escaped = passages(whole, INDEXED), _is_escaped(heard.recorded.event, whole)
        found = () if escaped else found_around(whole, pieces, self._scan)
        if shown is not None:
            yield WHOLE, shown, apart([*self._scan(shown), *_previewed(found, whole, shown)])
        for part, start, end in pieces:
            text = readable(whole[start:end]) if escaped else whole[start:end]
            yield part, text, self._scan(text) if escaped else clipped(found, start, end)

    def _draft(self, heard: Heard, found: Sequence[Json], began_at: int) -> Draft:
        envelope, home = heard.recorded.envelope, heard.home
        hashed = self._hashes.keyed_hash
        session = envelope.scope.at(SESSION_LEVELS).encode()
        return Draft(
            id=self._ids.event_id(),
            event=SensitiveFound(tuple(found)),
            scope=envelope.scope,
            stream=hashed(home, b"findings", session).hex(),
            occurred_at=self._clock.now(),
            actor=self._actor(envelope.scope.tenant),
            role=Role.SERVICE,
            origin=Tier.AGENT,
            digest=hashed(home, b"body", json.dumps(list(found)).encode()).hex(),
            subjects=tuple(sorted(envelope.subjects)) or (home,),
            key=hashed(home, b"findings key", f"{RULES}\0{heard.id}".encode()).hex(),
            sources=(heard.id,),
            causation=heard.id,
            began_at=began_at,
        )


def _is_escaped(event: object, whole: str) -> bool:
    """Whether its passages are shown in other letters than the text has, piece by piece."""
    return isinstance(event, ToolCalled) and readable(whole) != whole


def _previewed(found: Iterable[Finding], whole: str, shown: str) -> Iterator[Finding]:
    """What was found in a text, as places in what the event shows of it: its beginning and its end."""
    head, tail = _alike(whole, shown), _alike(reversed(whole), reversed(shown))
    every, behind = list(found), len(shown) - tail
    yield from clipped(every, 0, head)
    for one in clipped(every, len(whole) - tail, len(whole)):
        yield replace(one, start=one.start + behind, end=one.end + behind)


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class Masking:
    """Hides what the scanners find in a text. sorts: what is hidden; the policy's.

    quick: those that look at what a read shows before the worker has; large: where the whole of what it shows a part of
    is. hidden: up to which position the view that a text was read from has it hidden already.
    """

    def __init__(self, scanners: Sequence[Scanner], quick: Sequence[Scanner], large: LargeTexts) -> None:
        self._scanners, self._quick, self._large = scanners, quick, large
        self.sorts: frozenset[Sort] = DEFAULT.gate.masked
        self._known: OrderedDict[tuple[str, int, int], tuple[Finding, ...]] = OrderedDict()

    def text(self, text: str) -> str:
        """The text with a word in place of each finding."""
        return mask(text, self._scanned("", 0, text, self._scanners))

    def pieces(self, whole: str, pieces: Sequence[Passage]) -> list[str]:
        """These pieces of a text with a word in place of each finding in it."""
        found = found_around(whole, pieces, lambda text: scan(text, self._scanners))
        hidden = self._of_policy(found)
        return [mask(whole[start:end], clipped(hidden, start, end)) for _, start, end in pieces]

    def range(self, text: str, start: int, end: int) -> str:
        """Characters [start, end) of the text with a word in place of what a finding covers."""
        found = self._of_policy(scan(text, self._scanners))
        return mask(text[start:end], clipped(found, start, end))

    def row(self, row: TurnRow, hidden: int) -> TurnRow:
        """A turn as it may be shown. Who said it, and with which tool, is looked at here alone."""
        if row.author or row.tool:
            row = row._replace(author=self.name(row.author), tool=self.name(row.tool))
        if row.position <= hidden:
            return row
        found = self._looked(row.event_id, WHOLE, row.text, lambda: self._in_row(row))
        return row._replace(text=mask(row.text, found)) if found else row

    def name(self, name: str | None) -> str | None:
        """The name of an author or a tool as it may be shown."""
        return name and self.text(name)

    def slot(self, slot: tuple[str, str] | None) -> tuple[str, str] | None:
        """A slot as it may be shown: its entity is who spoke, where that is not the user."""
        if slot is None:
            return None
        entity, attribute = (mask(name, self._scanned("slot", 0, name, self._quick)) for name in slot)
        return entity, attribute

    def value(self, value: Any, name: str = "") -> Any:
        """A JSON value with a word in place of each finding. name: its key, which a reader sees before it."""
        if isinstance(value, Mapping):
            return {self.text(key): self.value(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each, name) for each in value]
        if isinstance(value, bool) or not isinstance(value, str | int):
            return value
        whole, size = f"{name}: {value}", len(str(value))
        found = self._scanned("", 0, whole, self._scanners)
        hidden = clipped(found, len(whole) - size, len(whole))
        return mask(str(value), hidden) if hidden else value

    def passage(self, row: TurnRow, passage: PassageRow | None, hidden: int) -> PassageRow | None:
        """A passage of a turn as it may be shown."""
        if passage is None or row.position <= hidden:
            return passage
        found = self._looked(
            row.event_id, passage.start, passage.text, lambda: self._in_passage(row, passage)
        )
        return replace(passage, text=mask(passage.text, found)) if found else passage

    def _in_row(self, row: TurnRow) -> tuple[Finding, ...]:
        """In its text, of which a large one has the beginning and the end only: what is cut is found there."""
        seen, blob, size = scan(row.text, self._quick), row.blob, len(row.text) + OVERLAP
        if blob is None:
            return seen
        head = self._large.read(row.event_id, blob, 0, size)
        tail = self._large.read(row.event_id, blob, max(size, blob["chars"] - size), blob["chars"])
        if head is None or tail is None:
            return seen
        return apart([*seen, *_previewed(scan(head + tail, self._quick), head + tail, row.text)])

    def _in_passage(self, row: TurnRow, passage: PassageRow) -> tuple[Finding, ...]:
        """Looked for with what stands around it, unless that is told in other letters, or hidden by now."""
        low, high = max(0, passage.start - OVERLAP), min(passage.total, passage.end + OVERLAP)
        blob, text = row.blob, passage.text
        around = row.text[low:high] if blob is None else self._large.read(row.event_id, blob, low, high)
        start, end = passage.start - low, passage.end - low
        if around is None or around[start:end] != text:
            return scan(text, self._quick)
        return clipped(scan(around, self._quick), start, end)

    def forget(self) -> None:
        """Drop what is remembered of texts, as after an erasure."""
        self._known.clear()

    def _scanned(
        self, event_id: str, place: int, text: str, scanners: Sequence[Scanner]
    ) -> tuple[Finding, ...]:
        return self._looked(event_id, place, text, lambda: scan(text, scanners))

    def _looked(
        self, event_id: str, place: int, text: str, look: Callable[[], tuple[Finding, ...]]
    ) -> tuple[Finding, ...]:
        """Where things stand in it; looked for once."""
        key = event_id, place, hash(text)  # the view may have hidden it a moment ago
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = look()
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._of_policy(found)

    def _of_policy(self, found: Sequence[Finding]) -> tuple[Finding, ...]:
        return tuple(one for one in found if one.sort in self.sorts) if found else ()
