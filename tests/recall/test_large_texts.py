"""Large texts: found by any passage, shown as that passage with where it stands, read back by its range."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding_fakes import Bigrams, embedding_memory
from face_world import (
    ACME,
    U1,
    U2,
    dump_hashes,
    everything,
    forms,
    open_memory,
    rebuilt_hashes,
    texts,
)
from mnemolog import FORGOTTEN, Hit, Memory, Principal, Role, Scope
from mnemolog.domain.passages import LARGE, LENGTH
from mnemolog.infra.settings import Settings
from mnemolog.infra.vector_folder import VECTORS_FILE
from mnemolog.projections.vectors import Kind
from mnemolog.results import OutputRange
from support import files_below

NEXT = Scope("acme", user="u-1", project="billing", session="s-2")
NEEDLES = {
    "en": ("The flux capacitor of the Heron plant needs 7741 volts.", "voltage of the flux capacitor"),
    "ko": ("헤론 공장의 축전기는 7741 볼트가 필요합니다.", "축전기 볼트"),
}
FILLERS = {
    "en": "Line {}: the nightly job copied its files and went on.",
    "ko": "{}번째 줄: 야간 작업이 파일을 복사했습니다.",
}
SECRET = "zyxwombatqk"


def log_of(lines: int, needle: str, place: float = 0.5, language: str = "en") -> str:
    """A log of so many paragraphs with one needle somewhere in it."""
    rows = [FILLERS[language].format(n) for n in range(lines)]
    rows[int(lines * place)] = needle
    return "\n\n".join(rows)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """By words alone."""
    settings = Settings.load(durability="os", embedder="none")
    with open_memory(tmp_path / "data", settings=settings) as opened:
        yield opened


@pytest.fixture(params=["words", "vectors", "index"])
def searching(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """By words alone, with an exact scan of the vectors, and through the index."""
    if request.param == "words":
        opened = open_memory(tmp_path / "data", settings=Settings.load(durability="os", embedder="none"))
    else:
        size = 0 if request.param == "index" else 20_000
        settings = Settings.load(durability="os", exact_up_to=size)
        opened = embedding_memory(tmp_path / "data", settings=settings)
    with opened as memory:
        yield memory


def read_back(memory: Memory, hit: Hit, scope: Scope = U1) -> object:
    assert hit.span is not None
    part = memory.read_output(scope, hit.event_ids[0], hit.span.start, hit.span.end)
    assert isinstance(part, OutputRange) and part.total == hit.span.total
    return part.text


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize(("lines", "place"), [(150, 0.5), (1_500, 0.95)])
def test_a_needle_in_a_large_output_is_found(
    searching: Memory, language: str, lines: int, place: float
) -> None:
    """In the middle and at the end, in the event or in the blob store: one hit, its passage, and the way back."""
    needle, question = NEEDLES[language]
    text = log_of(lines, needle, place, language)
    event = searching.record_tool_result(U1, name="cat", output=text)
    for number in range(30):
        searching.record_turn(U1, role="user", content=f"small talk {number} 잡담")
    hits = searching.recall(U1, question, k=5)
    assert [hit.event_ids[0] for hit in hits].count(event.event_id) == 1
    assert hits[0].event_ids[0] == event.event_id
    assert needle in hits[0].text and len(hits[0].text) <= LENGTH
    assert read_back(searching, hits[0]) == hits[0].text
    span = hits[0].span
    assert span is not None and span.total == len(text) and text[span.start : span.end] == hits[0].text


def test_what_the_words_cannot_find_vectors_can(tmp_path: Path) -> None:
    """A passage without one word of the question is the hit when its vector is the nearest."""
    with embedding_memory(tmp_path / "data") as memory:
        rows = ["라인 점검 완료"] * 120
        rows[90] = "xylophonists rehearsing " * 5
        memory.record_tool_result(U1, name="cat", output="\n\n".join(f"{row} {row} {row}." for row in rows))
        for number in range(40):
            memory.record_turn(U1, role="user", content=f"점심 {number}")
        (hit, *_) = memory.recall(U1, "xylophonistic rehearsal", k=1)
        assert "xylophonists" in hit.text and hit.signals["dense"] > 0
        assert read_back(memory, hit) == hit.text


def test_a_text_that_is_not_large_is_shown_whole(memory: Memory) -> None:
    """Up to the bound there is one piece, the text; above it, a long turn is shown by passage as an output is."""
    short = "walrus " * (LARGE // 7)
    memory.record_turn(U1, role="user", content=short)
    (hit,) = memory.recall(U1, "walrus")
    assert hit.text == short and hit.span is None
    memory.record_turn(U1, role="assistant", content=log_of(100, "the ocelot is here"))
    (hit, *_) = memory.recall(U1, "ocelot")
    assert "ocelot" in hit.text and read_back(memory, hit) == hit.text


def test_arguments_of_a_tool_are_found_and_shown_as_letters(memory: Memory) -> None:
    """Escaped Korean in the large arguments of a call is found, and readable in the hit."""
    body = log_of(100, "축전기 점검").encode("unicode-escape").decode()
    memory.record_tool_call(U1, name="write", arguments=f'{{"text": "{body}"}}')
    (hit,) = memory.recall(U1, "축전기", k=1)
    assert "축전기 점검" in hit.text and hit.span is not None


def test_a_context_shows_the_same_passage(memory: Memory) -> None:
    """The passage and its reference enter in their own session; elsewhere untrusted text is the reference alone."""
    needle, question = NEEDLES["en"]
    event = memory.record_tool_result(U1, name="cat", output=log_of(1_500, needle))
    talk = [memory.record_turn(U1, role="user", content=f"so be it {number}") for number in range(40)]
    (hit, *_) = memory.recall(U1, question, k=1)
    assert hit.span is not None
    where = f"characters {hit.span.start}-{hit.span.end} of {hit.span.total}; read_output {event.event_id}]"
    text = memory.context(U1, question, budget=1_500).text
    assert f"[{where}" in text and needle in text
    elsewhere = memory.context(NEXT, question, budget=1_500).text
    assert f"[untrusted tool: {where}" in elsewhere and "flux" not in elsewhere
    assert talk


def test_a_long_turn_of_this_session_stays_whole(memory: Memory) -> None:
    """What a person said here enters whole or not at all, also when a passage of it was what was found."""
    said = log_of(60, "the ocelot is here")
    memory.record_turn(U1, role="user", content=said)
    text = memory.context(U1, "ocelot", budget=1_500).text
    assert "Line 0:" in text and "Line 59:" in text and "ocelot" in text
    found = memory.context(NEXT, "ocelot", budget=1_500).text
    assert "ocelot" in found and "Line 59:" not in found and "read_output" in found


def test_promise_4_passages_stay_in_their_scope(searching: Memory) -> None:
    """A neighbour's large output is in no hit, and changes no digit of a score."""
    searching.record_tool_result(U1, name="cat", output=log_of(200, NEEDLES["en"][0]))
    searching.record_turn(U1, role="user", content="the volts of the heron")
    before = repr(searching.recall(U1, "heron volts", k=50))
    searching.record_tool_result(U2, name="cat", output=log_of(400, NEEDLES["en"][0]))
    assert repr(searching.recall(U1, "heron volts", k=50)) == before


def test_a_filter_holds_for_large_outputs(memory: Memory) -> None:
    """By tool, kind and author a passage counts as its event."""
    memory.record_tool_result(U1, name="cat", output=log_of(200, NEEDLES["en"][0]))
    assert len(memory.recall(U1, "flux", tool="cat", kinds=["tool_result"])) == 1
    assert memory.recall(U1, "flux", tool="grep") == []
    assert memory.recall(U1, "flux", kinds=["turn"]) == []


def holding(folder: Path, *markers: str) -> set[str]:
    """The files below a folder that hold one of these words in any form."""
    wanted = [form for marker in markers for form in forms(marker)]
    files = {path: written(content) for path, content in files_below(folder)}
    return {path.name for path, raw in files.items() if any(form in raw for form in wanted)}


def written(raw: bytes) -> bytes:
    """Without the empty blocks that the index allots in advance."""
    blocks = (raw[at : at + 4096] for at in range(0, len(raw), 4096))
    return b"".join(block for block in blocks if block.strip(b"\0"))


@pytest.mark.embedded
@pytest.mark.parametrize(("what", "lines"), [("session", 150), ("subject", 1_500)])
def test_promise_8_no_passage_outlives_its_text(tmp_path: Path, what: str, lines: int) -> None:
    """Rows, words, vectors, points and bytes of every passage go, and the neighbour's stay."""
    settings = Settings.load(durability="os", exact_up_to=0)
    with embedding_memory(tmp_path / "data", settings=settings) as memory:
        event = memory.record_tool_result(U1, name="cat", output=log_of(lines, f"the {SECRET} and 축전기꺄"))
        kept = memory.record_tool_result(U2, name="cat", output=log_of(lines, "the ocelot"))
        assert SECRET in memory.recall(U1, SECRET)[0].text
        assert holding(memory.path / "views", SECRET)
        numbers = {
            position for position, kind, _ in memory._store.vectors._index.points() if kind is Kind.PASSAGE
        }
        assert numbers == {event.position, kept.position}
        target = {"event": event.event_id, "session": "s-1", "subject": "u-1"}[what]
        receipt = memory.erase(ACME if what == "subject" else U1, **{what: target}).apply()
        assert receipt.complete
        found = {store.store: (store.found, store.readable) for store in receipt.stores}
        assert found["view turns"][0] > 10 and found["vectors"][0] > 10 and found["index"][0] > 10
        assert {readable for _, readable in found.values()} == {0}
        assert holding(memory.path, SECRET, "축전기꺄") == set()
        assert SECRET not in everything(memory, U1, SECRET)
        left = {position for position, *_ in memory._store.vectors._index.points()}
        assert left == {kept.position}
        assert "ocelot" in memory.recall(U2, "ocelot")[0].text
        before = dump_hashes(memory)
        assert rebuilt_hashes(memory) == before


def test_a09_passages_begun_before_an_erasure_do_not_land(tmp_path: Path) -> None:
    """A text that is erased while its passages are being embedded leaves no vector."""
    embedder = Bigrams()
    with open_memory(tmp_path / "data", embedder=embedder) as memory:
        event = memory.record_tool_result(U1, name="cat", output=log_of(100, SECRET))
        memory._store.vectors._open().worker.step()
        receipts = []

        def erase(texts: object) -> None:
            embedder.before = lambda texts: None
            receipts.append(memory.erase(U1, event=event.event_id).apply())

        embedder.before = erase
        memory.operations.embed()
        assert [receipt.complete for receipt in receipts] == [True]
        assert memory._store.vectors.holding([event.position]) == {"vectors": 0}


def test_promise_3_a_rebuild_finds_the_same_passages_and_embeds_nothing(tmp_path: Path) -> None:
    """With an erasure in the middle, views built anew in other batches have the same rows, hits and digits."""
    embedder = Bigrams()
    with embedding_memory(tmp_path / "data", embedder) as memory:
        for lines in (150, 1_500):
            memory.record_tool_result(U1, name="cat", output=log_of(lines, NEEDLES["en"][0]))
            memory.record_turn(U1, role="user", content=log_of(80, NEEDLES["ko"][0], language="ko"))
        gone = memory.record_tool_result(U1, name="cat", output=log_of(300, SECRET))
        memory.recall(U1, "flux")
        memory.erase(U1, event=gone.event_id).apply()
        asked = [memory.recall(U1, question, k=20) for _, question in NEEDLES.values()]
        live, count = dump_hashes(memory), len(embedder.texts)
        assert rebuilt_hashes(memory, batch_size=2) == live
        assert [memory.recall(U1, question, k=20) for _, question in NEEDLES.values()] == asked
        assert len(embedder.texts) == count + len(NEEDLES)


def downgrade(path: Path) -> None:
    """A file of vectors as it was before there were passages."""
    conn = sqlite3.connect(path)
    conn.executescript(
        f"DELETE FROM vectors WHERE kind = {Kind.PASSAGE:d}; DROP INDEX vectors_source; DROP INDEX vectors_passages;"
        " ALTER TABLE vectors DROP COLUMN part; ALTER TABLE dropped DROP COLUMN part;"
        " ALTER TABLE spaces DROP COLUMN passages;"
        " CREATE UNIQUE INDEX vectors_source ON vectors (position, kind, space);"
        " UPDATE meta SET value = 1 WHERE name = 'format';"
    )
    conn.close()


def test_a_store_from_before_passages_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view is built anew at opening; vectors stay, and only the passages of large texts are embedded."""
    path, embedder = tmp_path / "data", Bigrams()
    with embedding_memory(path, embedder) as memory:
        memory.record_tool_result(U1, name="cat", output=log_of(150, NEEDLES["en"][0]))
        memory.record_turn(U1, role="user", content="lunch at noon")
        expected = memory.recall(U1, NEEDLES["en"][1], k=5)
        whole = set(memory._store.vectors._rows.dump(embedder.space))
    downgrade(path / VECTORS_FILE)
    again = Bigrams()
    with embedding_memory(path, again) as memory:
        assert memory.recall(U1, NEEDLES["en"][1], k=5) == expected
        assert set(memory._store.vectors._rows.dump(embedder.space)) == whole
        assert all(text.startswith("cat: ") for text in again.texts[:-1])
        assert "lunch at noon" not in again.texts


def test_a_principal_without_the_scope_reads_no_passage(memory: Memory) -> None:
    """Another user's principal finds nothing and reads no range."""
    memory.record_tool_result(U1, name="cat", output=log_of(150, NEEDLES["en"][0]))
    other = memory.acting_as(Principal("u-2", Role.USER, (Scope("acme", user="u-2"),)))
    assert texts(other, U2, "flux") == []


def test_a_text_whose_blob_is_lost_is_found_by_its_preview(tmp_path: Path) -> None:
    """A file that went missing parks nobody; what the event kept is still found."""
    with open_memory(tmp_path / "data") as memory:
        event = memory.record_tool_result(U1, name="cat", output=log_of(1_500, SECRET, 0.001))
        (memory.path / "blobs" / event.event_id).unlink()
        assert SECRET in memory.recall(U1, SECRET)[0].text
        assert memory.operations.parked() == []
        assert memory.read_output(U1, event.event_id, 0, 5) is FORGOTTEN
