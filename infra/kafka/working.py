"""A worker of the events topic on Faust: it brings messages to a `consumers.workers.Worker`, and that is all.

Kafka's own offsets decide nothing here: where a partition goes on is asked from the worker, which has it from its
checkpoints. Faust acknowledges what an agent took even where it failed; so nothing fails here, and what could not be
folded is read from the log.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mnemolog.consumers.messages import EventMessage
from mnemolog.consumers.workers import Delivery, Worker
from mnemolog.domain.errors import CorruptStore, StoreUnavailable
from mnemolog.projections.supervision import Supervisor

if TYPE_CHECKING:
    import faust

T = TypeVar("T")
BATCH: Final = 1000
"""Messages that are taken together."""
WITHIN: Final = 0.2
"""Seconds that a batch may gather."""
_TICK: Final = 0.2
_STOP_SECONDS: Final = 20.0
SESSION_SECONDS: Final = 30.0
"""How long a worker may be silent before its partitions are given to others."""


class FaustWorker:
    """Runs Faust in the thread of `run`, again and again, until it is told to stop.

    folder: where Faust may keep what it wants; it is made, and stays empty.
    rebalances: how often partitions were dealt out.
    """

    def __init__(
        self,
        worker: Worker,
        connection: Mapping[str, Any],
        topic: str,
        group: str,
        folder: Path,
        *,
        session_seconds: float = SESSION_SECONDS,
    ) -> None:
        self.worker, self._connection, self._topic, self._group = worker, connection, topic, group
        self._folder, self._session_seconds = folder, session_seconds
        self.supervisor = Supervisor(0.5, 10.0)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mnemolog-fold")
        self.rebalances = 0
        self.joined = False

    def run(self, stop: Event) -> None:
        """Fold until `stop` is set; the batch under way is finished."""
        logging.getLogger("faust").setLevel(logging.CRITICAL)
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        while not stop.is_set():
            try:
                asyncio.run(self._serve(stop))
                self.supervisor.worked()
            except Exception as error:
                self.supervisor.crashed(error)
                stop.wait(self.supervisor.delay)
            finally:
                self.joined = False
        self._thread.shutdown()

    async def _serve(self, stop: Event) -> None:
        """One App, which cannot be started twice, from its start to its end or its crash."""
        app = self._app()
        try:
            await app.start()
            while not stop.is_set():
                if app.crash_reason is not None:
                    raise StoreUnavailable("the Kafka client has crashed") from app.crash_reason
                more = await self._folding(self.worker.tick)
                if self.joined:
                    self.supervisor.worked()
                if not more:
                    await asyncio.sleep(_TICK)
        finally:
            with suppress(Exception):
                await asyncio.wait_for(app.stop(), _STOP_SECONDS)

    async def _folding(self, work: Callable[..., T], *arguments: Any) -> T:
        """In the one thread that folds, so that heartbeats go on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _app(self) -> faust.App:
        import faust

        app = faust.App(
            self._group,
            broker=[f"kafka://{server}" for server in self._connection["bootstrap_servers"]],
            broker_credentials=_credentials(self._connection),
            broker_session_timeout=self._session_seconds,
            broker_heartbeat_interval=self._session_seconds / 5,
            broker_commit_interval=2.8,
            broker_request_timeout=90.0,
            consumer_auto_offset_reset="earliest",
            # How soon partitions that were added are seen; until then nobody folds them.
            consumer_metadata_max_age_ms=5000,
            topic_disable_leader=True,
            topic_allow_declare=False,
            web_enabled=False,
            datadir=str(self._folder),
            stream_wait_empty=False,
            key_serializer="raw",
            value_serializer="raw",
            loghandlers=[],
        )
        app.transport = _transport(app, self._begins)
        app.on_partitions_assigned.connect(self._dealt)
        topic = app.topic(
            self._topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )
        app.agent(topic, name=f"{self._group}-fold", concurrency=1)(self._agent)
        return app

    async def _agent(self, stream: Any) -> None:
        """While one batch is folded, which waits for the database, the next is taken."""
        folding: Awaitable[None] | None = None
        async for events in stream.take_events(BATCH, within=WITHIN):
            batches: dict[int, list[Delivery]] = {}
            for event in events:
                message = event.message
                # What is no message of ours leaves a gap, which is read from the log.
                with suppress(CorruptStore):
                    delivery = Delivery(message.offset, EventMessage.decode(message.value or b""))
                    batches.setdefault(message.partition, []).append(delivery)
            if folding is not None:
                await folding
            folding = asyncio.ensure_future(self._folding(self.worker.deliver, batches))

    async def _begins(self, dealt: Callable[[], Sequence[int]]) -> Mapping[int, int | None]:
        """Partitions were dealt to this worker; where each goes on.

        dealt: which are this worker's now. Faust also asks while an earlier question waits for the database: that one
        must not come back later with what was dealt before.
        """
        self.rebalances += 1
        while True:
            try:
                begins = await self._folding(self._assigned, dealt())
            except Exception as error:  # the database is away: nothing can be folded before it is back
                self.supervisor.crashed(error)
                await asyncio.sleep(self.supervisor.delay)
                continue
            self.joined = True
            return begins

    async def _dealt(self, app: Any, /, *assigned: Collection[Any], **_: Any) -> None:
        """Where there are more workers than partitions, this one stands by; nobody asks it where to go on."""
        if not any(assigned):
            await self._folding(self.worker.assign, ())
            self.joined = True

    def _assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        self.worker.assign(partitions)
        return self.worker.begins()


async def _rest(begun: Any, waited: Any) -> Any:
    """What is left of a coroutine that has begun, and waits for something."""
    return await _going_on(begun, waited)


@coroutine
def _going_on(begun: Any, waited: Any) -> Generator[Any, Any, Any]:
    while True:
        try:
            try:
                sent = yield waited
            except BaseException as error:
                waited = begun.throw(error)
            else:
                waited = begun.send(sent)
        except StopIteration as ended:
            return ended.value


Begins = Callable[[Callable[[], Sequence[int]]], Awaitable[Mapping[int, int | None]]]


def _transport(app: faust.App, begins: Begins) -> Any:
    """Faust's own, whose consumer goes on where the worker says and not where Kafka remembers."""
    from faust.transport.drivers import aiokafka
    from mode.services import WaitResults

    class Consumer(aiokafka.Consumer):
        async def wait_first(self, *waits: Any, timeout: Any = None) -> Any:
            """As of Faust, which makes four tasks for each message: one that has not to wait needs none."""
            if len(waits) == 2 and all(map(asyncio.iscoroutine, waits)) and not self.suspend_flow.is_set():
                begun, other = waits
                try:
                    waited = begun.send(None)
                except StopIteration as ended:
                    other.close()
                    return WaitResults([begun], [ended.value], False)
                waits = _rest(begun, waited), other
            return await super().wait_first(*waits, timeout=timeout)

        async def seek_to_committed(self) -> Mapping[Any, int]:
            wanted = await begins(lambda: sorted(tp.partition for tp in self.assignment()))
            mine = {tp.partition: tp for tp in self.assignment() if tp.partition in wanted}
            if not mine:
                return {}
            parts = list(mine.values())
            first, last = await self.earliest_offsets(*parts), await self.highwaters(*parts)
            asked = {tp: last[tp] if (at := wanted[one]) is None else at for one, tp in mine.items()}
            # A topic that was made anew has fewer messages than we remember: begin with its first.
            places = {tp: at if first[tp] <= at <= last[tp] else first[tp] for tp, at in asked.items()}
            await self.seek_wait(places)
            return places

    class Transport(aiokafka.Transport):
        pass

    Transport.Consumer = Consumer
    return Transport(app.conf.broker, app, loop=app.loop)


def _credentials(connection: Mapping[str, Any]) -> Any:
    """What the client's options say of security, as Faust wants it."""
    import faust

    security = connection["security_protocol"]
    if security == "PLAINTEXT":
        return None
    context = ssl.create_default_context(cafile=connection.get("ssl_cafile")) if "SSL" in security else None
    if security == "SSL":
        return faust.SSLCredentials(context)
    return faust.SASLCredentials(
        username=connection["sasl_plain_username"],
        password=connection["sasl_plain_password"],
        mechanism=connection["sasl_mechanism"],
        ssl_context=context,
    )
