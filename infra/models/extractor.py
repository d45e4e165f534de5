"""Extraction with a language model: any endpoint that speaks OpenAI's `/chat/completions`.

Whatever an endpoint answers, what comes of it is candidates that stand word for word in their sources, or none and a
counted reason. What may pass is told to the caller as StoreUnavailable, so that the same sources come again later.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from mnemolog.domain.errors import InvalidInput, StoreUnavailable
from mnemolog.domain.gate.candidates import Source
from mnemolog.domain.gate.credentials import credentials
from mnemolog.domain.gate.findings import OVERLAP, Scanner, mask, scan
from mnemolog.domain.gate.identifiers import identifiers
from mnemolog.domain.gate.ports import Found
from mnemolog.domain.gate.prompting import PROMPT, READERS, SCHEMA, Unusable, checked, messages
from mnemolog.domain.gate.sentences import READ
from mnemolog.infra.endpoint import Endpoint, EndpointFailed
from mnemolog.infra.scanning import library_secrets

HOUR: Final = 3600.0
KEPT: Final = 600.0
"""Seconds for which an answer is known, so that a caller who was told to come again pays for nothing twice."""
LARGEST: Final = 4 * 1024 * 1024
"""Bytes of an answer."""
_SCHEMA: Final = {
    "type": "json_schema",
    "json_schema": {"name": "memories", "strict": True, "schema": SCHEMA},
}
_FORMS: Final[tuple[tuple[dict[str, Any] | None, str], ...]] = (
    (_SCHEMA, "max_tokens"),
    (_SCHEMA, "max_completion_tokens"),
    ({"type": "json_object"}, "max_tokens"),
    (None, "max_tokens"),
)
"""Ways to ask, best first: not every endpoint knows schemas, and models differ in the name of the limit."""
_NOT_ABOUT_TEXTS: Final = frozenset({301, 302, 303, 307, 308, 401, 402, 403, 404, 405})


class _Hopeless(Exception):
    """No candidates can be had from these sources. Its text is the reason that is counted."""


@dataclass(slots=True)
class ModelExtractor:
    """url: the API's base, as `https://api.example.com/v1`. The key is in no message and no representation.

    most: messages of one call; characters: of the messages in one request; answer_tokens: of one answer.
    requests, tokens: what an hour may cost at most, retries too; tokens are the endpoint's count, or an estimate.
    patience: failures of one request after which, if the endpoint answers others, its messages are given up.
    scanners: what they find is masked before anything is sent.
    timeout, retries, backoff: as of `Endpoint`. now: seconds, of a clock that never goes back.
    refused: how often something yielded no candidate, by reason.
    """

    url: str
    model: str
    key: str | None = None
    most: int = 40
    characters: int = 24_000
    answer_tokens: int = 4_000
    requests: int = 600
    tokens: int = 2_000_000
    patience: int = 3
    timeout: float = 60.0
    retries: int = 2
    backoff: float = 1.0
    scanners: Sequence[Scanner] = (identifiers, credentials, library_secrets)
    now: Callable[[], float] = time.monotonic
    refused: Counter[str] = field(default_factory=Counter)
    _form: int = 0
    _proven: bool = False
    _failures: Counter[str] = field(default_factory=Counter)
    _known: dict[str, tuple[float, list[Found] | str]] = field(default_factory=dict)
    """What requests found, or why nothing, and when that was."""
    _spent: deque[tuple[float, int]] = field(default_factory=deque)
    """When each request of the last hour was sent, and its tokens."""

    def __post_init__(self) -> None:
        self._endpoint(0)
        if not self.model:
            raise InvalidInput("the extractor needs the name of a model")

    def __repr__(self) -> str:
        return f"ModelExtractor({self.version!r})"

    @property
    def version(self) -> str:
        """Names model and prompt: another of either finds something else."""
        return f"model:{self.model[:80]}/{PROMPT}"

    @property
    def at_rest(self) -> bool:
        """It reads a session as a whole."""
        return True

    def extract(self, sources: Sequence[Source]) -> Sequence[Found]:
        """The candidates of each source. Raises StoreUnavailable where endpoint or allowance say later."""
        found: list[Found] = [()] * len(sources)
        self._known = {of: one for of, one in self._known.items() if one[0] > self.now() - KEPT}
        for batch in self._batches(sources):
            for at, answer in zip(batch, self._read([sources[at] for at in batch]), strict=True):
                found[at] = answer
        self._failures.clear()
        return found

    def forget(self) -> None:
        """Drop what answers are remembered, as after an erasure: to ask again costs a request."""
        self._known = {}

    def _batches(self, sources: Sequence[Source]) -> Iterator[list[int]]:
        """Places of sources that fit into one request each; a long one has its own."""
        batch, size = list[int](), 0
        for at, source in enumerate(sources):
            if source.role not in READERS or not source.text.strip():
                continue
            length = min(READ, len(source.text))
            if batch and size + length > self.characters:
                yield batch
                batch, size = [], 0
            batch.append(at)
            size += length
        if batch:
            yield batch

    def _read(self, sources: list[Source]) -> list[Found]:
        """What one request finds; where it finds nothing usable, what its halves find."""
        chat = messages([self._clean(source) for source in sources])
        request = hashlib.sha256(orjson.dumps(chat)).hexdigest()
        _, known = self._known.get(request, (0, None))
        if isinstance(known, list):
            return known
        try:
            if known is not None:
                raise _Hopeless(known)
            found, dropped = checked(_memories(self._asked(request, chat)), sources)
            self.refused.update(dropped)
        except (_Hopeless, Unusable) as reason:
            self._known[request] = self.now(), str(reason)
            if len(sources) > 1:
                half = len(sources) // 2
                found = self._read(sources[:half]) + self._read(sources[half:])
            else:
                self.refused[str(reason)] += 1
                found = [()]
        self._known[request] = self.now(), found
        return found

    def _clean(self, source: Source) -> Source:
        """The source as the endpoint may see it; what is masked can be quoted by nobody."""
        text = source.text[: READ + OVERLAP]
        speaker = source.speaker and mask(source.speaker, scan(source.speaker, self.scanners))
        return replace(source, text=mask(text, scan(text, self.scanners))[:READ], speaker=speaker)

    def _asked(self, request: str, chat: list[dict[str, str]]) -> Any:
        """The answer to one request. Raises StoreUnavailable while it is not certain that its messages are at fault."""
        try:
            return self._post(chat, self.retries)
        except EndpointFailed as failure:
            if failure.status in _NOT_ABOUT_TEXTS:
                raise StoreUnavailable(f"{failure}: check url, model and key of the extractor") from None
            self._failures[request] += 1
            patience = 1 if failure.kind == "refused" else self.patience
            if self._failures[request] < patience or not self._answers_others():
                raise StoreUnavailable(f"{failure}: it is asked again later") from None
            raise _Hopeless(failure.kind) from None

    def _answers_others(self) -> bool:
        try:
            self._post(messages([]), 0)
        except EndpointFailed:
            return False
        return True

    def _post(self, chat: list[dict[str, str]], retries: int) -> Any:
        """In the best form that the endpoint takes; once it has taken one, a refusal is about the messages."""
        for form in range(self._form, len(_FORMS)):
            response_format, limit = _FORMS[form]
            body: dict[str, Any] = {"model": self.model, "messages": chat, limit: self.answer_tokens}
            if response_format is not None:
                body["response_format"] = response_format
            if limit == "max_tokens":
                body["temperature"] = 0
            try:
                answer = self._endpoint(retries, _estimate(chat) + self.answer_tokens).post(
                    "/chat/completions", body
                )
            except EndpointFailed as failure:
                last = self._proven or form + 1 == len(_FORMS)
                if last or failure.status not in (400, 422):
                    raise
                continue
            self._form, self._proven = form, True
            self._spent[-1] = self._spent[-1][0], _used(answer) or _estimate(chat) + self.answer_tokens
            return answer
        raise AssertionError("unreachable")

    def _endpoint(self, retries: int, tokens: int = 0) -> Endpoint:
        return Endpoint(
            "the extractor",
            self.url,
            self.key,
            self.timeout,
            retries,
            self.backoff,
            LARGEST,
            lambda: self._reserve(tokens),
        )

    def _reserve(self, tokens: int) -> None:
        """Take one request out of the hour's allowance; a single one is always let through."""
        now = self.now()
        while self._spent and self._spent[0][0] <= now - HOUR:
            self._spent.popleft()
        spent = sum(each for _, each in self._spent)
        if self._spent and (len(self._spent) >= self.requests or spent + tokens > self.tokens):
            wait = HOUR - (now - self._spent[0][0])
            raise StoreUnavailable(f"the extractor has used up its hour: it goes on in {wait:.0f} seconds")
        self._spent.append((now, tokens))


def _estimate(chat: list[dict[str, str]]) -> int:
    """Tokens at three bytes each, which is about right for English and for Korean."""
    return sum(len(one["content"].encode()) for one in chat) // 3


def _used(answer: Any) -> int:
    """The endpoint's own count; 0 where it gives none."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and total > 0 else 0


def _memories(answer: Any) -> Any:
    """The JSON in the model's message. Raises _Hopeless for what is none."""
    try:
        choice = answer["choices"][0]
        content, ended = choice["message"].get("content"), choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise _Hopeless("no chat answer") from None
    if ended == "length":
        raise _Hopeless("truncated")
    if not isinstance(content, str) or not content.strip():
        raise _Hopeless("empty")
    try:
        # Where no format could be asked for, a fence or a thought may stand around it.
        return orjson.loads(content[content.find("{") : content.rfind("}") + 1])
    except orjson.JSONDecodeError:
        raise _Hopeless("broken") from None
