"""One process for one role: signals that drain it, and a page on 127.0.0.1 that says how it is.

A role is opened, run until SIGTERM or SIGINT, and closed. A second signal ends the process at once: whatever a role
does must stand that, as it must stand kill -9.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, Protocol

from mnemolog.domain.errors import MnemologError, StoreInUse, StoreUnavailable
from mnemolog.infra.reaching import Server, Watch
from mnemolog.projections.supervision import Supervisor

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_BACKOFF: Final = (0.5, 30.0)
_BATCHES: Final = 50_000
"""New objects after which garbage is looked for; an event of a batch is about twenty."""
_PATIENCE: Final = 2.0
"""Seconds for which a role may think about whether it is ready."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, as it is now. A counter only grows.

    labels: few values, known beforehand (a view, a partition); never an id or a text.
    """

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["gauge", "counter"] = "gauge"


class Role(Protocol):
    """What one process does. `run` has the main thread; the others are called from any thread."""

    @property
    def name(self) -> str: ...

    def run(self, stop: Event) -> None:
        """Work until `stop` is set, then finish the batch, flush, and return. What it raises ends the process."""

    def ready(self) -> bool:
        """Whether it does its work now, or stands by to take it over."""

    def trouble(self) -> str | None:
        """What keeps it from its work just now, as class and place; None while it works. Asks no server."""

    def metrics(self) -> Iterable[Metric]:
        """What to watch; what only a server can tell comes last, as it may raise while that is away."""


Opening = Callable[[], AbstractContextManager[Role]]
"""Opens the role's stores and connections; they are closed, and what is left is flushed, at the end."""


class Serving:
    """One role, from the start of its process to its end, as seen from outside."""

    def __init__(self, name: str) -> None:
        self.name, self.stop = name, Event()
        self.role: Role | None = None
        self.opening = False
        self._asking = Lock()
        self.watch: Watch | None = None

    @property
    def phase(self) -> str:
        """opening, running, or draining; known without asking anybody."""
        if self.stop.is_set():
            return "draining"
        return "opening" if self.role is None else "running"

    @property
    def state(self) -> str:
        """opening, working, not ready, or draining. A role that does not say in time is not ready.

        Nor is one whose servers are away: it may have nothing to do, and not notice.
        """
        if self.role is None or self.phase != "running":
            return self.phase
        if self.watch is not None and self.watch.away:
            return "not ready"
        return "working" if self._within(_PATIENCE, self.role.ready) else "not ready"

    def _within(self, seconds: float, ask: Callable[[], bool]) -> bool:
        """Whether it says yes within so many seconds. One thread at most waits for an answer that does not come."""
        answers = SimpleQueue[bool]()

        def answer() -> None:
            with self._asking, suppress(MnemologError):
                answers.put(ask())

        if not self._asking.acquire(timeout=seconds):
            return False
        self._asking.release()
        Thread(target=answer, name="mnemolog-ready", daemon=True).start()
        with suppress(Empty):
            return answers.get(timeout=seconds)
        return False

    def metrics(self) -> list[Metric]:
        """The role's, and whether it is ready; without those that a server which is away would have to tell."""
        role, labels = self.role, {"role": self.name}
        ready = Metric("mnemolog_ready", "1 while the role does its work.", self.state == "working", labels)
        found = [ready]
        with suppress(MnemologError):
            for metric in () if role is None else role.metrics():
                found.append(metric)
        return found


def serve(
    name: str,
    opening: Opening,
    *,
    health_port: int = 0,
    say: Callable[[str], None],
    servers: Sequence[Server] = (),
) -> None:
    """Run a role until it is told to stop; returns when it has drained.

    While its stores are away or in use at the start, it waits for them. health_port: 0 for no page.
    say: is told, in one line each, what begins and what it waits for, and when one of the servers is away, and back.
    """
    serving = Serving(name)
    with _told_by_signals(serving), _page(serving, health_port):
        with ExitStack() as opened:
            _enter(serving, opened, opening, say)
            if serving.role is not None:
                say(f"{name}: working")
                with _collecting_seldom(), _watching(serving, serving.role, servers, say):
                    serving.role.run(serving.stop)
                say(f"{name}: draining")
        say(f"{name}: done")


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """What was opened stays, and what belongs to a batch lives to its end: to look through it all is lost work."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(before[0], _BATCHES), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _enter(serving: Serving, opened: ExitStack, opening: Opening, say: Callable[[str], None]) -> None:
    """Open the role as soon as its stores are there; a signal interrupts that, however long it takes."""
    patience, told = Supervisor(*_BACKOFF), ""
    serving.opening = True
    try:
        while serving.role is None and not serving.stop.wait(patience.delay):
            try:
                serving.role = opened.enter_context(opening())
            except (StoreUnavailable, StoreInUse) as error:
                patience.crashed(error)
                if str(error) != told:  # once, not at each try
                    told = str(error)
                    say(f"{serving.name}: waiting, it goes on trying: {told}")
    except _Interrupted:
        pass
    finally:
        serving.opening = False


@contextmanager
def _watching(
    serving: Serving, role: Role, servers: Sequence[Server], say: Callable[[str], None]
) -> Iterator[None]:
    """Look meanwhile, in a thread, whether the role does its work and its servers are there."""
    watch, ended = Watch(serving.name, servers, role.trouble, say), Event()
    serving.watch = watch
    thread = Thread(target=watch.run, args=(ended,), name="mnemolog-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


# Signals --------------------------------------------------------------------------------------------------------


class _Interrupted(BaseException):
    """Raised in the main thread by a signal while the role is being opened."""


@contextmanager
def _told_by_signals(serving: Serving) -> Iterator[None]:
    """The first signal sets `stop`, the second ends the process.

    A thread does so, as a handler in the main thread could find the lock of the event held, or come late.
    """

    def interrupt(*_: object) -> None:
        if serving.opening:
            raise _Interrupted

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    earlier = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    thread = Thread(target=_listen, args=(reader, serving.stop), name="mnemolog-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier)
        for number, handler in before.items():
            signal.signal(number, handler)
        writer.close()
        thread.join()
        reader.close()


def _listen(reader: socket.socket, stop: Event) -> None:
    while received := reader.recv(1):
        if received[0] in _SIGNALS:
            if stop.is_set():
                os._exit(128 + received[0])
            stop.set()


# The page -------------------------------------------------------------------------------------------------------


@contextmanager
def _page(serving: Serving, port: int) -> Iterator[None]:
    """`/healthz`, `/readyz` and `/metrics` on 127.0.0.1. Raises StoreInUse where the port is taken."""
    if not port:
        yield
        return
    try:
        server = _Server(serving, port)
    except OSError as error:
        raise StoreInUse(f"port {port} cannot be used ({error.strerror}): choose another one") from None
    thread = Thread(target=server.serve_forever, args=(0.05,), name="mnemolog-health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, serving: Serving, port: int) -> None:
        self.serving = serving
        super().__init__(("127.0.0.1", port), _Page)


class _Page(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, self.server.serving.phase)
        elif self.path == "/readyz":
            state = self.server.serving.state
            self._answer(200 if state == "working" else 503, state)
        elif self.path == "/metrics":
            self._answer(200, exposition(self.server.serving.metrics()))
        else:
            self._answer(404, "there are /healthz, /readyz and /metrics")

    def _answer(self, code: int, text: str) -> None:
        body = text.encode() + b"\n" * (not text.endswith("\n"))
        with suppress(OSError):
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Whoever asks every second need not be in the log."""


def exposition(metrics: Iterable[Metric]) -> str:
    """The metrics, and those of the process, in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for metric in metrics:
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        labels = sorted(metric.labels)
        family = families.setdefault(metric.name, kind(metric.name, metric.help, labels=labels))
        family.add_metric([metric.labels[label] for label in labels], metric.value)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Families(list(families.values())))
    return generate_latest(registry).decode()


class _Families:
    """What prometheus-client collects from."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        return self._families
