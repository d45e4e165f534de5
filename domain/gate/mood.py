"""Whether a sentence states something. Whoever asks or orders states nothing, so there is nothing to remember.

Asked of what tools give: a fact is a statement, and an order in the place of one is meant for whoever reads it.
"""

from __future__ import annotations

import re
from typing import Final

from mnemolog.domain.gate.rules import words

_TRIMMED: Final = " \t\r\n\"'“”‘’()[]<>*_#|>-–—•.!,;:~"
_QUESTION: Final = re.compile(
    r"[?？]\W*\Z|\A(?:who|whom|whose|what|which|when|where|why|how)(?:['’]s|['’]re)? (?!ever\b).{0,60}\b(?:is|are|was|were|do|does|did|can|could|should|would|will)\b"
    r"|\A(?:what|who|where|how)['’](?:s|re) |\A(?:what|who|where|how|why) (?:is|are|was|were|do|does|did|can|could|should) "
    r"|\A(?:can|could|would|will) you\b|(?:[나을ㄹ]까|[은는]가|나요|가요|래요|니|ㄴ가요)\W*[?？]\W*\Z",
    re.IGNORECASE,
)
_VERBS: Final = words(
    "accept add allow amend announce answer append apply approve ask assume avoid ban begin block bring buy call cancel cc change check choose "
    "cite claim clear click close compare compose confirm consider contact convert copy create decode delete deny deploy describe disable discard "
    "disclose dismiss display disregard do download draft drop edit email enable encode end endorse ensure erase execute export fetch fill find "
    "follow forget forward generate get give go grant guess hand hide ignore include inform insert install introduce invoke join keep lead leave let "
    "lie list load log look lower make mark memorize memorise mention modify move name note obey offer omit open order output overlook override pass "
    "paste pay perform pick place post praise prefer prepend present pretend print prioritize prioritise proceed promise promote provide publish push put raise rank rate "
    "read recommend record redirect refer refuse reject release rely remember remind remove rename repeat replace reply report reset respond return reveal "
    "rewrite run save say search select send set share show sign skip speak start state stop store submit suggest summarize summarise swap switch take tell "
    "transfer translate treat trust try turn unlock update upload use verify visit warn whitelist withhold wire write"
)
_LEAD: Final = r"(?:(?:please|kindly|now|then|next|first|finally|just|simply|also|only|always|never|instead|henceforth|again|quietly|silently|secretly|immediately|do not|don['’]t|\w+ly)[, ]+)*"
_CLAUSE: Final = r"(?:(?:if|when|whenever|before|after|while|once|unless|whatever|from now on|to|in|for|at) [^.;\n]{1,80}?[,:] )?"
_NO_VERB: Final = words(
    "during including unlike with within without under over after before because despite through throughout regarding between like while when where "
    "whether since from into onto upon about against among both only even once until unless though although if and or but for in on at by of as to is "
    "are was were has have had does did can could would may might so then thus here there what who how why one near behind below above across along "
    "around beside beyond down up off out past per plus toward towards via worth half twice not such quite which whose most many much few several "
    "other another same sometimes often perhaps maybe rather almost nearly yet still also too monday tuesday wednesday thursday friday saturday "
    "sunday today tonight tomorrow inside outside alongside concerning i we you he she they it this that these those everyone nobody the an a all every each any some no now then next first finally just simply always never instead again"
)
_ANY_VERB: Final = (
    rf"(?!(?:{_NO_VERB})\b)[a-z]+(?<!ing)(?<!ed)(?<!s)(?<!ly)(?-i:(?= (?:the|an?|this|that|these|those|your|their|our|my|his|her|all|every|each|any|me|us|them|him)\b))"
    r"(?! the great\b)"
)
"""Something that has an object and begins a sentence: few nouns do."""
_ENGLISH: Final = re.compile(
    rf"\A(?:(?:assistant|agent|ai|bot|model|reader|system)[,:] )?{_CLAUSE}{_LEAD}(?:(?:{_VERBS})\b(?! (?:of|is|are|was|were|has|have|had|will|can|for the|in the|at|by|number|\d|limits?)\b)(?!['’:]|s\b|-\w)"
    rf"(?! \w+ (?:is|are|was|were|has|have|had|will|can|covers?|contains?|ended|took|takes)\b)|{_ANY_VERB}|speak of\b|feel free\b|see to it\b|make sure\b|be sure\b|better not\b)"
    r"|\b(?:you|the (?:reader|model|assistant|agent)|your \w+(?: \w+)?) (?:must|should|shall|ought to|need to|needs to|have to|has to|(?:is|are) to|had better) |\byou['’]d better\b"
    r"|;\s*(?:please |then |and )?(?:discard|ignore|delete|send|tell|use|trust|remove)\b",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"\A[A-Z][a-z]+ [A-Z][a-z]+")
"""Mark Twain and Will Smith."""
_RIEUL: Final = "".join(map(chr, range(0xAC00 + 8, 0xD7A4, 28)))
_KOREAN: Final = re.compile(
    rf"(?:[가-힣](?:세요|십시오|시오|시길)|주시기 ?바랍니다|(?:바랍니다|바람|요망)|[아어여하해려겨쳐켜춰내둬봐워와가돼놔라]라|[넘옮높낮맡남숨열닫쓰꾸]\S?[기추]?[거겨어춰]라|"
    rf"(?:해|아|어|여|려|겨|켜|춰|워|와|꿔|꺼|빼|줘|내|둬)\s?(?:줘|줘요|줄래|줄래요|다오|주라)|줘|[{_RIEUL}] ?것|지 ?말 ?것|도록(?: ?해| ?하라)?|"
    r"지 ?마라?)(?:\s*[:.!?~][^가-힣]*)?\Z"
)
_MUST: Final = re.compile(
    r"(?:야 ?(?:한다|합니다|해요|해|됩니다|된다|돼요)|면 ?안 ?(?:된다|됩니다|돼요|돼))\W*\Z"
)
_ADVISED: Final = re.compile(
    r"(?:는 ?(?:게|것이|편이) ?(?:좋|낫|나)\S*|(?:주|하)시면 ?(?:됩니다|돼요|된다)|야지요?)\W*\Z"
)
_SAID_PLAINLY: Final = re.compile(
    r"(?:[가-힣 ](?:해|와|써|봐|둬|놔|돼|켜|꺼|빼|내|가|자)|[려어아여겨쳐춰워꿔]|도 ?(?:된다|됩니다|돼요|돼))[.!~]*\Z"
)
_SUBJECT: Final = re.compile(r"[가-힣](?:은|는|이|가)\s")
"""Players must write down their moves; who is not named is the reader."""


def states(text: str) -> bool:
    """Whether a sentence says how something is."""
    bare = text.strip(_TRIMMED)
    if _QUESTION.search(text.strip()) or _KOREAN.search(text.strip()):
        return False
    if _ADVISED.search(text):
        return False
    if (_MUST.search(text) or _SAID_PLAINLY.search(text)) and not _SUBJECT.search(text):
        return False
    return _NAMED.match(bare) is not None or _ENGLISH.search(bare) is None
