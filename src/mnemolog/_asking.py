"""Questions that only a person can answer, as a context carries them: conflicts, and what is asked first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from mnemolog._guard import Guard
from mnemolog._reading import Reader
from mnemolog._views import View
from mnemolog.domain.context import Entry, Layer
from mnemolog.domain.gate.admission import Decision
from mnemolog.domain.gate.wording import is_korean, question, which
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import Record
from mnemolog.projections import gate_reads
from mnemolog.projections.gate_reads import OutcomeRow

_LOOKED_AT: Final = 50
_WHO: Final = "- ask the user: "


class Asking:
    """Makes entries of what waits for a person's answer."""

    def __init__(self, guard: Guard, reader: Reader) -> None:
        self._guard, self._reader, self._store = guard, reader, guard.store

    def questions(
        self, view: View, contested: Sequence[Record], now: datetime, query: str, session: str | None
    ) -> list[Entry]:
        """The conflicts, in the order of their first records, then what is asked about before it is kept, newest first.

        query: in the language of who asks. session: outside of it, text of untrusted origin is named only.
        """
        made, seen = [], set[str]()
        for record in contested:
            if record.id not in seen:
                group = self._reader.whole(view, (record.id, *record.rivals), now)
                seen |= {one.id for one in group}
                slot = next((one.slot for one in group if not is_foreign(one, session)), None)
                named = self._store.gate.masking.slot(slot)
                made += [_conflict(group, named, query, session)] if len(group) > 1 else []
        return [*made, *self._waiting(view, now, session)]

    def _waiting(self, view: View, now: datetime, session: str | None) -> Iterator[Entry]:
        rows = gate_reads.in_scopes(
            view.conn, self._store.curated, view.scopes, [Decision.CONFIRM], _LOOKED_AT, newest=True
        )
        for row in may_be_read(self._reader, view, rows, now):
            own = row.session is not None and row.session == session
            if row.content is not None and (own or row.trust >= Tier.USER_INFERRED):
                yield _to_confirm(row, row.content)


def may_be_read(reader: Reader, view: View, rows: Sequence[OutcomeRow], now: datetime) -> list[OutcomeRow]:
    """Those candidates that the caller may read, as the records that they are for."""
    if reader.reads_all:
        return list(rows)
    records = {one.id for one in reader.whole(view, {row.record for row in rows}, now)}
    return [
        row
        for row in rows
        if row.record in records and reader.may_read_sort(row.kind or "fact", row.sensitivity or "normal")
    ]


def _conflict(
    group: Sequence[Record], slot: tuple[str, str] | None, query: str, session: str | None
) -> Entry:
    first, *others = group
    asked = which([_shown(one, session) for one in group], slot, korean=is_korean(query))
    return Entry(
        first.id,
        first.version,
        Layer.QUESTION,
        asked,
        min(one.trust for one in group),
        _WHO,
        is_record=True,
        events=tuple(dict.fromkeys(event for one in group for event in one.event_ids)),
        others=tuple((one.id, one.version) for one in others),
    )


def _shown(record: Record, session: str | None) -> str:
    content = record.content or ""
    return f"[{len(content)} characters; get {record.id}]" if is_foreign(record, session) else content


def is_foreign(record: Record, session: str | None) -> bool:
    """Whether its text enters no context: of untrusted origin, from another session."""
    return record.trust <= Tier.UNTRUSTED_TOOL and record.session != session


def _to_confirm(row: OutcomeRow, content: str) -> Entry:
    asked = question(content, row.why, row.topic)
    return Entry(row.event_id, 1, Layer.QUESTION, asked, row.trust, _WHO, events=(row.source,))
