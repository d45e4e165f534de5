"""eventsourcing's own conformance cases, run against our recorder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from eventsourcing.persistence import StoredEvent
from eventsourcing.tests import persistence as cases

from mnemolog.infra.log.recorder import LogDatastore, LogRecorder


class _Positionless(LogRecorder):
    """An aggregate recorder by contract returns no positions; all else is ours."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        super().insert_events(stored_events, **kwargs)


class _OnDisk:
    recorder_class: type[LogRecorder] = LogRecorder

    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._datastores: list[LogDatastore] = []

    def tearDown(self) -> None:
        for datastore in self._datastores:
            datastore.close()
        self._folder.cleanup()

    def new_originator_id(self) -> str:
        return uuid4().hex

    def create_recorder(self) -> LogRecorder:
        # The cases write from many threads at once through one lock: they may wait for each other.
        datastore = LogDatastore(Path(self._folder.name) / "log.db", durability="os")
        self._datastores.append(datastore)
        recorder = self.recorder_class(datastore)
        recorder.create_table()
        return recorder


class TestAggregateRecorder(_OnDisk, cases.AggregateRecorderTestCase):
    recorder_class = _Positionless


class TestApplicationRecorder(_OnDisk, cases.ApplicationRecorderTestCase[LogRecorder]):
    def test_insert_subscribe(self) -> None:
        """SQLite recorders have no subscriptions; the log has `wait` and a doorbell."""


class TestNotificationOrder(_OnDisk, cases.NonInterleavingNotificationIDsBaseCase):
    insert_num = 1_000
