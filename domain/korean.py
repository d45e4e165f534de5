"""Search terms of Korean words without a dictionary: syllable pairs, with particles and endings set aside."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Final

STRADDLE_WEIGHT: Final = 0.3
"""Weight of a pair that spans noun and particle ('포는' in '배포는')."""
GUESS_WEIGHT: Final = 0.5
"""Weight of the one syllable before a one-syllable particle ('집' in '집에'): it may be a word of two."""
EDGE_WEIGHT: Final = 0.4
"""Weight of a one-syllable word at the end of a compound ('약' in '감기약')."""

_CASES: Final = (
    "에 에서 에게 에게서 한테 한테서 께 께서 으로 로 으로서 로서 으로써 로써 와 과 랑 이랑 하고 까지 부터 보다 처럼 "
    "같이 만큼 마다 밖에 조차 마저 대로 에서부터 들 들이 들을 들은 들의 들에게"
).split()
_TAILS: Final = ("", "는", "은", "도", "만", "의", "요", "나", "만은", "만이", "이나")
_PLAIN: Final = (
    "은 는 이 가 을 를 의 도 만 나 이나 라도 이라도 야 이야 이라 라 이라고 라고 이라는 라는 이란 란".split()
)
_COPULA: Final = (
    "입니다 입니까 이다 이에요 예요 이었다 였다 이었습니다 였습니다 이었어요 였어요 이고 이며 인데 인지 인가 인가요 "
    "이지만 이라서 이니까 일까 일까요 이죠 죠 지요 이지"
).split()
_DO: Final = (
    "하다 하는 하고 하며 하면 하면서 하기 하지 하지만 하게 하자 하자고 하려고 하러 하니 하니까 한다 한다고 한다면 할 할까 "
    "할까요 할게 할게요 함 합니다 합니까 합시다 해 해요 해서 해도 해야 해라 해줘 해주세요 하세요 했다 했던 했고 했어 했어요 "
    "했는데 했지만 했습니다 했습니까 했지 했을 하였다 하였고 하였으며 하여 한 되다 되는 되고 되며 되면 되어 되었다 되었고 "
    "되었습니다 됐다 됐어 됐어요 됐습니다 된 된다 될 됩니다 돼 돼요 돼서 시키다 시킨 시켰다"
).split()
_ENDINGS: Final = (
    "습니다 습니까 니다 는다 는데 는데요 는지 는지요 는가 나요 던 던데 려고 으려고 으면 으며 으면서 으니 으니까 "
    "었다 았다 었어 았어 었어요 았어요 었는데 았는데 었고 았고 었지만 았지만 었습니다 았습니다 었습니까 았습니까 었던 았던 "
    "었을 았을 었지 았지 어요 아요 어서 아서 어도 아도 어야 아야 어라 아라 었네 았네 었네요 았네요 네요 "
    "거든 거든요 잖아 잖아요 을까 을까요 을게 을게요 을래 을래요 자고 다고 다는 지만 지는 고요 고는 고서 기로 기는 기도 "
    "세요 으세요 으시는 시는 십니다 으십니다 셨다 셨어요"
).split()
_SUFFIXES: Final = frozenset(
    {case + tail for case, tail in product(_CASES, _TAILS)}
    | set(_PLAIN)
    | set(_COPULA)
    | set(_DO)
    | set(_ENDINGS)
)
_LONGEST: Final = max(map(len, _SUFFIXES))
_AFTER_ONE: Final = frozenset("은는이가을를에의도만로와과랑")
_AFTER_CLOSED_VERB: Final = frozenset("고다어아자")
_NEED_CLOSED: Final = frozenset("은이을과으")
_NEED_OPEN: Final = frozenset("가를와랑로")
_AUXILIARY: Final = frozenset("하되했됐돼있")
_STANDALONE_PARTICLES: Final = _AFTER_ONE | {"께", "요"}
_STOP: Final = frozenset(
    "무엇 뭐 뭐야 뭐지 뭐예요 뭐였지 뭘 뭔 언제 어디 누구 누가 왜 어떻게 어떤 어느 무슨 몇 얼마 얼마나 그리고 그런데 그래서 하지만 그러나 그럼 "
    "그것 이것 저것 그거 이거 저거 것 거 및 등 있다 있어 있는 있고 있습니다 있어요 있나요 있었다 없이 좀 더 또 그 저 이런 그런 "
    "해 줘 나 너 내 네 제 우리 저희 응 이렇게 그렇게 저렇게 알려 알려줘 주세요".split()
)
# Common words of two syllables whose second one only looks like a particle.
_WHOLE: Final = frozenset(
    "회의 강의 주의 동의 정의 합의 논의 문의 협의 의의 거의 지도 온도 속도 태도 정도 제도 기도 년도 연도 각도 강도 밀도 "
    "고도 인도 수도 포도 복도 아직도 불만 대만 결과 효과 성과 통과 경과 학과 안과 치과 휴가 추가 화가 대가 주가 투자가 "
    "누가 도로 바로 서로 새로 대로 종로 미로 진로 피로 경로 별로 실로 광고 창고 참고 경고 신고 권고 최고 잡다 종이 높이 "
    "길이 깊이 많이 같이 놀이 먹이 음이 가은 지은 노을 겨를 기로".split()
)


def edge(syllable: str) -> str:
    """The term under which the last syllable of a compound is kept apart from the word of one syllable."""
    return "e" + syllable


def hangul_terms(chunk: str, asked: bool = False) -> Iterable[tuple[str, float]]:
    """Terms and weights of one run of syllables with the digits before it, in a document or (`asked`) a query."""
    run = chunk.lstrip("0123456789")
    digits = chunk[: len(chunk) - len(run)]
    if digits:
        return _counted(digits, run)
    if run in _STOP or run in _STANDALONE_PARTICLES or (len(run) > 1 and run in _SUFFIXES):
        return ()
    stem = run[: _stem_length(run)]
    if (stem in _STOP and len(stem) > 1) or (stem in _AUXILIARY and len(run) > 1):
        return ()
    if len(stem) == 1:
        return _one_syllable(stem, run, asked)
    return _several(stem, run, asked)


def _several(stem: str, run: str, asked: bool) -> list[tuple[str, float]]:
    terms = [(stem[i : i + 2], 1.0) for i in range(len(stem) - 1)]
    if len(run) > len(stem):
        terms.append((run[len(stem) - 1 : len(stem) + 1], STRADDLE_WEIGHT))
    if len(stem) > 2 and not asked:
        terms.append((edge(stem[-1]), EDGE_WEIGHT))
    return terms


def _one_syllable(stem: str, run: str, asked: bool) -> list[tuple[str, float]]:
    if len(run) == 1:
        terms = [(stem, 1.0)]
    elif len(run) == 2:
        terms = [(run, 1.0), (stem, GUESS_WEIGHT)]
    else:
        terms = [(stem, 1.0), (run[:2], STRADDLE_WEIGHT)]
    if asked:
        terms.append((edge(stem), EDGE_WEIGHT * dict(terms)[stem]))
    return terms


def _counted(digits: str, run: str) -> list[tuple[str, float]]:
    """A number with its counter: 5월에 → 5월, 5; 3개월 → 3개, 3, 개월."""
    digits = digits[-64:]
    stem = run[: _stem_length(run)] if len(run) > 1 else run
    pairs = [(stem[i : i + 2], 1.0) for i in range(len(stem) - 1)]
    if run in _SUFFIXES:
        return [(digits, 1.0)]
    return [(digits + run[0], 1.0), (digits, GUESS_WEIGHT), *pairs]


def _stem_length(run: str) -> int:
    """How many syllables are left when the longest particle or ending is taken off; at least one."""
    if run in _WHOLE:
        return len(run)
    for at in range(max(1, len(run) - _LONGEST), len(run)):
        if run[at:] in _SUFFIXES and _fits(run[at - 1], run[at]) and (at > 1 or _alone(run)):
            return at
    if len(run) == 2 and run[1] in _AFTER_CLOSED_VERB and _final(run[0]):
        return 1
    return len(run)


def _alone(run: str) -> bool:
    return len(run) > 2 or run[1] in _AFTER_ONE


def _fits(last: str, first: str) -> bool:
    """Whether a suffix that begins with `first` may follow the syllable `last`: 은 after a consonant, 는 a vowel."""
    final = _final(last)
    if first in _NEED_CLOSED:
        return final != 0
    if first in _NEED_OPEN:
        return final == 0 or (first == "로" and final == 8)
    return True


def _final(syllable: str) -> int:
    """The final consonant's number; 0 for none, 8 for ㄹ."""
    return (ord(syllable) - 0xAC00) % 28
