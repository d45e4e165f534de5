"""Two machines erase at the same time, each with a directory of its own, in one log, key store and set of views."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from moving_world import in_postgres

from face_world import ACME, dump_hashes, everything, open_memory, rebuilt_hashes
from mnemolog import Memory, Scope
from mnemolog._notes import erasing
from mnemolog.errors import StoreInUse
from mnemolog.infra.settings import Settings
from support import require_module

require_module("psycopg_pool", "pip install 'mnemolog[postgres]'")

pytestmark = [pytest.mark.postgres, pytest.mark.embedded]

PEOPLE = ("ann", "bo", "cy")
STAYS = "fay"
WORD = "zyxwombat"


def scope(name: str) -> Scope:
    return Scope("acme", user=name, project="billing", session=f"s-{name}")


def fill(memory: Memory, name: str) -> str:
    """Five turns and a record; the id of the last turn."""
    for number in range(5):
        turn = memory.record_turn(scope(name), role="user", content=f"{WORD} {name} said {number}")
    memory.remember(scope(name), f"{WORD} {name} likes tea", slot=(name, "drink"))
    return turn.event_id


def plain(settings: Settings) -> dict[str, Any]:
    urls = {name: getattr(settings, name).get_secret_value() for name in ("database_url", "keys_url")}
    more = {"root_key_file": str(settings.root_key_file), "database_schema": settings.database_schema}
    return {**urls, **more, "durability": "os", "embedder": "none"}


def erasing_in(folder: Path, settings: Settings, targets: list[Any], *dies_at: str) -> subprocess.Popen[str]:
    """A process that has planned these erasures, and applies them when it is told to."""
    child = Path(__file__).with_name("erasing_child.py")
    order = [str(folder), json.dumps(plain(settings)), json.dumps(targets), *dies_at]
    process = subprocess.Popen(
        [sys.executable, str(child), *order], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def at_once(machines: list[subprocess.Popen[str]]) -> list[list[dict[str, Any]]]:
    """What each tells of its erasures, all begun at the same time."""
    for machine in machines:
        assert machine.stdin is not None
        machine.stdin.write("go\n")
        machine.stdin.flush()
    told = [machine.communicate(timeout=120)[0].splitlines() for machine in machines]
    assert [machine.returncode for machine in machines] == [0] * len(machines)
    return [[json.loads(line) for line in lines] for lines in told]


@pytest.mark.slow
def test_two_machines_erase_the_same_and_others_at_once(tmp_path: Path, postgres_url: str) -> None:
    """All complete but for the root key; what both erase, one removes and both find gone; neighbours stay."""
    settings = in_postgres(postgres_url, tmp_path / "secure" / "root.key")
    with open_memory(tmp_path / "first", settings=settings) as memory:
        events = {name: fill(memory, name) for name in (*PEOPLE, STAYS)}
        memory.operations.catch_up()
    one = [dict(scope(STAYS).present()), {"event": events[STAYS]}]
    orders = [
        [*([{"tenant": "acme"}, {"subject": name}] for name in names), one]
        for names in (PEOPLE[:2], PEOPLE[:0:-1])
    ]
    folders = [tmp_path / "second", tmp_path / "third"]
    told = at_once(
        [erasing_in(folder, settings, order) for folder, order in zip(folders, orders, strict=True)]
    )
    assert [[one["left"] for one in each] for each in told] == [[["keys"]] * 3] * 2
    # Six events of each of three people and one of somebody else, whoever was first.
    assert sum(one["removed"]["log"] for each in told for one in each) == 6 * 3 + 1
    assert [[one["events"] for one in each] for each in told] == [[6, 6, 1]] * 2
    with open_memory(tmp_path / "first", settings=settings) as memory:
        assert [name for name in PEOPLE if WORD in everything(memory, scope(name), WORD)] == []
        assert sorted(hit.text for hit in memory.recall(scope(STAYS), "said", kinds={"turn"}, k=9)) == [
            f"{WORD} {STAYS} said {number}" for number in range(4)
        ]
        assert dump_hashes(memory) == rebuilt_hashes(memory)
        memory.operations.rotate_root_key()
    for folder in folders:
        with open_memory(folder, settings=settings) as memory:
            assert memory.operations.status().pending_erasures == ()


@pytest.mark.parametrize("step", ["destroying keys", "cleaning vectors", "looking again"])
def test_what_was_cut_off_is_finished_by_another_machine(
    tmp_path: Path, postgres_url: str, step: str
) -> None:
    """The one that began it is killed and never comes back: the next one that is opened goes on, and says so before."""
    settings = in_postgres(postgres_url, tmp_path / "secure" / "root.key")
    with open_memory(tmp_path / "first", settings=settings) as memory:
        fill(memory, "ann")
        fill(memory, STAYS)
        memory.operations.catch_up()
        machine = erasing_in(tmp_path / "lost", settings, [[{"tenant": "acme"}, {"subject": "ann"}]], step)
        assert machine.communicate("go\n", timeout=60)[0] == ""
        assert machine.returncode == -signal.SIGKILL
        (pending,) = memory.operations.status().pending_erasures
        (warning,) = [one for one in memory.operations.status().warnings if pending in one]
        assert "mnemolog erase --resume" in warning
    with open_memory(tmp_path / "next", settings=settings) as memory:
        assert WORD not in everything(memory, scope("ann"), WORD)
        assert len(memory.recall(scope(STAYS), "said", kinds={"turn"}, k=9)) == 5
        assert [each.envelope.clear["erasure"] for each in memory.log(topics={"SubjectErased"})] == [pending]
        (left,) = memory.operations.status().pending_erasures
        assert left == pending  # until the root key is another one
        memory.operations.rotate_root_key()
        assert memory.operations.status().pending_erasures == ()


def test_one_machine_erases_at_a_time(tmp_path: Path, postgres_url: str) -> None:
    """Else each would be in the way of the other's rewriting. Directories without a common log do not wait."""
    settings = in_postgres(postgres_url, tmp_path / "secure" / "root.key")
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with erasing(folders[0], settings):
        with pytest.raises(StoreInUse), erasing(folders[1], settings, 0):
            pass
        with erasing(folders[1], Settings.load(), 0):
            pass
    with open_memory(folders[0], settings=settings) as memory, erasing(folders[1], settings):
        memory.remember(ACME, "while another machine erases, others work")
        assert len(memory.records(ACME)) == 1
