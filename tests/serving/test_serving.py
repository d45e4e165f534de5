"""What every role of `mnemolog serve` does: it drains on a signal, answers how it is, and waits for its stores."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from face_world import U1, open_memory
from mnemolog.errors import InvalidInput, StoreUnavailable
from mnemolog.infra.locks import FileLock
from mnemolog.infra.roles import ROLES, opening
from mnemolog.infra.serving import Metric, Serving, exposition
from mnemolog.infra.serving import serve as run_role
from mnemolog.infra.settings import Settings
from served import Served

Serve = Callable[..., Served]


@pytest.fixture(autouse=True)
def a_turn(tmp_path: Path) -> None:
    with open_memory(tmp_path / "data") as memory:
        memory.record_turn(U1, role="user", content="The invoices are due on Friday.")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(serve: Serve, number: signal.Signals) -> None:
    """SIGTERM and SIGINT let a role finish and end with exit code 0."""
    served = serve().ready()
    assert served.terminate(number) == 0, served.said
    assert served.said.split("\n")[:-1] == [
        f"projections: {what}" for what in ("working", "draining", "done")
    ]


def test_the_page_says_how_it_is(serve: Serve) -> None:
    """Health, readiness and metrics are on the port that was asked for, and nothing else is."""
    served = serve().ready()
    assert served.get("/healthz") == (200, "running\n")
    assert served.get("/turns")[0] == 404
    assert served.metric("mnemolog_log_head") == 1
    served.until(lambda: served.metric('mnemolog_projection_lag{projection="turns"}') == 0)
    assert served.metric("process_cpu_seconds_total") > 0


def test_it_waits_for_a_store_that_is_in_use(tmp_path: Path, serve: Serve) -> None:
    """A role whose store cannot be opened yet is healthy, not ready, and ends as soon as it is told to."""
    lock = FileLock(tmp_path / "data" / "opening.lock")
    assert lock.take()
    first, second = serve(), serve()
    first.until(lambda: first.get("/healthz") == (200, "opening\n"))
    second.until(lambda: second.get("/readyz") == (503, "opening\n"))
    assert first.terminate() == 0
    lock.release()
    assert second.ready().terminate() == 0


class Waiting:
    """A role that lets the test say how it is."""

    name = "waiting"

    def __init__(self) -> None:
        self.is_ready, self.closed = True, False

    def run(self, stop: Event) -> None:
        assert stop.wait(30)

    def ready(self) -> bool:
        return self.is_ready

    def trouble(self) -> str | None:
        return None

    def metrics(self) -> list[Metric]:
        return [Metric("mnemolog_waits", "How often.", 3, {"part": "a"}, "counter")]


@contextmanager
def kept(role: Waiting) -> Iterator[Waiting]:
    try:
        yield role
    finally:
        role.closed = True


def test_a_store_that_is_away_is_tried_again() -> None:
    """A role is opened as soon as its stores are there, and closed at the end; that it waits is told once."""
    role, said, tries = Waiting(), [], iter([StoreUnavailable("away"), StoreUnavailable("away"), None])

    def open_it():  # type: ignore[no-untyped-def]
        if (error := next(tries)) is not None:
            raise error
        return kept(role)

    def say(text: str) -> None:
        said.append(text)
        if text == "waiting: working":
            Thread(target=signal.raise_signal, args=(signal.SIGTERM,)).start()

    run_role("waiting", open_it, say=say)
    waits = "waiting: waiting, it goes on trying: away"
    assert said == [waits, "waiting: working", "waiting: draining", "waiting: done"]
    assert role.closed


def test_what_a_server_that_is_away_would_tell_hides_no_other_metric() -> None:
    """An outage is when they are wanted most."""

    class Cut(Waiting):
        def metrics(self) -> Iterator[Metric]:  # type: ignore[override]
            yield from super().metrics()
            raise StoreUnavailable("away")

    serving = Serving("waiting")
    serving.role = Cut()
    assert [metric.name for metric in serving.metrics()] == ["mnemolog_ready", "mnemolog_waits"]


def test_metrics_in_the_format_of_prometheus() -> None:
    """Each metric has its help, its kind, and its samples by label, with label values escaped."""
    metrics = [*Waiting().metrics(), Metric("mnemolog_waits", "How often.", 4, {"part": 'b"\n'}, "counter")]
    text = exposition([*metrics, Metric("mnemolog_place", "Where.", 7)])
    assert "# TYPE mnemolog_waits_total counter" in text
    assert 'mnemolog_waits_total{part="a"} 3.0' in text
    assert r'mnemolog_waits_total{part="b\"\n"} 4.0' in text
    assert "# TYPE mnemolog_place gauge\nmnemolog_place 7.0" in text


def test_an_unknown_role_is_refused() -> None:
    """The error of a role that there is not names those that there are."""
    with pytest.raises(InvalidInput, match="projections"):
        opening("projectors", Settings.load())


@pytest.mark.parametrize("name", ROLES)
def test_every_role_can_be_imported(name: str) -> None:
    """Each role of the register is where the register says."""
    assert callable(opening(name, Settings.load()))


def test_it_runs_the_gate_and_says_how_far_that_is(tmp_path: Path, serve: Serve) -> None:
    """What was said is looked at by itself: statements become candidates, and what must be hidden is found."""
    with open_memory(tmp_path / "data") as memory:
        memory.record_turn(U1, role="user", content="I prefer green tea.")
        memory.record_turn(U1, role="user", content="Write to min@example.com.")
    served = serve().ready()
    for worker in ("findings", "extraction"):
        position, lag = (
            f'mnemolog_projection_{what}{{projection="{worker}"}}' for what in ("position", "lag")
        )
        served.until(lambda at=position, lag=lag: served.metric(at) >= 3 and served.metric(lag) == 0)  # type: ignore[misc]
    assert served.terminate() == 0, served.said
    with open_memory(tmp_path / "data") as memory:
        assert {"CandidatesExtracted", "SensitiveFound"} <= memory.operations.status().counts.keys()
