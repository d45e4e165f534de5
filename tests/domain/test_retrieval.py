"""The control point retrieve: scores come from the given scope alone, and every signal does what it says."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.lexical import Matches, bm25
from mnemolog.domain.records import READABLE, Status
from mnemolog.domain.retrieval import (
    DEFAULTS,
    Candidate,
    Facts,
    Moments,
    Ranked,
    Scores,
    Weights,
    joined,
    moments_of,
    named_authors,
    retrieve,
)

FIXED = {name: Moments(100, 0.5, 1.0) for name in ("lexical", "dense", "window", "session_lexical")}
SCORE = st.floats(0, 20).map(lambda value: round(value, 3))
COSINE = st.floats(-1, 1).map(lambda value: round(value, 3))


def turn(key: int, session: int | None = 0, place: int | None = None, **more: object) -> Candidate:
    """A turn whose place and time follow its key."""
    return replace(Candidate(key, key, session, key if place is None else place), **more)  # type: ignore[arg-type]


@st.composite
def scopes(draw: st.DrawFn, least: int = 0) -> tuple[list[Candidate], Scores]:
    """A scope of turns and records with scores, some of them missing."""
    keys = draw(st.lists(st.integers(-5, 40), min_size=least, max_size=25, unique=True))
    pool = [
        Candidate(
            key,
            draw(st.integers(0, 9)),
            draw(st.sampled_from([None, 0, 1, 2])),
            None if key < 0 else key,
            draw(st.sampled_from([None, "Ann", "Min"])),
            draw(st.integers(0, 300)),
        )
        for key in keys
    ]
    some = st.dictionaries(st.sampled_from(keys or [0]), SCORE)
    vectors = st.dictionaries(st.sampled_from(keys or [0]), COSINE)
    sessions = draw(st.dictionaries(st.integers(0, 2), SCORE))
    return pool, Scores(draw(some), draw(vectors), draw(vectors), sessions)


def by_key(found: list[Ranked]) -> dict[int, float]:
    return {one.candidate.key: one.score for one in found}


@given(scopes(), st.data())
def test_the_order_of_the_candidates_changes_no_digit(
    scope: tuple[list[Candidate], Scores], data: st.DataObject
) -> None:
    """The same candidates in another order give the same ranking, to the last digit."""
    pool, scores = scope
    assert retrieve(pool, scores) == retrieve(data.draw(st.permutations(pool)), scores)


@given(scopes(), st.dictionaries(st.integers(100, 120), SCORE))
def test_scores_of_what_is_not_a_candidate_change_nothing(
    scope: tuple[list[Candidate], Scores], outside: dict[int, float]
) -> None:
    """What an index says about something outside the scope moves no score of it."""
    pool, scores = scope
    wider = replace(
        scores,
        lexical={**scores.lexical, **outside},
        dense={**scores.dense, **outside},
        window={**scores.window, **outside},
        session_lexical={**scores.session_lexical, **outside},
    )
    assert retrieve(pool, scores) == retrieve(pool, wider)


@given(scopes(), st.sampled_from(sorted(set(Status) - READABLE)), st.integers(0, 9))
def test_superseded_and_expired_never_enter(
    scope: tuple[list[Candidate], Scores], status: Status, when: int
) -> None:
    """What is not current neither comes back nor moves a score, unless history is asked for."""
    pool, scores = scope
    old = Candidate(77, when, status=status)
    scores = replace(scores, lexical={**scores.lexical, 77: 50.0}, dense={**scores.dense, 77: 1.0})
    assert retrieve([*pool, old], scores) == retrieve(pool, scores)
    assert 77 in by_key(retrieve([*pool, old], scores, history=True))


@given(scopes())
def test_the_signals_sum_to_the_score(scope: tuple[list[Candidate], Scores]) -> None:
    """Each hit tells what every signal added to it."""
    for one in retrieve(*scope, Facts(frozenset({"Ann"}), 2, 5)):
        assert one.score == pytest.approx(sum(one.signals.values()), abs=1e-9)


@given(scopes(1), st.sampled_from(["lexical", "dense", "window"]), st.floats(0.001, 5), st.data())
def test_a_higher_signal_never_lowers_a_rank(
    scope: tuple[list[Candidate], Scores], name: str, more: float, data: st.DataObject
) -> None:
    """Raising one signal of one candidate lifts it at least as much as any other."""
    pool, scores = scope
    scores = replace(scores, moments=FIXED)
    chosen = data.draw(st.sampled_from([one.key for one in pool]))
    given_scores = getattr(scores, name)
    base = replace(scores, **{name: {**given_scores, chosen: given_scores.get(chosen, 0.0)}})
    lifted = replace(scores, **{name: {**given_scores, chosen: given_scores.get(chosen, 0.0) + more}})
    before, after = by_key(retrieve(pool, base)), by_key(retrieve(pool, lifted))
    gain = after.get(chosen, 0.0) - before.get(chosen, 0.0) if chosen in before else 0.0
    assert gain >= -1e-9
    if chosen in before:
        assert all(after[key] - before[key] <= gain + 1e-9 for key in before)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_tiny_scope_is_ranked(size: int) -> None:
    """A scope of one to five candidates gets its hits, the one with the word first, whatever noise vectors add."""
    pool = [turn(key) for key in range(size)]
    noise = {key: 0.30 + key / 1_000 for key in range(size)}
    found = retrieve(pool, Scores({0: 0.3}, noise, noise))
    assert len(found) == size
    assert found[0].candidate.key == 0


def test_equal_scores_have_no_spread() -> None:
    """Where a signal says the same of all, it says nothing: the newer stands first."""
    same = dict.fromkeys(range(4), 2.0)
    found = retrieve([turn(key, None) for key in range(4)], Scores(same, same, same))
    assert [one.candidate.key for one in found] == [3, 2, 1, 0]
    assert all(one.signals["lexical"] == one.signals["dense"] == 0.0 for one in found)


def test_equals_stand_newest_first_without_recency() -> None:
    """Ties are broken by time, then by the later key."""
    pool = [Candidate(1, 5), Candidate(2, 9), Candidate(3, 5)]
    found = retrieve(pool, Scores({1: 1.0, 2: 1.0, 3: 1.0}), weights=replace(DEFAULTS, recency=0.0))
    assert [one.candidate.key for one in found] == [2, 3, 1]


def test_an_empty_scope_has_no_hits() -> None:
    """An empty scope has no hits."""
    assert retrieve([], Scores()) == []


def test_without_vectors_words_decide() -> None:
    """Without any vector only what has a word of the question comes back."""
    pool = [turn(key, None) for key in range(5)]
    found = retrieve(pool, Scores({3: 2.0, 1: 1.0}))
    assert [one.candidate.key for one in found] == [3, 1]


def test_a_turn_that_is_not_embedded_yet_is_found_by_its_words() -> None:
    """A missing vector neither lifts nor lowers: the newest turn is found before it is embedded."""
    pool = [turn(key, None) for key in range(6)]
    scores = Scores({5: 3.0}, {key: 0.1 * key for key in range(5)}, {key: 0.1 * key for key in range(5)})
    found = retrieve(pool, scores)
    assert found[0].candidate.key == 5
    assert found[0].signals["dense"] == found[0].signals["window"] == 0.0


def test_one_vector_stands_for_the_other() -> None:
    """A record has no window: its own vector counts in full."""
    scores = Scores(dense={-1: 0.9, 1: 0.1}, moments=FIXED)
    both = replace(scores, window=scores.dense)
    pool = [Candidate(-1, 1), turn(1, None)]
    assert by_key(retrieve(pool, scores)) == pytest.approx(by_key(retrieve(pool, both)))


def test_a_named_author_lifts() -> None:
    """Of two turns with the same words the one by whom the question names stands first, though older."""
    pool = [turn(1, None, author="Ann"), turn(2, None, author="Min")]
    scores = Scores({1: 1.0, 2: 1.0})
    assert retrieve(pool, scores)[0].candidate.author == "Min"
    assert retrieve(pool, scores, Facts(frozenset({"Ann"})))[0].candidate.author == "Ann"


def test_neighbours_lift_within_their_session_only() -> None:
    """The answer after the question is lifted; the turn that merely comes next in the log is not."""
    pool = [turn(0, 0, 0), turn(1, 0, 1), turn(2, 1, 0), turn(3, 0, 2)]
    found = retrieve(pool, Scores({0: 5.0}, dict.fromkeys(range(4), 0.5)))
    signals = {one.candidate.key: one.signals["neighbours"] for one in found}
    assert signals[1] > signals[3] > signals[2]


def test_a_session_lifts_its_turns_but_not_above_the_turn_itself() -> None:
    """A turn that has the words itself stands above those that only share a session with such turns."""
    pool = [turn(key, 0, key) for key in range(6)] + [
        turn(10, 1, 0),
        *(turn(key, 2, key) for key in range(20, 30)),
    ]
    words = {0: 4.0, 1: 4.0, 2: 4.0, 10: 6.0}
    vectors = {one.key: 0.0 for one in pool}
    found = retrieve(pool, Scores(words, vectors, vectors, {0: 3.0, 1: 1.0}))
    order = [one.candidate.key for one in found]
    assert order.index(10) < min(order.index(key) for key in (3, 4, 5))
    assert order.index(5) < order.index(29)


def test_a_long_text_leans_less_on_what_surrounds_it() -> None:
    """A text of many words speaks for itself: neighbours and session count a fraction."""
    scores = Scores({0: 5.0}, session_lexical={0: 2.0, 1: 0.0}, dense={0: 0.5, 1: 0.5, 2: 0.5})
    rest = [turn(0, 0, 0, length=10), turn(2, 1, 0, length=10)]
    short = retrieve([*rest, turn(1, 0, 1, length=40)], scores)
    long = retrieve([*rest, turn(1, 0, 1, length=400)], scores)
    for name in ("neighbours", "session_best", "session_lexical"):
        lifted, left = (
            next(one for one in found if one.candidate.key == 1).signals[name] for found in (short, long)
        )
        assert left == pytest.approx(lifted / 10)


def test_strict_bounds_leave_out_and_loose_ones_lift() -> None:
    """Strict bounds choose without changing a score; others only lift what lies inside."""
    pool = [turn(key, None) for key in range(10)]
    scores = Scores(dict.fromkeys(range(10), 1.0) | {9: 1.1})
    loose = retrieve(pool, scores, Facts(since_us=3, until_us=5))
    strict = retrieve(pool, scores, Facts(since_us=3, until_us=5, strict=True))
    assert [one.candidate.key for one in strict] == [4, 3] == [one.candidate.key for one in loose][:2]
    assert len(loose) == 10
    assert by_key(strict).items() <= by_key(loose).items()


def test_a_question_of_nothing_but_time_gets_all_of_that_time() -> None:
    """Where no word is left, what happened inside the bounds comes back, the newest first."""
    found = retrieve([turn(key, None) for key in range(6)], Scores(), Facts(since_us=2, until_us=5))
    assert [one.candidate.key for one in found] == [4, 3, 2]


def test_filters_choose_and_change_no_score() -> None:
    """A filter picks among the ranked: no score of what is left moves."""
    pool = [turn(key) for key in range(5)]
    scores = Scores({1: 1.0, 3: 2.0}, {key: 0.1 * key for key in range(5)})
    every, some = by_key(retrieve(pool, scores)), by_key(retrieve(pool, scores, only={1, 4}))
    assert some == {key: every[key] for key in (1, 4)}


def test_a_record_stands_above_the_turn_that_it_was_taken_from() -> None:
    """A record and its turn with the same words: the record comes first."""
    words = dict.fromkeys([-1, 5], 3.0)
    vectors = {key: 0.6 if key in words else 0.1 for key in [-1, *range(20)]}
    pool = [Candidate(-1, 5, 0, kind="fact"), *(turn(key, 0, key, length=20) for key in range(20))]
    found = retrieve(pool, Scores(words, vectors, vectors))
    assert [one.candidate.key for one in found[:2]] == [-1, 5]


def test_moments_of_a_whole_scope_stand_for_those_of_its_promising_part() -> None:
    """Given the whole scope's mean and deviation, a part of it gets the scores that it has in the whole."""
    pool = [turn(key, None) for key in range(50)]
    scores = Scores({key: float(key % 7) for key in range(50)})
    whole = by_key(retrieve(pool, scores, weights=replace(DEFAULTS, recency=0.0)))
    measured = replace(scores, moments={"lexical": moments_of(list(scores.lexical.values()))})
    part = by_key(retrieve(pool[10:20], measured, weights=replace(DEFAULTS, recency=0.0)))
    assert part == {key: score for key, score in whole.items() if key in part}


@pytest.mark.parametrize("name", [one.name for one in fields(Weights)])
def test_every_weight_acts(name: str) -> None:
    """Changing any one weight changes a score."""
    pool = [turn(key, key // 3, key % 3, author="Ann" if key % 2 else "Min", length=60) for key in range(9)]
    pool.append(Candidate(-1, 3))
    scores = Scores({0: 3.0, 4: 1.0, -1: 2.0}, {0: 0.5, 1: 0.2, 5: 0.3}, {0: 0.1, 1: 0.4, 2: 0.2}, {0: 2.0})
    facts = Facts(frozenset({"Ann"}), 0, 4)
    changed = replace(DEFAULTS, **{name: getattr(DEFAULTS, name) + 0.5})
    assert by_key(retrieve(pool, scores, facts)) != by_key(retrieve(pool, scores, facts, weights=changed))


def test_two_indexes_of_a_scope_count_as_one() -> None:
    """A word is as rare in a record as in a turn, however few records there are."""
    turns = Matches(98, 980, {"berlin": {7: 1}}, {7: 10})
    records = Matches(2, 20, {"berlin": {1: 1}}, {1: 10})
    assert bm25(joined(turns, records), [("berlin", 1.0)]) == pytest.approx({7: (s := 5.2), -1: s}, rel=1)
    scores = bm25(joined(turns, records), [("berlin", 1.0)])
    assert scores[7] == scores[-1]


@given(st.lists(st.floats(0, 100, width=32)), st.integers(0, 3_000))
def test_zeros_that_are_only_counted_weigh_as_zeros_that_are_there(values: list[float], zeros: int) -> None:
    """Mean and deviation of a scope are the same to the last digit, however the turns without a word are given."""
    assert moments_of(values, zeros) == moments_of([*values, *[0.0] * zeros])


AUTHORS = ["Ann", "Min-ji Kim", "Joe Kim", "민수", "김영희", "Al"]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Ann cook?", {"Ann"}),
        ("What is Ann's plan and ANN's car?", {"Ann"}),
        ("Annie called", set()),
        ("the annual report", set()),
        ("Did Joe call?", {"Joe Kim"}),
        ("What did Kim say?", set()),
        ("What did Joe Kim say?", {"Joe Kim"}),
        ("민수가 뭐라고 했지?", {"민수"}),
        ("민수 씨는 어디 갔어?", {"민수"}),
        ("민수랑 김영희님이 만난 날", {"민수", "김영희"}),
        ("민수기 22장", set()),
        ("also", set()),
        ("", set()),
    ],
)
def test_authors_are_recognised_by_name(question: str, named: set[str]) -> None:
    """A whole name counts, or the part of it that only one author has, also with a Korean particle behind it."""
    assert named_authors(question, AUTHORS) == named
