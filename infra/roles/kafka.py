"""What the roles on Kafka, and the commands about its topics, share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mnemolog.consumers.messages import Topics
from mnemolog.consumers.partitions import Epoch, change_partitions, read_epochs
from mnemolog.domain.errors import NotFound, VersionConflict
from mnemolog.domain.events import Draft, Event
from mnemolog.domain.principal import LOCAL_OPERATOR, Principal, Role, Tier
from mnemolog.domain.scope import Scope, ScopeIds
from mnemolog.infra.clock import SystemClock, UuidV7
from mnemolog.infra.compose import WORKER, exists, keys_and_log, worker_of
from mnemolog.infra.kafka.connecting import check_reachable, connection
from mnemolog.infra.kafka.letters import Letters
from mnemolog.infra.kafka.owning import check_owner, claim
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
    from mnemolog.memory import Memory
    from mnemolog.projections.ports import Clock

LETTER_BYTES = 1_500_000


@dataclass(frozen=True, slots=True)
class OnKafka:
    """A log, its keys, and the topics that belong to it."""

    settings: Settings
    vault: Vault
    log: Log
    clock: Clock

    @classmethod
    def of(cls, memory: Memory) -> OnKafka:
        """With the keys and the log that a memory has open."""
        store = memory._store
        return cls(store.settings, store.vault, store.log, store.clock)

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

    def create_topics(self, partitions: int | None = None) -> tuple[Epoch, list[str]]:
        """Make what is not there; the epoch, and which topics were made. The first one also records the partitions.

        Raises AnotherLog where the topics belong to another log.
        """
        check_owner(self.connection, self.topics, log_id(self.log))
        epoch = self.partitions(partitions)
        made = self.admin.create(epoch.partitions, epoch.partitions)
        claim(self.connection, self.topics, log_id(self.log))
        return epoch, made

    @contextmanager
    def letters(self) -> Iterator[Letters]:
        """The dead letters, with keys that are made where there are none yet. Raises AnotherLog."""
        check_owner(self.connection, self.topics, log_id(self.log))
        producing = Producing(self.connection, largest=LETTER_BYTES)
        keys = ingest_keys(self.settings)
        try:
            yield Letters(self.connection, self.topics, producing, self.vault, keys, self.clock.now)
        finally:
            producing.close()


@contextmanager
def on_kafka(settings: Settings, *, create: bool = True) -> Iterator[OnKafka]:
    """Open log and keys of the settings. Raises InvalidInput where no Kafka is named, NotFound with create=False."""
    connection(settings)
    clock, path = SystemClock(), settings.data
    if not create and not exists(path, settings):
        raise NotFound(f"no memory in {path}: create one with `mnemolog init {path}`")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as undo:
        with exclusively(path / OPENING_FILE, OPENING_SECONDS, f"opening {path}"):
            vault, log = keys_and_log(path, settings, clock, undo)
        yield OnKafka(settings, vault, log, clock)


@contextmanager
def writing_memory(settings: Settings, principal: Principal = LOCAL_OPERATOR) -> Iterator[Memory]:
    """A memory that keeps up no view: that is the work of others, whom it leaves the lead of the directory."""
    from mnemolog.memory import Memory

    check_reachable(connection(settings))
    with Memory.open(settings, principal=principal, background=False) as memory:
        memory._store.leadership.give_up()
        yield memory


def log_id(log: Log) -> str:
    """A hash of its first event, which no other log has, and which goes along with every move; "" for none yet."""
    return next((leaf.hex() for _, leaf in log.leaves(0, 1)), "")


def ingest_keys(settings: Settings) -> IngestKeys:
    """The keys of the settings, made at the first use."""
    return IngestKeys.load(ingest_key_file(settings), create=True)
