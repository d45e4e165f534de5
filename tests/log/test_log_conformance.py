"""eventsourcing's own conformance cases, run against our recorder."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from eventsourcing.persistence import StoredEvent

from mnemolog.infra.log.recorder import LogDatastore, LogRecorder

# The module of the cases imports an AES cipher, which needs a library that neither we nor these cases use.
_NO_CIPHER = ModuleType("eventsourcing.cipher")
vars(_NO_CIPHER)["AESCipher"] = None
with patch.dict(sys.modules, {"eventsourcing.cipher": _NO_CIPHER}):
    from eventsourcing.tests import persistence as cases


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
        datastore = LogDatastore(Path(self._folder.name) / "log.db", durability="os")
        self._datastores.append(datastore)
        recorder = self.recorder_class(datastore)
        recorder.create_table()
        return recorder


class TestAggregateRecorder(_OnDisk, cases.AggregateRecorderTestCase):
    recorder_class = _Positionless


class TestApplicationRecorder(_OnDisk, cases.ApplicationRecorderTestCase[LogRecorder]):
    """Positions, filters, and 10 threads that write 100,000 events beside a reader."""


class TestNotificationOrder(_OnDisk, cases.NonInterleavingNotificationIDsBaseCase):
    """Positions of one insertion are not interleaved with another's."""
