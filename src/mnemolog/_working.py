"""Working state: what an agent is at, task by task, with the version that a writer expects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, MetaData

from mnemolog._guard import Guard
from mnemolog._views import Views
from mnemolog._writing import About, Writer
from mnemolog.domain import ingress
from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.events import Receipt, WorkingStateChanged
from mnemolog.domain.principal import statement_tier
from mnemolog.domain.scope import ANY, SESSION_LEVELS, Scope, ScopeIds
from mnemolog.projections import working
from mnemolog.projections.scopes import ScopeTable
from mnemolog.projections.working import TaskState

MAX_VALUES: Final = 64 * 1024
"""Bytes of one change, as JSON."""


class Desk:
    """Writes and reads one principal's working state. The caller has passed the guard."""

    def __init__(self, guard: Guard, writer: Writer) -> None:
        self._guard, self._writer, self._store = guard, writer, guard.store
        self._scopes = ScopeTable(MetaData())

    def set_state(
        self,
        scope: Scope,
        task: str,
        values: Mapping[str, Any],
        expected_version: int | None,
        about: About,
    ) -> Receipt:
        """Set the given keys of the task, and remove those whose value is None; `Receipt.version` is the new version.

        Raises VersionConflict when the task is not at `expected_version` (0: nobody has touched it yet).
        """
        _in_session(scope)
        about = replace(about, expected_version=expected_version, began_at=self._store.position)
        event = WorkingStateChanged(ingress.short(task, "task"), _checked(values))
        at = self._writer.moment(scope, about.occurred_at, "occurred_at")
        ids = self._writer.ids(scope, ingress.microseconds(at))
        stream = self._stream(ids, event.task)
        origin = statement_tier(self._guard.principal)
        return self._writer.write(scope, event, origin, replace(about, occurred_at=at), stream=stream)

    def state(self, scope: Scope, task: str, at_least: int | None = None) -> TaskState:
        """The task's values and version, and who changed each key; empty at version 0 where there is nothing."""
        _in_session(scope)
        task, ids = ingress.short(task, "task"), self._ids(scope)
        if ids is None:
            return TaskState(task)
        with self._store.runner.read("working", at_least) as conn:
            found = working.state(conn, self._visible(conn, ids), self._stream(ids, task), task)
        return self._shown([found])[0]

    def states(self, scope: Scope, at_least: int | None = None) -> list[TaskState]:
        """The states of all tasks of the scope's session, the one that changed last at the end."""
        _in_session(scope)
        ids = self._ids(scope)
        if ids is None or ids.session is None:
            return []
        with self._store.runner.read("working", at_least) as conn:
            return self._shown(working.states(conn, self._visible(conn, ids), ids.session))

    def states_in(self, views: Views, scope: Scope) -> list[TaskState]:
        """As `states`, in views that are open."""
        ids = self._ids(scope)
        if ids is None or ids.session is None:
            return []
        view = views.of("working", scope.at(SESSION_LEVELS))
        return self._shown(working.states(view.conn, view.scopes, ids.session))

    def _shown(self, states: Sequence[TaskState]) -> list[TaskState]:
        """The states as they may be shown. Tasks and keys stay: by them the agent goes on writing."""
        hide = self._store.gate.masking.value
        return [
            replace(one, values={key: hide(value, key) for key, value in one.values.items()})
            for one in states
        ]

    def _ids(self, scope: Scope) -> ScopeIds | None:
        """Without the agent: all agents of a session work on the same state."""
        return self._store.vault.resolve(scope.at(SESSION_LEVELS), create=False)

    def _visible(self, conn: Connection, ids: ScopeIds) -> list[int]:
        return list(self._scopes.visible(conn, ids))

    def _stream(self, ids: ScopeIds, task: str) -> str:
        what = ids.at(SESSION_LEVELS).encode() + b"\0" + task.encode()
        return self._store.vault.keyed_hash(ids.user or ids.tenant, b"working", what).hex()


def _in_session(scope: Scope) -> None:
    if scope.session is None or scope.session == ANY:
        raise InvalidInput("working state belongs to a session: give a scope with session=")


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InvalidInput("values must be a mapping of keys to JSON values")
    if not values:
        raise InvalidInput("values need at least one key; None removes a key")
    for name in values:
        ingress.short(name, "a key of values")
    text = ingress.json_text(dict(values), "values")
    if len(text.encode()) > MAX_VALUES:
        raise InvalidInput(f"values have more than {MAX_VALUES} bytes as JSON: keep a reference instead")
    checked: dict[str, Any] = json.loads(text)
    return checked
