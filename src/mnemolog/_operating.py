"""What operators see and do: lag, parked events, status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from mnemolog._guard import Guard
from mnemolog.domain.errors import InvalidInput, NotFound
from mnemolog.domain.events import Draft, Event, ParkedEventDismissed, ParkedEventReplayed, Receipt
from mnemolog.infra.compose import BLOBS_FOLDER, KEYS_FILE, LOG_FILE
from mnemolog.projections import catalog
from mnemolog.results import Parked, ProjectionStatus, Status


class Operator:
    """Operations on the whole store."""

    def __init__(self, guard: Guard) -> None:
        self._guard, self._store = guard, guard.store

    def projections(self) -> list[ProjectionStatus]:
        return [
            ProjectionStatus(
                lag.projection,
                lag.version,
                lag.position,
                lag.head,
                lag.lag,
                lag.failed,
                lag.waiting,
                str(lag.condition),
            )
            for lag in self._store.runner.lag()
        ]

    def parked(self, name: str | None) -> list[Parked]:
        names = self._store.runner.names() if name is None else [name]
        return [
            Parked(each, row.position, row.event_id, row.owner, row.reason, str(row.state), row.at)
            for each in names
            for row in self._store.runner.parked(each)
        ]

    def replay_parked(self, name: str, position: int) -> Receipt:
        row = self._parked_at(name, position)
        return self._decide(position, ParkedEventReplayed(name, row.event_id, position))

    def dismiss_parked(self, name: str, position: int, reason: str | None) -> Receipt:
        row = self._parked_at(name, position)
        return self._decide(position, ParkedEventDismissed(name, row.event_id, position, reason))

    def status(self) -> Status:
        store = self._store
        keys, log = store.vault.status(), store.log.stats()
        with store.runner.read("catalog") as conn:
            counts = catalog.count_by_topic(conn)
        files = {"log": LOG_FILE, "keys": KEYS_FILE}
        sizes = {name: (store.path / file).stat().st_size for name, file in files.items()}
        sizes |= {f"view {view.file.name}": view.bytes for view in store.views.files() if view.live}
        sizes[BLOBS_FOLDER] = store.blobs.size()
        projections = self.projections()
        warnings = [
            *keys.warnings,
            *(
                f"{each.name} has parked events: see `projections parked`"
                for each in projections
                if each.parked
            ),
            *(f"{name}: {each}" for name, each in self._troubles()),
        ]
        return Status(
            path=str(store.path),
            head=store.log.head(),
            projections=tuple(projections),
            counts=counts,
            keys={name: value for name, value in asdict(keys).items() if name != "warnings"},
            warnings=tuple(warnings),
            refused_late=keys.refusals + log["refused_late"] + log["refused_erased"],
            refused_access=counts.get("AccessRefused", 0),
            sizes=sizes,
        )

    def _troubles(self) -> Iterator[tuple[str, str]]:
        """Where the background work crashed since it was started, and whether it goes on."""
        for name, trouble in self._store.runner.health().troubles.items():
            if trouble.crashes:
                now = f"trying again in {trouble.backoff:.1f} s" if trouble.backoff else "working again"
                yield name, f"{trouble.crashes} crashes, the last {trouble.last_error}; {now}"

    def _parked_at(self, name: str, position: int) -> Parked:
        if name not in self._store.runner.names():
            raise InvalidInput(f"no projection {name!r}: use one of {', '.join(self._store.runner.names())}")
        for row in self.parked(name):
            if row.position == position:
                return row
        raise NotFound(
            f"nothing is parked at position {position} of {name}: `projections parked` lists what is"
        )

    def _decide(self, position: int, event: Event) -> Receipt:
        """Append a decision in the tenant of the event that it is about."""
        envelope = self._store.log.read_at([position], bodies=False)[0].envelope
        draft: Draft = self._guard.note(event, envelope.scope)
        return self._store.log.append([draft])[0]
