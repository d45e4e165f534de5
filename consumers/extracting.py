"""The worker that looks for statements in what was said, behind the log, and appends what it finds. Folds never do.

What an extractor finds in one text is one event per record that it would make or support; its key is the extractor's
version, the text's event and the record, so that whoever looks again appends nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from threading import RLock
from typing import Final, TypeVar

from mnemolog.consumers.behind import DerivingLog, KeyedHashes, Places, append_new, following
from mnemolog.consumers.hearing import READ, SPOKEN, Heard, Zone, heard_of
from mnemolog.domain.errors import StoreClosed, StoreUnavailable
from mnemolog.domain.events import CandidatesExtracted, Draft, Recorded, SessionClosed
from mnemolog.domain.gate.candidates import Candidate, Source, stored
from mnemolog.domain.gate.findings import Finding, Scanner, scan
from mnemolog.domain.gate.ports import Extractor, Found
from mnemolog.domain.policy import DEFAULT
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.records import identity, microseconds
from mnemolog.domain.scope import RECORD_LEVELS, ScopeIds
from mnemolog.projections.ports import Clock, Ids

T = TypeVar("T")
REST: Final = timedelta(minutes=10)
"""Without a word, after which a session is taken to rest."""
_BATCH: Final = 200
_TOPICS: Final = SPOKEN | {SessionClosed.topic}


@dataclass(frozen=True, slots=True)
class Directory:
    """What the worker needs to know of people and sessions. actor: its own id in a tenant.

    name: the external name of an id, None where it is gone; zone: of the session that an event is of.
    person: the id of somebody whom a tenant knows by that name, else None.
    """

    actor: Callable[[str], str]
    name: Callable[[str], str | None]
    zone: Zone
    person: Callable[[str, str], str | None]


class Extracting:
    """Gives what was said to one extractor. Thread-safe: one thread at a time works.

    gate: the policy's; may be changed at any time. In mode "window" nothing is looked for, and nothing is left out:
    it goes on where it was. refused: what yielded no candidate, by reason: not word for word in its source, or
    the extractor failed at its text alone.
    """

    def __init__(
        self,
        log: DerivingLog,
        places: Places,
        hashes: KeyedHashes,
        ids: Ids,
        clock: Clock,
        directory: Directory,
        scanners: Sequence[Scanner],
        extractor: Extractor,
    ) -> None:
        self._log, self._places, self._hashes, self._ids, self._clock = log, places, hashes, ids, clock
        self._directory, self._scanners, self.extractor = directory, scanners, extractor
        self.gate = DEFAULT.gate
        self.refused: Counter[str] = Counter()
        self._working = RLock()
        self.position, self._waiting = 0, dict[str, list[int]]()
        self._heard_at, self._closed = dict[str, int](), set[str]()
        if (place := places.get(extractor.version)) is not None:
            self.position, self._waiting = place["position"], place["waiting"]
        self.background = following("extraction", log, self.run_once)

    def run_once(self, *, all_rest: bool = False) -> int:
        """Look at the next batch; how many positions it went on. all_rest: no session is waited for.

        What is found at rest is kept session by session: an extractor that cannot tell just now is not asked again
        about what it told before, which may have cost money.
        """
        with self._working:
            return 0 if self.gate.mode == "window" else self._run_once(all_rest=all_rest)

    def _run_once(self, *, all_rest: bool) -> int:
        began_at = self._log.head()
        if self.position > began_at:
            self.position, self._waiting = 0, {}  # the log is an older one, restored from a backup
        page = self._log.read(self.position, _BATCH, topics=_TOPICS)
        if not self.extractor.at_rest:
            drafts = [one for group in self._groups(page.events) for one in self._drafts(group, began_at)]
            append_new(self._log, drafts)
            return self._moved_to(page.position)
        self._wait_for(page.events)
        moved = self._moved_to(page.position)
        for stream in self._rested(all_rest=all_rest):
            self._ask_about(stream, began_at)
        return moved

    def _moved_to(self, position: int) -> int:
        moved, self.position = position - self.position, position
        if moved:
            self._keep()
        return moved

    def _keep(self, *, dear: bool = False) -> None:
        waiting = {stream: list(positions) for stream, positions in self._waiting.items()}
        place = {"position": self.position, "waiting": waiting}
        self._places.put(self.extractor.version, place, dear=dear)

    def catch_up(self, progress: Callable[[int, int], None] = lambda at, of: None) -> int:
        """Look at everything that is in the log now; the position then."""
        with self._working:
            head = self._log.head()
            while self.position < head and self.run_once():
                progress(min(self.position, head), head)
            self.run_once(all_rest=True)
            return self.position

    # What is due --------------------------------------------------------------------------------------------------

    def _groups(self, events: Iterable[Recorded]) -> Iterator[list[Heard]]:
        """Sources that are looked at together as they come, at most as many as the extractor takes."""
        heard = [one for each in events if (one := heard_of(each)) is not None and one.states]
        for _, session in groupby(heard, key=lambda one: one.recorded.envelope.stream):
            yield from _chunks(list(session), self.extractor.most)

    def _wait_for(self, events: Iterable[Recorded]) -> None:
        """Put what was said with the rest of its session."""
        for recorded in events:
            stream = recorded.envelope.stream
            if recorded.envelope.topic == SessionClosed.topic:
                self._closed |= {stream} & self._waiting.keys()
            elif (heard := heard_of(recorded)) is not None and heard.states:
                self._waiting.setdefault(stream, []).append(recorded.position)
                self._heard_at[stream] = microseconds(recorded.envelope.recorded_at)
                self._closed.discard(stream)

    def _rested(self, *, all_rest: bool) -> list[str]:
        """The sessions that have ended, have rested, or have as much as one call takes."""
        rested = microseconds(self._clock.now() - REST)
        return [
            stream
            for stream, positions in self._waiting.items()
            if all_rest
            or stream in self._closed
            or len(positions) >= self.extractor.most
            or self._last(stream) <= rested
        ]

    def _last(self, stream: str) -> int:
        """When the last word was recorded; looked up once after a restart."""
        if stream not in self._heard_at:
            found = self._log.read_at(self._waiting[stream][-1:], bodies=False)
            self._heard_at[stream] = max((microseconds(one.envelope.recorded_at) for one in found), default=0)
        return self._heard_at[stream]

    def _ask_about(self, stream: str, began_at: int) -> None:
        recorded = self._log.read_at(self._waiting[stream])
        for some in _chunks(recorded, self.extractor.most):
            heard = [one for each in some if (one := heard_of(each)) is not None]
            append_new(self._log, list(self._drafts(heard, began_at)))
            self._waiting[stream] = self._waiting[stream][len(some) :]
            self._keep(dear=True)
        del self._waiting[stream]
        self._heard_at.pop(stream, None)
        self._closed.discard(stream)
        self._keep()

    # What is found --------------------------------------------------------------------------------------------------

    def _drafts(self, heard: Sequence[Heard], began_at: int) -> Iterator[Draft]:
        if not heard:
            return
        sources = [one.source(self._directory.zone(one.recorded), self._user(one)) for one in heard]
        for one, found in zip(heard, self._told(sources), strict=True):
            by_record: dict[str, list[Candidate]] = {}
            for candidate in self._verbatim(one, found):
                by_record.setdefault(self._record(one, candidate), []).append(candidate)
            examined = self._examined(one) if by_record else ((), ())
            for record, candidates in by_record.items():
                yield self._draft(one, record, self._event(one, candidates, *examined), began_at)

    def _told(self, sources: Sequence[Source]) -> Sequence[Found]:
        """What the extractor finds; a text at which it fails yields nothing, and holds up no other."""
        self.background.give_way()
        try:
            return self.extractor.extract(sources)
        except (StoreClosed, StoreUnavailable):
            raise
        except Exception as error:
            if len(sources) == 1:
                self.refused[type(error).__name__] += 1
                return [()]
            half = len(sources) // 2
            return [*self._told(sources[:half]), *self._told(sources[half:])]

    def _examined(self, heard: Heard) -> tuple[Sequence[Finding], tuple[str, ...]]:
        """What is to be hidden in a text, and the rules by which it tells its reader what to do."""
        from mnemolog.domain.gate.instructions import instructions

        signs = {sign.rule for sign in instructions(heard.text)}
        return scan(heard.text[:READ], self._scanners), tuple(sorted(signs))

    def _user(self, heard: Heard) -> str | None:
        user = heard.recorded.envelope.scope.user
        return None if user is None else self._directory.name(user)

    def _verbatim(self, heard: Heard, found: Iterable[Candidate]) -> Iterator[Candidate]:
        """No span, no candidate. What speaks of an older value too is a candidate for that one as well."""
        for candidate in found:
            start, end = candidate.span
            if not 0 <= start < end <= READ or heard.text[start:end] != candidate.content:
                self.refused["not in its source"] += 1
                continue
            yield candidate
            if (older := candidate.denied()) is not None:
                yield older

    def _record(self, heard: Heard, candidate: Candidate) -> str:
        belongs = ScopeIds(heard.recorded.envelope.scope.at(RECORD_LEVELS))
        what = identity(belongs, candidate.slot, candidate.statement)
        return self._hashes.keyed_hash(heard.home, b"record", what).hex()

    def _draft(self, heard: Heard, record: str, event: CandidatesExtracted, began_at: int) -> Draft:
        envelope, home, hashed = heard.recorded.envelope, heard.home, self._hashes.keyed_hash
        key = "\0".join((self.extractor.version, heard.id, record)).encode()
        body = json.dumps([event.candidates, event.said]).encode()
        return Draft(
            id=self._ids.event_id(),
            event=event,
            scope=envelope.scope,
            stream=record,
            occurred_at=heard.source(None, None).occurred_at,
            actor=self._directory.actor(envelope.scope.tenant),
            role=Role.SERVICE,
            origin=envelope.origin,
            digest=hashed(home, b"body", body).hex(),
            subjects=tuple(sorted(envelope.subjects)) or (home,),
            key=hashed(home, b"candidates key", key).hex(),
            sources=(heard.id,),
            causation=heard.id,
            began_at=began_at,
        )

    def _event(
        self, heard: Heard, candidates: Sequence[Candidate], found: Sequence[Finding], signs: tuple[str, ...]
    ) -> CandidatesExtracted:
        text, hashed = heard.text[:READ], self._hashes.keyed_hash
        low, high = min(each.span[0] for each in candidates), max(each.span[1] for each in candidates)
        near = [one.stored() for one in found if one.start < high and low < one.end]
        return CandidatesExtracted(
            tuple(stored(each) for each in candidates),
            {"role": heard.role, "who": heard.who, "length": len(text)},
            self.extractor.version,
            self._voice(heard),
            hashed(heard.home, b"extraction input", heard.recorded.envelope.digest.encode()).hex(),
            tuple(near),
            signs,
            heard.injected,
        )

    def _voice(self, heard: Heard) -> str:
        """A person's own id, which is also that of what they state; else equal for one author or tool."""
        envelope = heard.recorded.envelope
        if heard.role == "user" and envelope.origin >= Tier.USER_INFERRED:
            if heard.who is not None:
                person = self._directory.person(envelope.scope.tenant, heard.who)
            else:
                person = envelope.actor if envelope.role is Role.USER else None
            if person is not None:
                return person
        voice = json.dumps((heard.role, heard.who)).encode()
        return self._hashes.keyed_hash(heard.home, b"voice", voice).hex()


def _chunks(every: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(every), size):
        yield list(every[start : start + size])
