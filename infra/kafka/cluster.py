"""A Kafka broker of one's own on 127.0.0.1: for tests, and for developers without Docker.

One node (KRaft) that runs from jars, which Maven fetches once into the user's cache.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mnemolog.domain.errors import StoreUnavailable

VERSION: Final = "4.3.1"
HOW_TO_INSTALL: Final = "apt-get install default-jre-headless maven"
_HOST: Final = "127.0.0.1"
_READY_SECONDS: Final = 90.0
_STOP_SECONDS: Final = 20.0
_STARTED: Final = b"Kafka Server started"
_JVM: Final = (
    "-Xms128m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxDirectMemorySize=128m",
    "-Djava.net.preferIPv4Stack=true",
)
_POM: Final = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>mnemolog</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
# Short times throughout: a killed broker is back in seconds, and the cleaner runs while a test waits.
_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
log.cleaner.backoff.ms=1000
log.cleaner.dedupe.buffer.size=8388608
log.retention.check.interval.ms=2000
log.initial.task.delay.ms=1000
log.segment.delete.delay.ms=1000
num.network.threads=2
num.io.threads=4
"""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What runs: the pid of the broker and its address, host:port; None where it does not run."""

    folder: Path
    pid: int | None
    address: str | None


class Broker:
    """One broker in `folder`, which is made with a first `up`. No authentication: never beyond this machine."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder, self._port = Path(folder).absolute(), port
        self.data = self.folder / "data"
        self._properties, self._pid_file = self.folder / "server.properties", self.folder / "broker.pid"
        self._log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def up(self) -> BrokerState:
        """Start the broker, unless it runs; when this returns it answers. Raises StoreUnavailable."""
        state = self.status()
        if state.pid is not None:
            return state
        jars = jars_folder()
        if not self._properties.exists():
            self._format(jars)
        seen = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                _java(jars, "kafka.Kafka", self._properties),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
            )
        self._pid_file.write_text(f"{self._process.pid}\n")
        self._wait_until_ready(seen)
        return self.status()

    def down(self) -> None:
        """Stop the broker, if it runs, as it likes to be stopped; kill it where that takes too long."""
        self._end(signal.SIGTERM, _STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL)."""
        self._end(signal.SIGKILL, _STOP_SECONDS)

    def remove(self) -> None:
        """Stop the broker and delete everything of it."""
        self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def status(self) -> BrokerState:
        """What runs now."""
        pid = self._pid()
        return BrokerState(self.folder, pid, None if pid is None else f"{_HOST}:{self._listening_port()}")

    def _pid(self) -> int | None:
        if self._process is not None:
            if self._process.poll() is None:
                return self._process.pid
            self._process = None
        try:
            pid = int(self._pid_file.read_text())
            # The number may be another program's by now.
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self._properties) in words else None

    def _listening_port(self) -> int:
        found = next(line for line in self._properties.read_text().splitlines() if line.startswith("advert"))
        return int(found.rpartition(":")[2])

    def _format(self, jars: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        port, controller = self._port or _free_port(), _free_port()
        text = _PROPERTIES.format(host=_HOST, port=port, controller=controller, data=self.data)
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        new = self._properties.with_suffix(".new")
        new.write_text(text)
        with (self.folder / "setup.log").open("ab") as output:
            # An id may begin with "-", which must not look like an option.
            command = _java(jars, "kafka.tools.StorageTool", "format", f"--cluster-id={name}", "-c", new)
            done = subprocess.run(command, stdout=output, stderr=output, cwd=self.folder, check=False)
        if done.returncode:
            raise StoreUnavailable(f"the broker could not be set up: see {self.folder / 'setup.log'}")
        new.rename(self._properties)

    def _wait_until_ready(self, seen: int) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and self._pid() is not None:
            with self._log.open("rb") as log:
                log.seek(seen)
                if _STARTED in log.read() and _answers(self._listening_port()):
                    return
            time.sleep(0.05)
        self.kill()
        raise StoreUnavailable(f"the broker did not start: see {self._log}")

    def _end(self, how: signal.Signals, patience: float) -> None:
        pid, deadline = self._pid(), time.monotonic() + patience
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        while self._pid() is not None and time.monotonic() < deadline:
            time.sleep(0.02)


def is_installed() -> bool:
    """Whether a broker can be run here: Java, and Maven or the jars."""
    return shutil.which("java") is not None and (
        shutil.which("mvn") is not None or _complete(_cache_folder())
    )


def jars_folder() -> Path:
    """Where the broker's jars are; fetched at the first call. Raises StoreUnavailable."""
    folder = _cache_folder()
    if _complete(folder):
        return folder
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise StoreUnavailable(f"no Java or no Maven is installed: {HOW_TO_INSTALL}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        (Path(work) / "pom.xml").write_text(_POM)
        copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libs")
        done = subprocess.run(
            [maven, "-B", "-q", *copy], cwd=work, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StoreUnavailable(
                f"Maven could not fetch the broker: {done.stdout[-500:]}{done.stderr[-500:]}"
            )
        with suppress(OSError):  # another process was quicker
            (Path(work) / "libs").rename(folder)
    return folder


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mnemolog" / f"kafka-{VERSION}"


def _complete(folder: Path) -> bool:
    return (folder / f"kafka_2.13-{VERSION}.jar").exists()


def _java(jars: Path, main: str, *arguments: object) -> list[str]:
    return ["java", *_JVM, "-cp", f"{jars}/*", main, *map(str, arguments)]


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
