"""The composition root: builds one store out of its parts, and is the only adapter that knows them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from mnemolog.consumers.accesses import Accesses
from mnemolog.consumers.extracting import Directory
from mnemolog.consumers.partitions import partition_of
from mnemolog.consumers.summarising import Summarising
from mnemolog.consumers.vectorising import Vectorising
from mnemolog.domain.errors import KeysMissing, MnemologError, NotFound, StoreClosed, StoreUnavailable
from mnemolog.domain.events import ERASURE, PolicyAdopted, Recorded
from mnemolog.domain.gate.ports import Extractor, Rules
from mnemolog.domain.policy import DEFAULT as DEFAULT_POLICY
from mnemolog.domain.policy import GatePolicy, Policy
from mnemolog.domain.scope import Scope
from mnemolog.infra.adopted import adopted_policy
from mnemolog.infra.blobs import SealedBlobs, open_blobs
from mnemolog.infra.clock import SystemClock, UuidV7, zone_named
from mnemolog.infra.gating import GateWorkers
from mnemolog.infra.leadership import LOCK_FILE, Leadership
from mnemolog.infra.log.sqlite import SqliteEventLog
from mnemolog.infra.marks import check_mark
from mnemolog.infra.model_loading import embedder_of, extractors_of, reranking_of
from mnemolog.infra.settings import Settings
from mnemolog.infra.stem import default_analyzer
from mnemolog.infra.vault import EnvironmentRootKey, FileRootKey, RootKeyProvider, Vault, open_vault
from mnemolog.infra.vector_folder import LOG_FILE, VectorFolder
from mnemolog.infra.views.lexical import SqliteLexicalIndex
from mnemolog.infra.views.store import SqliteViews
from mnemolog.projections import turns_view
from mnemolog.projections.access import Accessed
from mnemolog.projections.catalog import Catalog
from mnemolog.projections.curated import Curated
from mnemolog.projections.ports import Clock, Ids, Projection
from mnemolog.projections.record_tables import RecordTables
from mnemolog.projections.reranking import Reranker, Reranking
from mnemolog.projections.runner import Runner
from mnemolog.projections.summaries import Summaries
from mnemolog.projections.supervision import Background, Foreground, stop_all
from mnemolog.projections.turn_tables import TurnTables
from mnemolog.projections.turns import Turns
from mnemolog.projections.working import Working

if TYPE_CHECKING:  # they bring numpy or a driver along, which an empty store has no use for
    from mnemolog.infra.postgres.lexical import PostgresLexicalIndex
    from mnemolog.infra.postgres.log import PostgresEventLog
    from mnemolog.infra.postgres.views import PostgresViews
    from mnemolog.projections.embedding import Embedder

    Log = SqliteEventLog | PostgresEventLog
    Views = SqliteViews | PostgresViews

KEYS_FILE: Final = "keys.db"
VIEWS_FOLDER: Final = "views"
BLOBS_FOLDER: Final = "blobs"
ROOT_KEY_FILE: Final = "root.key"
WORKER: Final = "@mnemolog"
_DURABILITY: Final = {"fsync": "full", "os": "os"}
_HEARD: Final = frozenset({PolicyAdopted.topic, *ERASURE})
_PAGE: Final = 500
_REFOLD_SECONDS: Final = 3600.0
__all__ = ["Store", "open_store"]


@dataclass(slots=True)
class Store:
    """One open data directory and everything in it. Shared by all `Memory` views of a process."""

    path: Path
    settings: Settings
    clock: Clock
    ids: Ids
    vault: Vault
    log: Log
    blobs: SealedBlobs
    views: Views
    runner: Runner
    catalog: Catalog
    turns: Turns
    curated: Curated
    tables: TurnTables
    vectors: Vectorising
    summarising: Summarising
    accesses: Accesses
    leadership: Leadership
    extractors: Sequence[Extractor] = (Rules(),)
    policy: Policy = DEFAULT_POLICY
    reranking: Reranking = field(default_factory=lambda: Reranking(None))
    foreground: Foreground = field(default_factory=Foreground)
    position: int = 0
    """How far the log is known to be committed: never too far, for a moment perhaps not far enough."""
    zones: dict[str, tzinfo | None] = field(default_factory=dict)
    erased: int = 0
    """The last erasure that was heard of: no read looks at a view that does not have it."""
    process: int = field(default_factory=os.getpid)
    closed: bool = False
    _heard: tuple[int, int] = (0, -1)
    """How far the log was looked at for what other processes did, and the number that grows with it."""
    _hearing: RLock = field(default_factory=RLock)
    records: RecordTables = field(init=False)
    gate: GateWorkers = field(init=False)

    def __post_init__(self) -> None:
        self.records = RecordTables(self.curated, lambda: self.policy.gate)
        person = partial(self.vault.subject_id, create=False)
        directory = Directory(worker_of(self.vault), self.vault.name, self._zone, person)
        self.gate = GateWorkers(
            self.path, self.log, self.vault, self.ids, self.clock, directory, self.blobs, self.extractors
        )
        self.summarising.clean, self.vectors.hiding = self.gate.masking.text, self.gate.masking

    def check_open(self) -> None:
        """Raise StoreClosed after `close`, and in a forked child."""
        if self.process != os.getpid():
            raise StoreClosed("this process is a fork of the one that opened the memory: open it anew")
        if self.closed:
            raise StoreClosed("this memory was closed: open it anew")

    def enter(self) -> None:
        """What every call does first: raise as `check_open`, and take up what other processes have done."""
        self.check_open()
        self.foreground.touch()
        self.look_around()

    def committed(self, position: int) -> None:
        """The log has committed up to here; called from any thread."""
        self.position = max(self.position, position)

    def look_around(self) -> None:
        """Take up what other processes have done since the last look: keys destroyed, policies, sessions."""
        head, news = self.log.look()
        self.committed(head)
        if news == self._heard[1]:
            self._heard = head, news
            return
        with self._hearing:
            after, known = self._heard
            if known == news:
                return
            self.vault.refresh()
            self.zones.clear()
            self._hear(after)
            self._heard = head, news

    def _hear(self, after: int) -> None:
        while True:
            page = self.log.read(after, _PAGE, topics=_HEARD, bodies=False)
            topics = {recorded.envelope.topic for recorded in page.events}
            if topics & ERASURE:
                self.erased = max(each.position for each in page.events if each.envelope.topic in ERASURE)
                self.forget()
            if PolicyAdopted.topic in topics:
                self.adopt(adopted_policy(self.log) or DEFAULT_POLICY)
            if len(page.events) < _PAGE:
                return
            after = page.position

    def forget(self) -> None:
        """Drop what is kept in memory between questions, as after an erasure."""
        for kept in (self.tables, self.records, self.vectors, self.gate):
            kept.forget()
        self.runner.forget_words()

    def zone_of(self, scope: Scope) -> tzinfo | None:
        """The time zone that the scope's session was opened with, if any."""
        ids = self.vault.resolve(scope, create=False)
        return None if ids is None or ids.session is None else self._zone_of_session(ids.session, None)

    def _zone(self, recorded: Recorded) -> tzinfo | None:
        session = recorded.envelope.scope.session
        return None if session is None else self._zone_of_session(session, recorded.position)

    def _zone_of_session(self, session: str, at_least: int | None) -> tzinfo | None:
        if session not in self.zones:
            with self.runner.read("turns", at_least) as conn:
                found = turns_view.session(conn, session)
            name = found.timezone if found else None
            self.zones[session] = zone_named(name) if name else None
        return self.zones[session]

    def begin(self, background: bool, lead: Callable[[], None]) -> None:
        """Take up the policy, hear of commits, and start the workers: views first, what reads them after.

        lead: called when this process leads, now or later, before its workers start.
        """
        self.log.on_commit(self.committed)
        self._heard = self.log.look()
        self.adopt(adopted_policy(self.log) or DEFAULT_POLICY)
        if self.leadership.leads:
            with suppress(*([StoreUnavailable] if self.settings.workers else [])):  # before the first worker
                lead()
        if background and not self.settings.workers:
            if self.leadership.leads:
                self._start()
            self.leadership.watch(lambda: self._take_over(lead), self._watch)

    def _start(self) -> None:
        for one in self.backgrounds():
            one.start(self.foreground)

    def backgrounds(self) -> Iterator[Background]:
        """What keeps up with the log: the views first, then what is derived."""
        yield self.runner.background
        yield from self.deriving()

    def deriving(self) -> Iterator[Background]:
        """What embeds, summarises and looks for statements and secrets."""
        yield from self.gate.backgrounds
        yield from self.vectors.backgrounds
        yield self.summarising.background

    def _take_over(self, lead: Callable[[], None]) -> None:
        """The process that led is gone."""
        self.runner.open()
        lead()
        self._start()

    def _watch(self) -> None:
        self.look_around()
        self.views.refresh()

    def adopt(self, policy: Policy) -> None:
        """Decide by this policy from here on. What was folded under another one is `refold`ed by who adopts it."""
        self.policy = policy
        self.summarising.rule = policy.summaries
        self.summarising.on = policy.gate.mode == "full"
        self.gate.adopt(policy.gate)
        self.runner.know(self._folded_under(policy))

    def refold(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Rebuild, beside the live ones, the views that the policy decides about; then switch. Workers do so together.

        Raises ProjectionStalled where they do not get done in an hour.
        """
        if self.settings.workers:
            self.runner.await_versions(self._folded_under(self.policy), _REFOLD_SECONDS)
        else:
            self.runner.change(self._folded_under(self.policy), progress)

    def folded(self) -> list[Projection]:
        """Every projection, under the policy that decides now."""
        changed = {projection.name: projection for projection in self._folded_under(self.policy)}
        return [changed.get(projection.name, projection) for projection in self.runner.projections]

    def _folded_under(self, policy: Policy) -> tuple[Projection, ...]:
        return self.curated.under(policy.gate), self.turns.under(policy.gate.masked)

    def close(self) -> None:
        """Stop the workers and let go of the directory. Idempotent; a forked child only lets go."""
        if self.closed or self.process != os.getpid():
            self.closed = True
            return
        self.closed = True
        self.leadership.stop()
        self.runner.background.ask_to_stop()
        stop_all(self.deriving())
        self.vectors.close()
        with suppress(MnemologError, OSError):  # a full disk must not keep the directory locked
            self.gate.places.flush()
            self.accesses.flush()
        self.runner.background.stop()
        self.views.close()
        self.log.close()
        self.vault.close()
        self.leadership.release()


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of the caller's own. embedder, reranker: instead of those of the settings; extractor: beside the rules."""

    clock: Clock | None = None
    ids: Ids | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    extractor: Extractor | None = None


@contextmanager
def open_store(
    path: Path, settings: Settings, *, create: bool = True, own: Parts | None = None, moving: bool = False
) -> Iterator[Store]:
    """Open a data directory, made if missing and `create`.

    moving: also what was moved, or is being moved; else that raises StoreMoved.

    Several processes may have it open; the first one leads. Call `begin` of the store in the block, in which no
    other process comes in. Raises StoreInUse while another process is opening it and does not get done, KeysMissing
    when there are events but not their keys, NotFound for a missing directory with create=False.
    """
    own = own or Parts()
    if not create and not exists(path, settings):
        raise NotFound(f"no memory in {path}: create one with `mnemolog init {path}`")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        leadership = Leadership(path)
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be used: {error.strerror}; choose a folder of yours"
        ) from error
    try:
        with leadership.opening():
            store = _assemble(path, settings, leadership, own, moving)
            store.reranking = reranking_of(settings, own.reranker)
            try:
                yield store
            except BaseException:
                store.close()
                raise
    except BaseException:
        leadership.release()
        raise


def root_key_provider(path: Path, settings: Settings) -> RootKeyProvider:
    """Where the root key comes from: the environment, a file elsewhere, or a file in the data directory."""
    if settings.root_key is not None:
        return EnvironmentRootKey(settings.root_key.get_secret_value())
    return FileRootKey(settings.root_key_file or path / ROOT_KEY_FILE)


def _assemble(path: Path, settings: Settings, leadership: Leadership, own: Parts, moving: bool) -> Store:
    clock, ids = own.clock or SystemClock(), own.ids or UuidV7()
    with ExitStack() as undo:
        vault, log, views = _files(path, settings, clock, undo, sweep=leadership.alone, moving=moving)
        gate = (adopted_policy(log) or DEFAULT_POLICY).gate
        blobs = open_blobs(settings.blobs_url, path / BLOBS_FOLDER, vault)
        catalog, turns, curated = _searched(path, settings, blobs, gate)
        runner = _runner(log, views, [catalog, turns, curated], clock, settings)
        runner.open(build=leadership.leads)
        folder = VectorFolder(path, settings, lambda: leadership.leads)
        vectors = _vectors(log, folder, settings, own.embedder, blobs)
        undo.callback(vectors.close)
        store = Store(
            path=path,
            settings=settings,
            clock=clock,
            ids=ids,
            vault=vault,
            log=log,
            blobs=blobs,
            views=views,
            runner=runner,
            catalog=catalog,
            turns=turns,
            curated=curated,
            tables=TurnTables(turns.index),
            vectors=vectors,
            summarising=_summarising(log, runner, vault, ids, clock, vectors),
            accesses=Accesses(log, vault, ids, clock),
            leadership=leadership,
            extractors=extractors_of(settings, own.extractor),
        )
        undo.pop_all()
        return store


def _database(path: Path, settings: Settings) -> tuple[str, str] | None:
    """Url and schema of the database that has log and views; None where they are files of the data directory."""
    url = settings.database_url
    return None if url is None else (url.get_secret_value(), settings.database_schema)


def exists(path: Path, settings: Settings) -> bool:
    """Whether there is a memory; with a log elsewhere, whether that has events or the directory was one's before."""
    if _database(path, settings) is not None and (path / LOCK_FILE).exists():
        return True
    return _has_log(path, settings)


def _files(
    path: Path, settings: Settings, clock: Clock, undo: ExitStack, *, sweep: bool, moving: bool
) -> tuple[Vault, Log, Views]:
    """Keys, log and views, each let go of by `undo`."""
    vault, log = keys_and_log(path, settings, clock, undo, moving=moving)
    views = _views(path, settings, sweep=sweep)
    undo.callback(views.close)
    return vault, log, views


def keys_and_log(
    path: Path, settings: Settings, clock: Clock, undo: ExitStack, *, moving: bool = False
) -> tuple[Vault, Log]:
    vault = _vault(path, settings)
    undo.callback(vault.close)
    log = _log(path, settings, vault, clock)
    undo.callback(log.close)
    if not moving:
        check_mark(log.stored.mark())
    return vault, log


def _vault(path: Path, settings: Settings) -> Vault:
    """The keys; made where neither they nor a log are there. Keys without a log are a crash between the two."""
    root, fresh = root_key_provider(path, settings), not _has_log(path, settings)
    if settings.keys_url is None:
        file = path / KEYS_FILE
        if settings.database_url is not None and not (fresh or file.exists()):
            raise KeysMissing(
                f"the keys of this log are not in {file}: set MNEMOLOG_KEYS_URL, or restore them"
            )
        return open_vault(file, root, create=fresh and not file.exists())
    from mnemolog.infra.postgres.keys import open_postgres_vault

    schema = f"{settings.database_schema}_keys"
    return open_postgres_vault(settings.keys_url.get_secret_value(), root, create=fresh, schema=schema)


def _has_log(path: Path, settings: Settings) -> bool:
    database = _database(path, settings)
    if database is None:
        return (path / LOG_FILE).exists()
    from mnemolog.infra.postgres.log import has_events

    return has_events(*database)


def _log(path: Path, settings: Settings, vault: Vault, clock: Clock) -> Log:
    durability: Any = _DURABILITY[settings.durability]
    database = _database(path, settings)
    if database is None:
        return SqliteEventLog(path / LOG_FILE, vault, clock, durability=durability)
    from mnemolog.infra.postgres.log import PostgresEventLog

    url, schema = database
    return PostgresEventLog(url, vault, clock, schema=schema, durability=durability)


def _views(path: Path, settings: Settings, *, sweep: bool) -> Views:
    url = settings.views_database
    if url is None:
        return SqliteViews(path / VIEWS_FOLDER, sweep=sweep)
    from mnemolog.infra.postgres.views import PostgresViews

    return PostgresViews(url.get_secret_value(), schema=f"{settings.database_schema}_views")


def _lexical(path: Path, settings: Settings, name: str) -> SqliteLexicalIndex | PostgresLexicalIndex:
    if settings.views_database is None:
        return SqliteLexicalIndex(name)
    from mnemolog.infra.postgres.lexical import PostgresLexicalIndex

    return PostgresLexicalIndex(name)


def _searched(
    path: Path, settings: Settings, blobs: SealedBlobs, gate: GatePolicy
) -> tuple[Catalog, Turns, Curated]:
    """The projections that others read by name, two of them with an index of words."""
    analyzer = default_analyzer()
    lexical = [_lexical(path, settings, name) for name in ("turns_lex", "passages_lex", "records_lex")]
    turns = Turns(lexical[0], lexical[1], analyzer, blobs, gate.masked)
    return Catalog(), turns, Curated(lexical[2], analyzer, gate)


def _runner(log: Log, views: Views, read: list[Projection], clock: Clock, settings: Settings) -> Runner:
    projections = [*read, Summaries(), Working(), Accessed()]
    waits = (lambda: log.stats()["position"]) if settings.workers else None
    parts: dict[str, Any] = {"clock": clock, "batch_size": settings.batch_size}
    return Runner(log, views, projections, **parts, place=partition_of, waits=waits)


def _vectors(
    log: Log, files: VectorFolder, settings: Settings, embedder: Embedder | None, blobs: SealedBlobs
) -> Vectorising:
    made = embedder_of(settings) if embedder is None else lambda: embedder
    files.tidy()
    return Vectorising(log, files, made, exact_up_to=settings.exact_up_to, large=blobs)


def _summarising(
    log: Log, runner: Runner, vault: Vault, ids: Ids, clock: Clock, vectors: Vectorising
) -> Summarising:
    """What no search can find yet stays in its window."""
    return Summarising(log, runner, vault, ids, clock, worker_of(vault), indexed_to=vectors.position)


def worker_of(vault: Vault) -> Callable[[str], str]:
    """The id under which a tenant's directory knows the workers of this package."""

    def actor(tenant: str) -> str:
        ids = vault.resolve(Scope(vault.name(tenant) or tenant, agent=WORKER), create=True)
        assert ids is not None
        assert ids.agent is not None
        return ids.agent

    return actor
