"""Several processes on one data directory: one leads, all append and read, and the next takes over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from peers import Peer, eventually

from embedding_fakes import WordHashes
from face_world import U1, U2, VIEWS, contents, dump_hashes, files_with, open_memory, rebuilt_hashes, texts
from mnemolog import Memory
from mnemolog.errors import StoreInUse
from mnemolog.infra.policies import DEFAULT_DOCUMENT
from mnemolog.projections.working import Working

Start = Callable[..., Peer]


def follower(path: Path, **options: object) -> Memory:
    return open_memory(path, embedder=WordHashes(), **options)


def test_all_write_and_all_read_at_once(tmp_path: Path, start: Start) -> None:
    """What one process has written is in the next read of every other one, in both directions."""
    leader = start()
    with follower(tmp_path / "data") as memory:
        assert (leader.leads, memory.operations.status().leads) == (True, False)
        for n in range(3):
            leader.ask(f"memory.remember(U1, 'the leader notes {n}').event_id")
            assert contents(memory, U1)[-1] == f"the leader notes {n}"
            memory.remember(U1, f"따르는 쪽이 적는다 {n}")
            assert leader.ask("contents(memory, U1)")[-1] == f"따르는 쪽이 적는다 {n}"
        leader.ask("memory.operations.embed()")
        assert texts(memory, U1, "노트 leader") == leader.ask("texts(memory, U1, '노트 leader')")
        assert memory.operations.verify_log() == len(list(memory.log(limit=100)))


def test_a_supersession_holds_across_processes(tmp_path: Path, start: Start) -> None:
    """A slot that two processes write in turn has one current value everywhere; a stale version is refused."""
    leader = start()
    with follower(tmp_path / "data") as memory:
        first = memory.remember(U1, "Reports go out as PDF", slot=("report", "format"))
        leader.ask("memory.remember(U1, 'Reports go out as Excel', slot=('report', 'format')).event_id")
        assert contents(memory, U1) == leader.ask("contents(memory, U1)") == ["Reports go out as Excel"]
        correct = (
            f"memory.correct(U1, {first.record_id!r}, 'never', reason='x', expected_version=%d).event_id"
        )
        leader.ask(correct % 1)
        with pytest.raises(RuntimeError, match="VersionConflict"):
            leader.ask(correct % 1)


def test_the_next_one_takes_over_when_the_leader_is_killed(tmp_path: Path, start: Start) -> None:
    """Within seconds of kill -9 another process leads: views, vectors and index go on, nothing is lost."""
    leader = start()
    memory = follower(tmp_path / "data", background=True)
    for n in range(20):
        leader.ask(f"memory.record_turn(U1, role='user', content='message {n} 안녕하세요').event_id")
    assert not memory.operations.status().leads
    leader.begin("memory.operations.rebuild('turns')")
    leader.kill()
    memory.record_turn(U1, role="user", content="said while nobody leads")
    eventually(lambda: memory.operations.status().leads, 10)
    assert memory.operations.status().leader == os.getpid()
    eventually(lambda: all(view.lag == 0 for view in memory.operations.vectors()))
    assert len(list(memory.log(limit=100))) == 21
    live = dump_hashes(memory)
    assert rebuilt_hashes(memory) == live
    memory.close()


def test_a_follower_without_threads_never_leads(tmp_path: Path, start: Start) -> None:
    """One that was opened for a moment leaves the lead to those who stay."""
    leader = start()
    with follower(tmp_path / "data") as memory:
        leader.kill()
        memory.remember(U1, "nobody leads and all is well")
        assert contents(memory, U1) == ["nobody leads and all is well"]
        assert not memory.operations.status().leads
        assert start().leads
    assert contents(follower(tmp_path / "data"), U1) == ["nobody leads and all is well"]


@pytest.mark.slow
def test_an_erasure_reaches_the_other_processes(tmp_path: Path, start: Start) -> None:
    """A follower erases a person: the leader's memory, keys, vectors and index forget it, and no byte is left."""
    leader = start()
    for n in range(8):
        leader.ask(f"memory.record_turn(U1, role='user', content='zebrafish 얼룩물고기 {n}').event_id")
        leader.ask(f"memory.record_turn(U2, role='user', content='sparrow 참새 {n}').event_id")
    leader.ask("memory.operations.embed()")
    leader.ask("memory._store.vectors.rebuild_index()")
    assert leader.ask("texts(memory, U1, 'zebrafish', k=3)")
    with follower(tmp_path / "data") as memory:
        receipt = memory.erase(U1.at(("tenant",)), subject="u-1", reason="asked").apply()
        assert not receipt.pending, receipt
        assert [store for store in receipt.stores if store.readable] == []
        assert leader.ask("texts(memory, U1, 'zebrafish')") == texts(memory, U1, "zebrafish") == []
        assert len(leader.ask("texts(memory, U2, 'sparrow', k=50)")) == 8
        with pytest.raises(RuntimeError, match="ErasedScope"):
            leader.ask("memory.record_turn(U1, role='user', content='in the erased session').event_id")
        anew = "Scope('acme', user='u-1', project='billing', session='s-2')"
        leader.ask(f"memory.record_turn({anew}, role='user', content='a walrus returned').event_id")
        assert texts(memory, U1, "walrus") == ["a walrus returned"]
        assert files_with(tmp_path / "data", "zebrafish", "얼룩물고기") == set()
        assert not memory.operations.finish_erasures()


def test_nobody_is_refused_for_what_another_process_erased_before(tmp_path: Path, start: Start) -> None:
    """A write that begins after another process's erasure is not late, however long this one was idle."""
    leader = start()
    for n in range(5):
        event = leader.ask(f"memory.record_turn(U1, role='user', content='to go {n}').event_id")
        with follower(tmp_path / "data") as memory:
            memory.erase(U1, event=event).apply()
        leader.ask(f"memory.record_turn(U1, role='user', content='to stay {n}').event_id")
    assert sorted(leader.ask("texts(memory, U1, 'stay go', k=20)")) == [f"to stay {n}" for n in range(5)]


def test_a_policy_and_a_time_zone_act_in_every_process(tmp_path: Path, start: Start) -> None:
    """What one process adopts or opens decides the next call of the others."""
    leader = start()
    leader.ask("memory.record_turn(U1, role='user', content='first').event_id")
    with follower(tmp_path / "data") as memory:
        memory.operations.adopt_policy(DEFAULT_DOCUMENT.replace("keep: 12", "keep: 3"))
        memory.open_session(U2, timezone="Asia/Seoul")
    assert "keep: 3" in leader.ask("memory.operations.policy_document()")
    leader.ask(
        "memory.record_turn(U2, role='user', content='아홉 시', occurred_at='2026-03-01T09:00').event_id"
    )
    assert leader.ask("str(memory.recall(U2, '아홉')[0].occurred_at)") == "2026-03-01 09:00:00+09:00"


def test_views_are_rebuilt_by_one_and_read_by_all(tmp_path: Path, start: Start) -> None:
    """A rebuild in one process switches the readers of the others; the files that it replaced are gone."""
    leader = start()
    for n in range(10):
        leader.ask(f"memory.record_turn(U1, role='user', content='note {n}').event_id")
    with follower(tmp_path / "data") as memory:
        for name in VIEWS:
            memory.operations.rebuild(name)
        leader.ask("memory.record_turn(U1, role='user', content='note 10').event_id")
        assert (
            len(leader.ask("texts(memory, U1, 'note', k=20)")) == len(texts(memory, U1, "note", k=20)) == 11
        )
        leader.ask("memory.operations.rebuild('turns')")
        assert len(texts(memory, U1, "note", k=20)) == 11
        eventually(lambda: len(list((tmp_path / "data" / "views").glob("*.db"))) == len(VIEWS))


def test_the_leader_and_a_follower_find_the_same(tmp_path: Path, start: Start) -> None:
    """Hits and scores do not depend on who asks, with vectors in the index or by the exact scan."""
    leader = start()
    for n in range(25):
        leader.ask(f"memory.record_turn(U1, role='user', content='budget topic {n % 7} 예산 {n}').event_id")
    leader.ask("memory.operations.embed()")
    ask = "[(hit.event_ids, hit.score) for hit in memory.recall(U1, 'topic 3 예산', k=10)]"
    with follower(tmp_path / "data") as memory:
        own = [[list(hit.event_ids), hit.score] for hit in memory.recall(U1, "topic 3 예산", k=10)]
        assert leader.ask(ask) == own


def test_many_open_an_empty_directory_at_once(tmp_path: Path, start: Start) -> None:
    """Exactly one of them leads, and all of them share one log and one key store."""
    peers = [start(wait=False) for _ in range(4)]
    assert sorted(bool(peer.ready().leads) for peer in peers) == [False, False, False, True]
    for n, peer in enumerate(peers):
        peer.ask(f"memory.remember(U1, 'peer {n}').event_id")
    assert [sorted(peer.ask("contents(memory, U1)")) for peer in peers] == [
        [f"peer {n}" for n in range(4)]
    ] * 4


def test_the_command_line_works_while_an_agent_runs(tmp_path: Path, start: Start) -> None:
    """Remember, recall, erase and status beside a process that leads."""
    leader = start()
    leader.ask("memory.remember(U1, 'The invoice goes to Kim').event_id")
    script = [sys.executable, "-c", "from mnemolog.infra.cli import main; main()"]
    given = {**os.environ, "MNEMOLOG_DATA": str(tmp_path / "data"), "MNEMOLOG_EMBEDDER": "none"}
    scope = ["--tenant", "acme", "--user", "u-1", "--project", "billing"]

    def run(*words: str) -> str:
        done = subprocess.run([*script, *words], env=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Kim" in run("recall", "invoice", *scope)
    run("remember", "보고서는 엑셀로", *scope)
    assert "보고서는 엑셀로" in leader.ask("contents(memory, U1)")
    assert json.loads(run("status", "--json"))["leader"] == leader.pid


def test_a_killed_parent_leaves_no_lock_to_its_child(tmp_path: Path) -> None:
    """A forked child that lives on does not keep the lead of the process that was killed."""
    code = (
        "import os, time\nfrom mnemolog import Memory\n"
        f"memory = Memory.open({str(tmp_path / 'data')!r}, background=False)\n"
        "child = os.fork()\n"
        "if child == 0: print(os.getpid(), flush=True); time.sleep(60); os._exit(0)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    try:
        with follower(tmp_path / "data") as memory:
            assert memory.operations.status().leads
    finally:
        os.kill(child, signal.SIGKILL)


def test_another_release_is_told_so(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose views have another version does not fight for them with the one that leads."""
    start()
    monkeypatch.setattr(Working, "version", "another")
    with pytest.raises(StoreInUse, match="same release"):
        follower(tmp_path / "data")
