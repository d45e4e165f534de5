"""Large outputs that belong to no event."""

from __future__ import annotations

from mnemolog.infra.compose import Store
from mnemolog.projections import catalog


def remove_orphans(store: Store) -> int:
    """Unlink large outputs that a crash left without their event; returns how many."""
    names, keep = set(store.blobs.names()), set[str]()
    if store.runner.parked("catalog"):
        return 0
    if names:
        with store.runner.read("catalog") as conn:
            keep = {row.event_id for row in catalog.find_all(conn, names) if row.blob and not row.erased}
    return store.blobs.sweep(keep)
