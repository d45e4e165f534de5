"""A PostgreSQL server of one's own on 127.0.0.1: for tests, and for developers without Docker."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mnemolog.domain.errors import StoreUnavailable

HOW_TO_INSTALL: Final = "apt-get install postgresql"
_USER: Final = "postgres"
_HOST: Final = "127.0.0.1"
_READY_SECONDS: Final = 30
_STALE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What runs: pid and port of the server, and the url of its database; None where it does not run."""

    folder: Path
    pid: int | None
    port: int | None
    url: str | None


class Cluster:
    """One server in `folder`, which is made with a first `up`. Trust authentication: never beyond this machine.

    As root it runs as user postgres, who must be able to enter the parents of `folder`.
    fsync: False is for tests: a killed server loses nothing, a power cut may damage all.
    """

    def __init__(self, folder: Path, port: int | None = None, *, fsync: bool = True) -> None:
        self.folder, self._port, self._fsync = Path(folder).absolute(), port, fsync
        self._data = self.folder / "data"

    def up(self) -> ClusterState:
        """Start the server, unless it runs; when this returns it answers. Raises StoreUnavailable."""
        state = self.status()
        if state.pid is not None:
            return state
        programs = bin_folder()
        if programs is None:
            raise StoreUnavailable(f"no PostgreSQL server is installed: {HOW_TO_INSTALL}")
        if not (self._data / "PG_VERSION").exists():
            self._initialise(programs)
        # The listening sockets of a killed server, and its memory, may outlive it for a moment.
        deadline = time.monotonic() + _STALE_SECONDS
        while not self._start(programs):
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"the server did not start: see {self.folder / 'log'}")
            time.sleep(0.1)
        return self.status()

    def down(self) -> None:
        """Stop the server, if it runs: connections are ended, what was acknowledged is kept."""
        programs = bin_folder()
        if self.status().pid is not None and programs is not None:
            self._run(programs / "pg_ctl", "-D", self._data, "-m", "fast", "-w", "stop")

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL)."""
        pid = self.status().pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            while _is_running(pid):
                time.sleep(0.01)

    def remove(self) -> None:
        """Stop the server and delete everything of it."""
        self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def status(self) -> ClusterState:
        """What runs now."""
        try:
            lines = (self._data / "postmaster.pid").read_text().split("\n")
            pid, port = int(lines[0]), int(lines[3])
        except (OSError, ValueError, IndexError):
            return ClusterState(self.folder, None, None, None)
        if not _is_running(pid):
            return ClusterState(self.folder, None, None, None)
        return ClusterState(self.folder, pid, port, f"postgresql://{_USER}@{_HOST}:{port}/{_USER}")

    def _initialise(self, programs: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(self.folder, _USER, _USER)
        encoding = ("-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        if not self._run(programs / "initdb", "-D", self._data, "-A", "trust", "-U", _USER, *encoding):
            raise StoreUnavailable(
                f"initdb failed: see {self.folder / 'setup.log'}; user {_USER} must be able to enter the folder"
                if os.geteuid() == 0
                else f"initdb failed: see {self.folder / 'setup.log'}"
            )

    def _start(self, programs: Path) -> bool:
        # The port stays, so that clients find the server again.
        self._port = self._port or self._port_before() or _free_port()
        settings = {
            "listen_addresses": _HOST,
            "port": self._port,
            "unix_socket_directories": "''",
            "fsync": "on" if self._fsync else "off",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        arguments = ("-D", self._data, "-w", "-t", _READY_SECONDS, "-l", self.folder / "log", "-o", options)
        return self._run(programs / "pg_ctl", *arguments, "start")

    def _port_before(self) -> int | None:
        with suppress(OSError):
            found = re.search(r"\bport=(\d+)", (self._data / "postmaster.opts").read_text())
            return int(found[1]) if found else None
        return None

    def _run(self, *command: object) -> bool:
        words = [str(word) for word in command]
        if os.geteuid() == 0:
            words = ["runuser", "-u", _USER, "--", *words]
        # The server inherits the descriptors: a pipe for its output would never be closed.
        with (self.folder / "setup.log").open("ab") as output:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", check=False
            )
        return done.returncode == 0


def bin_folder() -> Path | None:
    """Where the programs of the newest server on this machine are; None where there is none."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _version(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdigit() else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        # One that was killed and not yet waited for is no server any more.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not Path("/proc/self/stat").exists()
