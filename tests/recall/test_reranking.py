"""A reranker: a second look at the first hits, off unless given, and never a reason to find nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from embedding_fakes import embedding_memory
from face_world import U1, U2, open_memory, texts
from mnemolog.domain.retrieval import RERANK, reranked
from mnemolog.errors import InvalidInput
from mnemolog.infra.settings import Settings
from mnemolog.projections.reranking import RerankerFailed, Reranking
from tiny_models import write_cross_encoder


class Overlap:
    """The share of a text's words that the question has, so that the shortest answer is the best."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.append(list(texts))
        words = set(question.lower().split())
        return [len(words & set(text.lower().split())) / len(text.split()) for text in texts]


def talk(memory, *said: str, scope=U1) -> None:  # type: ignore[no-untyped-def]
    for text in said:
        memory.record_turn(scope, role="user", content=text)


@pytest.mark.parametrize(
    ("question", "long", "short"),
    [
        (
            "walrus deploys",
            "the walrus deploys and the walrus deploys on every friday at noon",
            "walrus deploys",
        ),
        ("배포 일정", "배포 일정 배포 일정 은 매주 금요일 정오 에 정해 집니다", "배포 일정"),
    ],
)
def test_the_first_hits_are_ordered_anew(tmp_path: Path, question: str, long: str, short: str) -> None:
    """What the reranker puts first comes first; each hit says what it added, and the signals sum to the score."""
    with embedding_memory(tmp_path / "data", reranker=Overlap()) as memory:
        talk(memory, short, *(f"lunch {n} 점심" for n in range(8)), long, long)
        hits = memory.recall(U1, question, k=4)
        assert hits[0].text == short
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        for hit in hits:
            assert hit.score == pytest.approx(sum(hit.signals.values()))
        assert hits[0].signals[RERANK] > 0 > hits[-1].signals[RERANK]


def test_only_the_first_hits_are_looked_at(tmp_path: Path) -> None:
    """However many are asked for, thirty are read; those behind them stay behind, in their order."""
    reranker = Overlap()
    with open_memory(tmp_path / "data", reranker=reranker, settings=Settings.load(embedder="none")) as memory:
        talk(memory, *(f"walrus {'and ' * n}tea" for n in range(50)))
        hits = memory.recall(U1, "walrus", k=45)
        assert [len(some) for some in reranker.asked] == [30] and len(hits) == 45
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert {hit.text for hit in hits[:30]} == set(reranker.asked[0])
        memory.recall(U1, "walrus", k=3)
        assert len(reranker.asked[1]) == 30


def test_it_reads_the_passage_of_a_large_text(tmp_path: Path) -> None:
    """Of a large output the reranker sees what the hit shows."""
    reranker = Overlap()
    with open_memory(tmp_path / "data", reranker=reranker) as memory:
        memory.record_tool_result(U1, name="cat", output="\n\n".join(f"row {n} of tea" for n in range(900)))
        (hit,) = memory.recall(U1, "row 777", k=1)
        assert "row 777" in hit.text and reranker.asked == [[hit.text]]


def test_without_one_nothing_changes(tmp_path: Path) -> None:
    """It is off by default: no hit has its signal."""
    with open_memory(tmp_path / "data") as memory:
        talk(memory, "walrus")
        assert RERANK not in memory.recall(U1, "walrus")[0].signals


def test_promise_4_it_reads_the_scope_alone(tmp_path: Path) -> None:
    """Texts of a neighbour never reach it."""
    reranker = Overlap()
    with open_memory(tmp_path / "data", reranker=reranker) as memory:
        talk(memory, "walrus of mine")
        talk(memory, "walrus of a neighbour", scope=U2)
        assert texts(memory, U1, "walrus") == ["walrus of mine"]
        assert reranker.asked == [["walrus of mine"]]


@pytest.mark.parametrize("scores", [[], [1.0], [float("nan"), 1.0], OSError("a secret")])
def test_a_failing_reranker_costs_nothing(tmp_path: Path, scores: object) -> None:
    """Errors, too few scores and what is no number leave the ranking as it was, and the status says so."""

    class Broken:
        def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
            if isinstance(scores, OSError):
                raise scores
            return scores  # type: ignore[return-value]

    with open_memory(tmp_path / "data", reranker=Broken()) as memory:
        talk(memory, "walrus one", "walrus two")
        assert set(texts(memory, U1, "walrus")) == {"walrus one", "walrus two"}
        (warning,) = [each for each in memory.operations.status().warnings if "reranker" in each]
        assert "secret" not in warning


def test_a_folder_without_a_model_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is loaded before the first question; then the folder, or the missing extra, is named."""
    settings = Settings.load(reranker=tmp_path / "model", embedder="none")
    with open_memory(tmp_path / "data", settings=settings) as memory:
        talk(memory, "walrus")
        with pytest.raises(InvalidInput, match="no reranker in"):
            memory.recall(U1, "walrus")
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "model.onnx").write_bytes(b"no model")
        monkeypatch.setitem(sys.modules, "fastembed", None)
        monkeypatch.setitem(sys.modules, "fastembed.common.model_description", None)
        with pytest.raises(InvalidInput, match="fastembed"):
            memory.recall(U1, "walrus")


def test_the_setting_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """MNEMOLOG_RERANKER names the folder; an empty one is none."""
    monkeypatch.setenv("MNEMOLOG_RERANKER", "models/reranker")
    assert Settings.load().reranker == Path("models/reranker")
    monkeypatch.setenv("MNEMOLOG_RERANKER", "")
    assert Settings.load().reranker is None


def test_what_was_not_looked_at_stays_behind() -> None:
    """The rest gets what the last of the first got; equal scores change nothing."""
    lifts = reranked([3.0, 1.0, 2.0], 5)
    assert lifts[0] > lifts[2] > lifts[1] == lifts[3] == lifts[4]
    assert sum(lifts[:3]) == pytest.approx(0)
    assert reranked([2.0, 2.0], 3) == [0.0, 0.0, 0.0]


def test_it_rests_after_a_failure() -> None:
    """A broken one is not asked again at once, so that no question waits for it."""

    class Broken:
        asked = 0

        def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
            self.asked += 1
            raise RerankerFailed("gone")

    broken = Broken()
    reranking = Reranking(lambda: broken)
    assert [reranking.scores("q", ["a"]) for _ in range(3)] == [None] * 3
    assert broken.asked == 1
    assert reranking.trouble.last_error


def test_a_real_cross_encoder_ranks(tmp_path: Path) -> None:
    """With the extra installed, a folder with an ONNX cross-encoder is run through fastembed."""
    write_cross_encoder(tmp_path / "model")
    settings = Settings.load(reranker=tmp_path / "model", embedder="none")
    with open_memory(tmp_path / "data", settings=settings) as memory:
        talk(memory, "walrus tea", "walrus", "walrus tea tea tea")
        lifts = {hit.text: hit.signals[RERANK] for hit in memory.recall(U1, "walrus")}
        ordered = [lifts[text] for text in ("walrus tea tea tea", "walrus tea", "walrus")]
        assert all(one > other for one, other in pairwise(ordered))
