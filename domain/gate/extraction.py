"""What a text states, found by rules alone: `extract`. A pure function of the text and the facts about its event.

Precision comes first: a missed statement can be made again, a wrong one misleads. So a sentence that guesses, asks,
supposes, quotes, jokes or speaks of the moment yields nothing, and rules are matched only where a clause begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mnemolog.domain.gate.candidates import Candidate, Source, Span
from mnemolog.domain.gate.english import ENGLISH
from mnemolog.domain.gate.korean import KOREAN
from mnemolog.domain.gate.rules import CONSTRAINT, DECISION, EPISODE, FACT, PREFERENCE, Language, Rule, group
from mnemolog.domain.gate.sentences import HIDDEN, Sentence, clauses, hidden, sentences
from mnemolog.domain.gate.when import When, when

MOST: Final = 50
"""Candidates of one text; whoever states more is writing a document."""

_HANGUL: Final = re.compile("[가-힣]")
_LATIN: Final = re.compile("[A-Za-z]")
_EDGES: Final = " \t,;:\"'“”‘’`()[]"
_WEEKDAY: Final = re.compile(r"(?:on )?\w+day\s*|[월화수목금토일]요일에?\s*", re.IGNORECASE)
"""On its own it says when something is done, not since when."""
_SENTENCE: Final = re.compile(r"\s(?:is|are|will|can|must|should|has|have|\w+(?<!s)s)\s")
_AT: Final = re.compile(r"(?:에는?|부터는?)?\s+")
_FOR_GOOD: Final = frozenset({DECISION, "from then on"})
"""With constraints and preferences: what is no memory when it is only of the moment."""
_OWNER: Final = re.compile(r"^(?:my|our|the)\s+", re.IGNORECASE)
_READERS: Final = frozenset({"user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class _Heard:
    """A sentence, and what the extractor knows about it before it looks for statements.

    start, end: the part that may state something; asked: it is to be remembered; corrects: it mends something.
    """

    sentence: Sentence
    language: Language
    start: int
    end: int
    asked: bool
    corrects: bool


def extract(source: Source) -> tuple[Candidate, ...]:
    """The statements in a text, in the order in which they stand there. Empty for what the system says."""
    if source.role not in _READERS:
        return ()
    text = hidden(source.text)
    found: list[Candidate] = []
    for heard in _heard(text):
        language = heard.language
        if language.joke.search(text, heard.start, heard.end) or language.taken_back.search(
            text, heard.sentence.start, heard.sentence.end
        ):
            found.clear()
        elif not _is_no_statement(text, heard):
            found.extend(_stated(source, text, heard))
    return tuple(found[:MOST])


def _heard(text: str) -> Iterator[_Heard]:
    """The sentences with what their neighbours say about them: "기억해 줘", "정정할게요"."""
    every = [_before_the_question(text, one) for one in sentences(text)]
    asks_for_next = corrects_next = False
    for number, sentence in enumerate(every):
        language = _language(text, sentence)
        asked = language.asked(text, sentence.start, sentence.end)
        corrects = language.corrects.match(text[sentence.start : sentence.end]) is not None
        if asked is not None and asked[0] == asked[1]:
            asks_for_next = number == 0
            continue
        start, end = asked or (sentence.start, sentence.end)
        wanted = asked is not None or asks_for_next or _is_pointed_at(text, every, number)
        yield _Heard(sentence, language, start, end, wanted, corrects or corrects_next)
        asks_for_next, corrects_next = False, corrects


def _before_the_question(text: str, sentence: Sentence) -> Sentence:
    """ "I live in Porto, so what is open there?" states something before it asks."""
    asks = _language(text, sentence).then_asks.search(text, sentence.start, sentence.end)
    if not sentence.asks or asks is None:
        return sentence
    return Sentence(sentence.start, asks.start(), asks=False)


def _is_pointed_at(text: str, every: list[Sentence], number: int) -> bool:
    """Whether the next sentence only asks to remember this one."""
    if number + 1 == len(every):
        return False
    following = every[number + 1]
    asked = _language(text, following).asked(text, following.start, following.end)
    return asked is not None and asked[0] == asked[1]


def _language(text: str, sentence: Sentence) -> Language:
    said = text[sentence.start : sentence.end]
    if _HANGUL.search(said.rpartition(" ")[2]):
        return KOREAN
    return KOREAN if 2 * len(_HANGUL.findall(said)) >= max(1, len(_LATIN.findall(said))) else ENGLISH


def _is_no_statement(text: str, heard: _Heard) -> bool:
    if heard.sentence.asks and not heard.asked:
        return True
    return heard.language.no_statement.search(text[heard.start : heard.end]) is not None


def _stated(source: Source, text: str, heard: _Heard) -> list[Candidate]:
    found: list[Candidate] = []
    carried: When | None = None
    language = heard.language
    is_conditional = language.condition.match(text[heard.start : heard.end]) is not None
    is_passing = language.passing.search(text[heard.start : heard.end]) is not None
    for start, end in clauses(text, heard.start, heard.end, language.joint):
        start, time = _head(source, text, (start, end), language)
        time = time or carried
        carried = time if start >= end else None
        candidate = _matched(source, text, (start, end), heard, time, behind=bool(found))
        if candidate is not None and _holds(candidate, is_conditional, is_passing):
            found.append(candidate)
    if not found and heard.asked and not is_conditional:
        return _remembered(source, text, heard)
    return [replace(each, explicit=heard.asked) for each in found]


def _holds(candidate: Candidate, is_conditional: bool, is_passing: bool) -> bool:
    if is_passing and (candidate.kind in (CONSTRAINT, PREFERENCE) or candidate.rule in _FOR_GOOD):
        return False
    return not is_conditional or candidate.kind == CONSTRAINT


def _head(source: Source, text: str, clause: Span, language: Language) -> tuple[int, When | None]:
    """Where the clause begins behind fillers and a time ("as of 1 April", 지난주에), and that time."""
    start, end = clause
    time = None
    while start < end:
        if text[start] in _EDGES:
            start += 1
        elif (filler := language.filler.match(text, start, end)) is not None:
            start = filler.end()
        elif time is None and (found := _time_at(source, text, start, end)) is not None:
            time, start = found, start + found.end
        else:
            break
    return start, time


def _time_at(source: Source, text: str, start: int, end: int) -> When | None:
    found = when(text[start:end], source.occurred_at, source.zone)
    if found is None or found.start > 0 or _WEEKDAY.fullmatch(text, start, start + found.end):
        return None
    return found


def _matched(
    source: Source, text: str, clause: Span, heard: _Heard, time: When | None, *, behind: bool
) -> Candidate | None:
    """behind: the sentence has stated something before."""
    start, end = clause
    while end > start and text[end - 1] in _EDGES + "~!":
        end -= 1
    for rule in heard.language.rules:
        if (rule.personal and source.role != "user") or (rule.corrects and not heard.corrects):
            continue
        if (
            (rule.asked and not heard.asked)
            or (rule.unasked and heard.asked)
            or (rule.document and source.role != "tool")
            or (rule.behind and not behind)
        ):
            continue
        found = rule.match(text, start, end)
        if found is not None:
            return _candidate(source, rule, found, heard, time)
    if time is not None and time.since is not None and time.until is None and end - start > 8:
        return _plain(source, text, (start, end), heard, time, "from then on")
    return None


def _candidate(
    source: Source, rule: Rule, found: re.Match[str], heard: _Heard, time: When | None
) -> Candidate | None:
    text, language = found.string, heard.language
    span = _trimmed(text, found.span("v"), language)
    if rule.relation == DECISION and _SENTENCE.search(text, *span):
        span = found.start("v"), span[1]  # the article is part of it
    if rule.dated:
        span, time = _without_time(source, text, span, time, language)
    if told := group(found, "t"):
        time = when(told, source.occurred_at, source.zone) or time
    value = text[span[0] : span[1]]
    if not value or HIDDEN in value:
        return None
    older = _phrase(text, found, "o", language)
    attribute = rule.attribute or _attribute(_phrase(text, found, "a", language), language)
    if rule.part is not None:
        attribute = rule.part if attribute is None else f"{attribute} {rule.part}"
    if attribute is not None and HIDDEN in attribute:
        return None
    since, until = _validity(time)
    return Candidate(
        kind=rule.kind,
        content=source.text[found.start() : found.end()].rstrip(_EDGES),
        span=(found.start(), found.start() + len(source.text[found.start() : found.end()].rstrip(_EDGES))),
        value=value,
        value_span=span,
        entity=_entity(source, rule, found, language),
        attribute=attribute or _topic(rule.relation, value),
        negated=rule.negated or bool(group(found, "n")),
        confidence=rule.confidence,
        rule=rule.name,
        supersedes=older,
        superseded_attribute=None if older is None else attribute or _topic(rule.relation, older),
        valid_from=since,
        valid_to=until,
    )


def _phrase(text: str, found: re.Match[str], name: str, language: Language) -> str | None:
    if not group(found, name):
        return None
    start, end = _trimmed(text, found.span(name), language)
    return text[start:end] or None


def _attribute(phrase: str | None, language: Language) -> str | None:
    if phrase is None:
        return None
    bare = _OWNER.sub("", phrase)
    return language.canonical.get(bare, bare)


def _topic(relation: str | None, value: str) -> str | None:
    """The slot of a stance is what it is about, so that "no shellfish any more" meets "I eat shellfish"."""
    return None if relation is None else f"{relation}: {value}"


def _entity(source: Source, rule: Rule, found: re.Match[str], language: Language) -> str:
    if (named := group(found, "e")) is not None:
        return named
    owner = group(found, "w")
    mine = rule.whose == "user" if owner is None else owner.lower() in language.mine
    return (source.speaker or "user") if mine else "team"


def _trimmed(text: str, span: Span, language: Language) -> Span:
    """The span without marks at its edges, an article before it, and words that only close the sentence."""
    start, end = span
    while end > start and text[end - 1] in _EDGES + ".!~":
        end -= 1
    tail = language.tail.search(text[start:end])
    end = start + tail.start() if tail is not None else end
    while start < end and text[start] in _EDGES:
        start += 1
    article = language.articles.match(text, start, end)
    return (article.end() if article is not None else start), end


def _without_time(
    source: Source, text: str, span: Span, time: When | None, language: Language
) -> tuple[Span, When | None]:
    """ "Jeju last month" is Jeju, and last month is when."""
    start, end = span
    found = when(text[start:end], source.occurred_at, source.zone)
    if found is not None and found.start == 0 and start + found.end < end:
        return _behind_time(text, span, found, language) or (span, time)
    if found is None or start + found.end < end or found.start == 0:
        return span, time
    return _trimmed(text, (start, start + found.start), language), found


def _behind_time(text: str, span: Span, found: When, language: Language) -> tuple[Span, When] | None:
    """ "지난주에 춘천" is 춘천; a weekday alone, and what is joined to the time, belongs to the value."""
    start, end = span
    joined = _AT.match(text, start + found.end, end)
    if joined is None or _WEEKDAY.fullmatch(text, start, start + found.end):
        return None
    return _trimmed(text, (joined.end(), end), language), found


def _validity(time: When | None) -> tuple[datetime | None, datetime | None]:
    """From when it holds; what is true since last week need not end with it."""
    if time is None:
        return None, None
    return (time.since, None) if time.since is not None else (None, time.until)


def _remembered(source: Source, text: str, heard: _Heard) -> list[Candidate]:
    """Whatever was to be remembered, as it stands."""
    if source.role != "user":
        return []
    _, end = _trimmed(text, (heard.start, heard.end), heard.language)
    if len(text[heard.start : end].split()) < 2:
        return []
    time = when(text[heard.start : end], source.occurred_at, source.zone)
    return [_plain(source, text, (heard.start, end), heard, time, "remembered")]


def _plain(source: Source, text: str, span: Span, heard: _Heard, time: When | None, rule: str) -> Candidate:
    """A statement without a key. What happened in a past stretch of time is an episode."""
    start, end = span
    ahead = time is not None and time.since is not None and time.since > source.occurred_at
    if ahead and time is not None and time.until is not None:
        time = None  # what happens then is known from now on
    episode = rule == "remembered" and time is not None and time.relative and time.until is not None
    since, until = (time.since, time.until) if episode and time is not None else _validity(time)
    content = source.text[start:end]
    return Candidate(
        kind=EPISODE if episode else FACT,
        content=content,
        span=span,
        value=content,
        value_span=span,
        entity=source.speaker or "user",
        attribute=None,
        negated=False,
        confidence=0.95 if heard.asked else 0.75,
        rule=rule,
        explicit=heard.asked,
        valid_from=since,
        valid_to=until,
    )
