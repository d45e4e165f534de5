"""The kinds of logs, and how each is changed behind its back."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemolog.infra.log import SqliteEventLog

Log = Any


@dataclass(frozen=True)
class SqliteKind:
    """A log in one file."""

    path: Path

    def open(self, **options: Any) -> SqliteEventLog:
        return SqliteEventLog(self.path, **options)

    def tamper(self, statement: str) -> None:
        with sqlite3.connect(self.path) as other:
            other.execute(statement)
        other.close()

    def hex(self, digits: str) -> str:
        return f"x'{digits}'"


@dataclass(frozen=True)
class PostgresKind:
    """A log in a schema of its own."""

    url: str
    schema: str

    def open(self, **options: Any) -> Log:
        from mnemolog.infra.postgres.log import PostgresEventLog

        return PostgresEventLog(self.url, schema=self.schema, **options)

    def tamper(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url) as other:
            # Only a superuser gets past the trigger that refuses changes.
            other.execute("SET session_replication_role = replica")
            other.execute(f"SET search_path = {self.schema}")
            other.execute(statement)

    def hex(self, digits: str) -> str:
        return rf"'\x{digits}'::bytea"


Kind = SqliteKind | PostgresKind
