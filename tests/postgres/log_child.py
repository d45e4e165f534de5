"""A writer to be killed: appends without end and prints what was acknowledged."""

from __future__ import annotations

import sys
from threading import Thread

from log_support import PlainSealer, draft
from mnemolog.domain.errors import StoreUnavailable
from mnemolog.infra.clock import SystemClock
from mnemolog.infra.postgres.log import PostgresEventLog


def work(log: PostgresEventLog, name: str) -> None:
    """Three events a call; a call that failed is repeated with the same keys until it is acknowledged."""
    number = 0
    while True:
        drafts = [draft("x" * 200, stream=name, key=f"{name}-{number}-{part}") for part in range(3)]
        while True:
            try:
                receipts = log.append(drafts)
                break
            except StoreUnavailable:
                continue
        sys.stdout.write("".join(f"{r.position} {r.event_id}\n" for r in receipts))
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    url, schema, prefix = sys.argv[1:]
    shared = PostgresEventLog(url, PlainSealer(), SystemClock(), schema=schema)
    for thread in range(3):
        Thread(target=work, args=(shared, f"{prefix}-{thread}")).start()
