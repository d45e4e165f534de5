"""The examples of the page on Kafka, run against a real broker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_world import Kafka
from served import Served
from support import ROOT


@pytest.mark.slow
def test_the_page_leads_from_topics_to_a_record_in_a_copy(
    kafka: Kafka, serve: Callable[..., Served], tmp_path: Path
) -> None:
    """Topics and a key by command, events by the producer, the record in the topic: as it stands there."""
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    (shell,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    sending, reading = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    address = kafka.environment["MNEMOLOG_KAFKA"]
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    own = {**os.environ, **kafka.environment, "PATH": os.pathsep.join(folders)}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    key = run("sh", "-ec", shell.replace("127.0.0.1:9092", address)).split()[-1]
    roles = [serve(name).ready() for name in ("ingest", "records")]
    setting = f"KEY = {key!r}\nscope = None\n"
    prefix = f", prefix={kafka.prefix!r})"
    sending = sending.replace('"127.0.0.1:9092", key=KEY)', f"{address!r}, key=KEY{prefix}")
    run(sys.executable, "-c", setting + sending)
    roles[0].until(lambda: roles[0].metric("mnemolog_ingest_appended_total") == 2)
    roles[1].until(lambda: roles[1].metric("mnemolog_records_sent_total") == 1)
    assert all(role.terminate() == 0 for role in roles)
    scope = sending[: sending.index("with IngestProducer")]
    said = run(sys.executable, "-c", scope + reading.replace('"127.0.0.1:9092")', f"{address!r}{prefix}"))
    assert "Reports go out as PDF." in said
