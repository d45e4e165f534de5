"""A PostgreSQL server with fsync, a broker, and roles in processes of their own: as the tests start them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from cluster_world import Deployment
from kafka_world import Kafka
from mnemolog.infra.kafka.cluster import Broker
from mnemolog.infra.postgres.cluster import Cluster

_NUMBERS = count(1)


class Servers:
    """What every deployment of a run has in common."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database, self.broker = Cluster(folder / "postgres"), Broker(folder / "kafka")

    @contextmanager
    def deployment(self, partitions: int = 6, **options: float) -> Iterator[Deployment]:
        """A log, topics and views of its own; what runs on them is ended."""
        number, url = next(_NUMBERS), self.database.up().url
        assert url is not None
        place = self.folder / f"deployment-{number}"
        place.mkdir()
        made = Deployment(place, url, Kafka(self.broker, f"bench{number}"), partitions, f"bench_{number}")
        for name, value in options.items():
            setattr(made, name, value)
        try:
            yield made
        finally:
            made.end()


@contextmanager
def servers() -> Iterator[Servers]:
    """Started, and removed at the end."""
    with TemporaryDirectory(prefix="mnemolog-") as folder:
        Path(folder).chmod(0o755)  # user postgres has to get in
        made = Servers(Path(folder))
        try:
            made.database.up()
            made.broker.up()
            yield made
        finally:
            made.broker.remove()
            made.database.remove()
