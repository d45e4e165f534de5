"""eventsourcing's own conformance cases, run against our PostgreSQL recorder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from eventsourcing.persistence import StoredEvent

from postgres_world import new_schema
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

from mnemolog.infra.postgres.recorder import LogDatastore, LogRecorder  # noqa: E402

# The module of the cases imports an AES cipher, which needs a library that neither we nor these cases use.
_NO_CIPHER = ModuleType("eventsourcing.cipher")
vars(_NO_CIPHER)["AESCipher"] = None
with patch.dict(sys.modules, {"eventsourcing.cipher": _NO_CIPHER}):
    from eventsourcing.tests import persistence as cases

pytestmark = pytest.mark.postgres


class _Positionless(LogRecorder):
    """An aggregate recorder by contract returns no positions; all else is ours."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        super().insert_events(stored_events, **kwargs)


class _OnAServer:
    recorder_class: type[LogRecorder] = LogRecorder

    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self._url, self._schema = postgres_url, new_schema()

    def setUp(self) -> None:
        self._datastores: list[LogDatastore] = []

    def tearDown(self) -> None:
        for datastore in self._datastores:
            datastore.close()

    def new_originator_id(self) -> str:
        return uuid4().hex

    def create_recorder(self) -> LogRecorder:
        datastore = LogDatastore(self._url, schema=self._schema)
        self._datastores.append(datastore)
        recorder = self.recorder_class(datastore)
        recorder.create_table()
        return recorder


class TestAggregateRecorder(_OnAServer, cases.AggregateRecorderTestCase):
    recorder_class = _Positionless


class TestApplicationRecorder(_OnAServer, cases.ApplicationRecorderTestCase[LogRecorder]):
    """Positions, filters, and threads that write beside a reader."""

    def test_insert_subscribe(self) -> None:
        """The library's subscriptions hear of our commits."""
        self.optional_test_insert_subscribe()


class TestNotificationOrder(_OnAServer, cases.NonInterleavingNotificationIDsBaseCase):
    """Positions of one insertion are not interleaved with another's."""
