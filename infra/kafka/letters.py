"""Dead letters: messages that ingest could not take, kept until somebody replays or dismisses them.

The topic is compacted. The key of a letter is where its message was, so that a redelivery is no second letter, and the
one that says it was replayed or dismissed takes the place of its bytes. What it holds is sealed: under the keys of all
persons that the message is about, however wrong it is, and dies with each of them; what names nobody, to the ingest's
own key. Of whom was erased there is no letter.

A letter: "MND1", the length of the head (4 bytes, big-endian), the head as JSON, and the sealed body; in that, the
length of the reason (4 bytes), the reason, the original bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from mnemolog.consumers.ingest import Refused
from mnemolog.consumers.messages import Topics, framed, unframed
from mnemolog.consumers.relay import Outgoing
from mnemolog.consumers.whose import Whose, whose
from mnemolog.domain.errors import CorruptStore, ErasedScope, InvalidInput, NotFound
from mnemolog.domain.events import FORGOTTEN, Forgotten
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.kafka.consuming import read_all
from mnemolog.infra.kafka.producing import Producing
from mnemolog.infra.kafka.sealing import IngestKeys

_MAGIC: Final = b"MND1"


class State(StrEnum):
    OPEN = "open"
    REPLAYED = "replayed"
    DISMISSED = "dismissed"


class Sealer(Protocol):
    """The keys of persons, as far as letters need them."""

    def refresh(self) -> None:
        """Notice what other processes destroyed."""

    def resolve(self, scope: Scope, /, *, create: bool) -> ScopeIds | None: ...
    def is_fenced(self, names: Scope, occurred_at_us: int) -> bool: ...
    def count_refusal(self, names: Scope) -> None: ...
    def next_leaf(self, subject: str) -> int: ...
    def seal(self, subjects: Sequence[str], leaf: int, plaintext: bytes, aad: bytes) -> bytes: ...
    def open(self, subjects: Sequence[str], leaf: int, ciphertext: bytes, aad: bytes) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. at: when its message came; since: when this was written, both UTC.

    reason and original are FORGOTTEN where their person was erased, or the key was dropped; "" and empty where it was
    replayed or dismissed.
    """

    id: str
    code: str
    state: State
    at: datetime
    since: datetime
    reason: str | Forgotten = ""
    original: bytes | Forgotten = b""
    head: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def owners(self) -> tuple[str, ...]:
        """The random ids of those whose keys close it; none where it is the ingest's own."""
        return tuple(self.head.get("subjects", ()))

    @property
    def size(self) -> int | None:
        """Bytes of the message; None where it is gone."""
        return len(self.original) if isinstance(self.original, bytes) and self.original else None

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset of its message."""
        _, partition, offset = self.id.rsplit("/", 2)
        return int(partition), int(offset)


class Letters:
    """Implements `consumers.ingest.DeadLetters`, and what operators do with them."""

    def __init__(
        self,
        connection: Mapping[str, Any],
        topics: Topics,
        producing: Producing,
        vault: Sealer,
        keys: IngestKeys,
        now: Callable[[], datetime],
    ) -> None:
        self._connection, self._topics, self._producing = connection, topics, producing
        self._vault, self._keys, self._now = vault, keys, now

    def put(self, refused: Sequence[Refused]) -> int:
        """As the port says."""
        self._vault.refresh()
        letters = [letter for one in refused if (letter := self._letter(one)) is not None]
        if letters:
            self._producing.send(self._topics.dead_letters, letters)
        return len(letters)

    def all(self) -> list[Letter]:
        """Every letter, oldest first, the handled ones too. Raises StoreUnavailable."""
        self._vault.refresh()
        newest = {one.key: one for one in read_all(self._connection, self._topics.dead_letters) if one.key}
        letters = [letter for one in newest.values() if (letter := self._read(one.value, one.timestamp))]
        return sorted(letters, key=lambda letter: (letter.at, letter.place))

    def open(self) -> list[Letter]:
        """Those that wait for somebody."""
        return [letter for letter in self.all() if letter.state is State.OPEN]

    def get(self, id: str) -> Letter:
        """Raises NotFound."""
        found = next((letter for letter in self.all() if letter.id == id), None)
        if found is None:
            raise NotFound(f"no dead letter {id!r}: `mnemolog dlq list` shows those that there are")
        return found

    def text(self, letter: Letter) -> bytes | Forgotten:
        """What its message says, opened if that was sealed to a key that is here."""
        if isinstance(letter.original, Forgotten):
            return letter.original
        with suppress(InvalidInput):
            return self._keys.open(letter.original)
        return letter.original

    def replay(self, letters: Sequence[Letter]) -> None:
        """Send the original bytes once more; one that fails again becomes a new letter. Raises InvalidInput."""
        for letter in letters:
            if letter.state is not State.OPEN:
                raise InvalidInput(f"{letter.id} was {letter.state.value} already")
            if isinstance(letter.original, Forgotten):
                raise InvalidInput(f"{letter.id} was erased: dismiss it")
        originals = [
            Outgoing(letter.head["partition"], None, letter.original)
            for letter in letters
            if isinstance(letter.original, bytes)
        ]
        # Sent first: a crash in between sends it twice, which ingest notices, and never not at all.
        self._producing.send(self._topics.ingest, originals)
        self._mark(letters, State.REPLAYED)

    def dismiss(self, letters: Sequence[Letter]) -> None:
        """Give them up: their bytes go with the next run of the cleaner."""
        for letter in letters:
            if letter.state is not State.OPEN:
                raise InvalidInput(f"{letter.id} was {letter.state.value} already")
        self._mark(letters, State.DISMISSED)

    def _mark(self, letters: Sequence[Letter], state: State) -> None:
        marks = []
        for letter in letters:
            head = {name: letter.head[name] for name in ("id", "code", "at", "partition")}
            head |= {"state": state.value, "on": self._now().astimezone(UTC).isoformat()}
            marks.append(Outgoing(0, letter.id.encode(), framed(_MAGIC, head, b"")))
        self._producing.send(self._topics.dead_letters, marks)

    def _letter(self, refused: Refused) -> Outgoing | None:
        message = refused.message
        head: dict[str, Any] = {
            "id": message.id,
            "code": refused.code,
            "at": message.at,
            "partition": message.partition,
            "state": State.OPEN.value,
        }
        reason = refused.reason.encode("utf-8", "backslashreplace")
        body = len(reason).to_bytes(4, "big") + reason + message.value
        found = self._whose(message.value)
        if found is None:
            return Outgoing(0, message.id.encode(), framed(_MAGIC, head, self._keys.current.seal(body)))
        try:
            head["subjects"] = subjects = self._subjects(found)
            head["leaf"] = leaf = self._vault.next_leaf(subjects[0])
            sealed = self._vault.seal(subjects, leaf, body, message.id.encode())
        except ErasedScope:
            return None
        return Outgoing(0, message.id.encode(), framed(_MAGIC, head, sealed))

    def _whose(self, value: bytes) -> Whose | None:
        try:
            return whose(self._keys.open(value))
        except InvalidInput:  # nobody can read it here
            return None

    def _subjects(self, found: Whose) -> list[str]:
        """Whose keys close it; made where they are new, as it may be the first that is heard of a person.

        Raises ErasedScope where one of them was erased since the message was written.
        """
        self._refuse_fenced(found)
        known = [self._vault.resolve(person, create=True) for person in found.people()]
        self._refuse_fenced(found)  # an erasure meanwhile would have made new names
        return sorted({ids.user or ids.tenant for ids in known if ids is not None})

    def _refuse_fenced(self, found: Whose) -> None:
        if (place := self._fenced(found)) is not None:
            self._vault.count_refusal(place)
            raise ErasedScope("this is about something that was erased: it is not kept")

    def _fenced(self, found: Whose) -> Scope | None:
        """The person, session or tenant that was erased since the message was written, if there is one."""
        return next((one for one in found.places() if self._vault.is_fenced(one, found.occurred_us)), None)

    def _read(self, value: bytes | None, timestamp: int) -> Letter | None:
        """None for what somebody else has sent there."""
        try:
            head, sealed = unframed(_MAGIC, value or b"")
            letter = Letter(
                head["id"],
                head["code"],
                State(head["state"]),
                datetime.fromtimestamp(head["at"] / 1000, UTC),
                datetime.fromtimestamp(timestamp / 1000, UTC),
                head=head,
            )
        except (CorruptStore, KeyError, TypeError, ValueError):
            return None
        if not sealed:
            return letter
        body = self._opened(head, sealed) or b""
        split = 4 + int.from_bytes(body[:4], "big")
        if not body or self._is_closed(body[split:]):
            return replace(letter, reason=FORGOTTEN, original=FORGOTTEN)
        return replace(letter, reason=body[4:split].decode(), original=body[split:])

    def _is_closed(self, original: bytes) -> bool:
        """Whether its session was erased since, or a person whose name could not be read when it was written."""
        found = self._whose(original)
        return found is not None and self._fenced(found) is not None

    def _opened(self, head: Mapping[str, Any], sealed: bytes) -> bytes | None:
        if "subjects" in head:
            return self._vault.open(head["subjects"], head["leaf"], sealed, head["id"].encode())
        try:
            return self._keys.open(sealed)
        except InvalidInput:
            return None
