"""What the roles on Kafka, and the commands about its topics, share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mnemolog.consumers.messages import Topics
from mnemolog.consumers.partitions import Epoch, change_partitions, read_epochs
from mnemolog.domain.errors import VersionConflict
from mnemolog.domain.events import Draft, Event
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.clock import SystemClock, UuidV7
from mnemolog.infra.compose import WORKER, keys_and_log, worker_of
from mnemolog.infra.kafka.connecting import connection
from mnemolog.infra.kafka.letters import Letters
from mnemolog.infra.kafka.producing import Producing
from mnemolog.infra.kafka.sealing import IngestKeys
from mnemolog.infra.kafka.topics import TopicAdmin
from mnemolog.infra.leadership import OPENING_FILE, OPENING_SECONDS
from mnemolog.infra.locks import exclusively
from mnemolog.infra.roles.beside import ingest_key_file
from mnemolog.infra.settings import Settings

if TYPE_CHECKING:
    from mnemolog.infra.compose import Log
    from mnemolog.infra.vault import Vault

LETTER_BYTES = 1_500_000


@dataclass(frozen=True, slots=True)
class OnKafka:
    """A log, its keys, and the topics that belong to it."""

    settings: Settings
    vault: Vault
    log: Log
    clock: SystemClock

    @property
    def connection(self) -> dict[str, Any]:
        return connection(self.settings)

    @property
    def topics(self) -> Topics:
        return Topics(self.settings.kafka_prefix)

    @property
    def admin(self) -> TopicAdmin:
        return TopicAdmin(self.connection, self.topics, replication=self.settings.kafka_replication)

    def note(self, event: Event) -> Draft:
        """The draft of an event that the store itself appends."""
        home = self.vault.resolve(Scope(WORKER), create=True)
        assert home is not None
        return Draft(
            id=UuidV7().event_id(),
            event=event,
            scope=ScopeIds(home.at(())),
            stream=home.tenant,
            occurred_at=self.clock.now(),
            actor=worker_of(self.vault)(home.tenant),
            role=Role.SERVICE,
            origin=Tier.OPERATOR,
            digest="",
        )

    def partitions(self, count: int | None = None) -> Epoch:
        """The epoch in force; with a count, first recorded where it is more. Raises InvalidInput for fewer."""
        epochs = read_epochs(self.log)
        if epochs and count is None:
            return epochs.latest
        try:
            return change_partitions(self.log, self.note, count or self.settings.kafka_partitions)
        except VersionConflict:  # another process was quicker
            return read_epochs(self.log).latest

    def create_topics(self) -> list[str]:
        """Make what is not there; which topics were made. The first one also records the partitions."""
        count = self.partitions().partitions
        return self.admin.create(count, count)

    @contextmanager
    def letters(self) -> Iterator[Letters]:
        """The dead letters, with keys that are made where there are none yet."""
        producing = Producing(self.connection, largest=LETTER_BYTES)
        keys = ingest_keys(self.settings)
        try:
            yield Letters(self.connection, self.topics, producing, self.vault, keys, self.clock.now)
        finally:
            producing.close()


@contextmanager
def on_kafka(settings: Settings) -> Iterator[OnKafka]:
    """Open log and keys of the settings. Raises InvalidInput where no Kafka is named."""
    connection(settings)
    clock, path = SystemClock(), settings.data
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as undo:
        with exclusively(path / OPENING_FILE, OPENING_SECONDS, f"opening {path}"):
            vault, log = keys_and_log(path, settings, clock, undo)
        yield OnKafka(settings, vault, log, clock)


def ingest_keys(settings: Settings) -> IngestKeys:
    """The keys of the settings, made at the first use."""
    return IngestKeys.load(ingest_key_file(settings), create=True)
