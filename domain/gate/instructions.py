"""Text that tells the reader's model what to do: instruction-shaped, and so held when its origin is not trusted.

A mail, a page or a tool's output states things; it has no say in what an agent does, remembers, reveals or answers.
Rules look at the text itself, and at what is hidden in it: encoded, spaced out, spelled with digits, or invisible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mnemolog.domain.gate.disguises import undisguised

READ: Final = 200_000
"""Characters of one text that are looked at."""


@dataclass(frozen=True, slots=True)
class Sign:
    """rule: what the text tries; text[start:end] is where, of a disguised text where the disguise stands."""

    rule: str
    start: int
    end: int
    disguised: bool = False


def instructions(text: str) -> tuple[Sign, ...]:
    """The first place of each rule that fits, in order; empty for a text that only states."""
    text = text[:READ]
    found = {sign.rule: sign for sign in reversed(list(_plain(text)))}
    for hidden in undisguised(text):
        for sign in _plain(hidden.text):
            found.setdefault(sign.rule, Sign(sign.rule, hidden.start, hidden.end, disguised=True))
    return tuple(sorted(found.values(), key=lambda sign: (sign.start, sign.rule)))


def _plain(text: str) -> Iterator[Sign]:
    for name, patterns in _RULES.items():
        for pattern in patterns:
            if (match := pattern.search(text)) is not None:
                yield Sign(name, match.start(), match.end())
                break


def _all(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Within a pattern ~ stands for any character of the same sentence; a dot inside an address does not end one."""
    inside = r"(?:[^.\n]|\.(?=\S))"
    return tuple(re.compile(each.replace("~", inside), re.IGNORECASE | re.MULTILINE) for each in patterns)


_BEGIN: Final = r"(?:^|[.!?:;|)\]]\s+|[\"'“(]|\b(?:must|should|shall|please|and|then|now)\s+)"
_MODEL: Final = r"(?:ai|llm|language model|assistant|chat ?bot|bot|agent|ai (?:coding )?agent|coding agent|copilot|model)s?"
_REPLY: Final = r"(?:responses?|answers?|repl(?:y|ies)|outputs?|summar(?:y|ies)|reviews?)"
_SHAPE: Final = (
    r"(?:replace|use|provide|convert|substitute|render|introduce|misspell|scramble|jumble|rearrange|anagram|remove|group|"
    r"combine|include|modify|add|integrate|augment|enhance|append|insert|prepend|end|start|begin|finish|write|make|translate|"
    r"respond|reply|mention|encode|encrypt|format|adjust|alter|put|place|embed|finali[sz]e)"
)
_TOLD: Final = r"(?:세요|십시오|시오|라|줘|주세요|줄 것|야 ?(?:한다|합니다|해)|할 ?것|해|서)(?=[\s.!)\"'”]|$)"
_ROLES: Final = r"(?:AI|인공지능|LLM|챗봇|어시스턴트|에이전트|비서|언어 ?모델)"

_RULES: Final = {
    "overrides instructions": _all(
        r"\b(?:ignore|disregard|forget|override|bypass|discard|do not follow|stop following)\b~{0,30}?\b(?:previous|prior|above|"
        r"earlier|preceding|your|all|any|existing|system)\b~{0,25}?\b(?:instructions?|prompts?|guidelines|directives?|safety)\b",
        r"\b(?:ignore|disregard|forget|override|bypass)\b~{0,20}?\b(?:previous|prior|above|earlier|your)\b~{0,20}?\b(?:rules|"
        r"polic(?:y|ies)|commands?|restrictions|training|context)\b",
        r"\b(?:ignor(?:a|e|ez|iere|ieren)|olvida|oublie[sz]?|vergiss|dimentica)\b~{0,40}\b(?:i(?:n)?stru[cz]\w+|anweisung\w*|"
        r"richtlinien|consignes|regeln|reglas|regole)\b",
        r"^\W{0,8}override\W{0,4}:\s*\w+",
        r"(?:이전|앞선|앞의|위의?|지금까지의?|기존의?|모든|원래)~{0,15}(?:지시|지침|명령|규칙|프롬프트|대화)~{0,12}"
        r"(?:무시(?!했|하였|당)|잊(?!었)|무효|삭제하(?:고|라|세)|버리고|따르지)",
    ),
    "changes who the model is": _all(
        r"\byou are now (?:in (?:\w+ )?mode|an? (?:\w+ ){0,3}(?:ai|model|assistant|bot|hacker)|dan\b|free\b|unrestricted|jailbroken)",
        r"\byou now (?:answer|allow|accept|obey|follow)\b|\brules have (?:been )?changed\b",
        r"\b(?:act|behave|respond|pretend|role-?play)\b~{0,40}\b(?:uncensored|unrestricted|no (?:content )?(?:policy|restrictions|"
        r"limits|filters)|without (?:any )?(?:restrictions|limits|filters)|jailbr\w+)\b",
        r"\b(?:you|i|we|dan|mode you) (?:now )?(?:have|has) no (?:content )?(?:restrictions|limits|rules|filters|policy)\b",
        r"\b(?:answer|respond|reply|comply|responder|antworten)\w*\b~{0,40}\b(?:without (?:any )?(?:restrictions|limits)|sin restricciones|"
        r"ohne einschr\w+|sans restrictions?|senza restrizioni)",
        r"\b(?:asistente|assistant|assistente|modelo) (?:sin|sans|senza) restri\w+|\bunrestricted (?:response|mode|answer)\b",
        r"(?:너는|넌|당신은)\s?(?:이제|지금부터)|(?:제한|검열)\s?없(?:이|는)\s?(?:모델|답|응답|AI|무엇|뭐든|모두)|제한도 없",
    ),
    "speaks to the model": _all(
        rf"\b(?:notes?|messages?|instructions?|important|notice|attention|reminder|hint)\b~{{0,20}}\b(?:to|for) (?:the |any |all |this )?{_MODEL}\b",
        rf"\bif you(?:['’]re| are) an? {_MODEL}\b|\((?:for|to) (?:the )?{_MODEL}\)|\b(?:dear|attention,?) {_MODEL}\b",
        r"\b(?:nota di sistema|note syst[eè]me|nota del sistema|systemhinweis)\b",
        rf"{_ROLES}\s?{_ROLES}?(?:에게|님)\s?[:,]|(?:당신|너|네)(?:이|가|이가)\s?{_ROLES}(?:이?라면)",
        rf"{_ROLES}(?:는|은)\s~{{0,60}}(?:할 것|해야 (?:합니다|한다)|붙여야|하라|하십시오)",
    ),
    "imitates a role": _all(
        r"^\W{0,4}system\W{0,4}:\s*(?:\w+ required\b|the user\b|grant\b|you\b|ignore\b|override\b|call\b|from now\b|new\b|do\b|please\b|"
        r"disregard\b|reveal\b|execute\b|run\b|all\b)",
        r"<\|(?:im_start|im_end|system|user|assistant)\|>|\[/?INST\]|<</?SYS>>|#{2,}\s*(?:end|start|begin) of (?:user|system|input|prompt|context)",
        r"^\W{0,4}assistant\W{0,4}:\s*(?:sure|of course|okay|certainly)\b|\b(?:important )?system (?:update|override|message):\s",
        rf"^\W{{0,2}}시스템(?:\s?(?:공지|알림|메시지|지시|노트))?\W{{0,3}}\s*[^\n]{{0,60}}(?:{_TOLD}|생략한다|무시한다)",
    ),
    "shapes the answer": _all(
        rf"{_BEGIN}{_SHAPE}\b~{{0,140}}\b(?:your|every|each|the end of (?:any|the)|any) (?:\w+ )?(?:next |future |final )?{_REPLY}\b",
        rf"\b(?:in|at the end of|to|from) your {_REPLY},? (?:to (?:the|them)\b)?\s?(?:suggest|tease|hint|add|include|mention|use|promote|recommend|write)\b",
        rf"{_BEGIN}{_SHAPE}\b~{{0,60}}\byour (?:message|words|letters|reply|main)\b",
        r"(?:^|[.!?|]\s+)(?:replace|convert|substitute|scramble|rearrange|misspell|anagram|jumble|swap|capitali[sz]e)\b~{0,60}"
        r"\b(?:letters?|vowels?|every (?:second|third|fourth|other) (?:word|letter)|words of)\b",
        rf"\b(?:include|append|add|insert|shown|appear|included|added|appended|ajouté|aggiunto)\b~{{0,60}}\b(?:in|to|of|de|di) (?:every|each|all|any|toute|ogni) (?:future )?"
        rf"(?:{_REPLY}|reports?|réponse|risposta)\b",
        r"\b(?:when|while|before) you (?:summari[sz]e|review|process|read|answer|respond)\b~{0,40}\b(?:must|also|always|include|email|send|add|"
        r"append|output|say)\b|\bappend(?: the)?(?: exact)? (?:token|code|string|\{)",
        rf"(?:답변|응답|대답|요약|보고서|출력|메일)(?:의|에|에서|을|를|할 때|끝에)?\s~{{0,40}}(?:넣으|넣어|포함하|추가하|추가|붙이|붙여|바꿔|바꾸|없애|제거하)\s?{_TOLD}",
        rf"(?:요약|처리|응답|답변|검토)할 때\s~{{0,40}}(?:포함|추가|전송|전달|보내|출력){_TOLD}",
    ),
    "asks for work": _all(
        r"(?:^|[.!?|]\s+)(?:explain|describe|draft|compose|write|develop|translate|provide|break down|give me|show me)\s(?:me )?(?:how (?:\w+ )?works?\b|"
        r"the following (?:sentence|text)|(?:an?|the) (?:\w+ ){0,2}(?:poem|story|speech|letter|essay|introduction|example of|process of|theory of|"
        r"lifecycle|plot|equivalent|concept)\b)|\bhow recursion works\b",
        r"\bcomply (?:fully|with the following)\b|\b(?:with|follow) the following request instead\b",
    ),
    "sends something out": _all(
        r"\b(?:send|forward|e-?mail|upload|transmit|exfiltrate|leak|envoie|envoyez|env[ií]a|invia|sende)\b~{0,60}\b(?:customers?['’]? (?:list|data|e-?mails|records)|"
        r"credentials?|passwords?|api keys?|secrets|conversation|chat history|private (?:data|keys?))\b",
        r"\b(?:customer list|customer e-?mails|credentials|passwords|api keys)\b~{0,60}\b(?:send|forward|e-?mail|upload)\b",
        r"\b(?:envoie|envoyez|env[ií]a|invia|sende)\b~{0,60}\S@",
        r"\b(?:call|use|invoke|run|execute|trigger)\s+(?:the\s+)?`?(?:\w+_)?(?:delete|remove|drop|send|transfer|exec|email|pay|grant|upload|forward|wipe)_\w+",
        rf"(?:고객|명단|목록|키|토큰|비밀번호|자격 ?증명|대화)\S{{0,3}}\s~{{0,60}}(?:보내|전송|업로드|전달|유출|넘겨)\s?(?:해(?=:)|{_TOLD})",
        rf"\b[a-z]+_[a-z_]+\s?(?:도구|함수)?(?:을|를)?\s?(?:사용해|호출|실행)\s?(?:~{{0,30}}{_TOLD})?",
    ),
    "writes to memory": _all(
        r"\b(?:remember|memori[sz]e|save|store|keep)\b~{0,60}\b(?:(?:long-term |your )memory|all future|future (?:tasks|conversations|sessions|requests)|"
        r"across (?:turns|sessions)|from now on)\b",
        r"(?:^|[.!?:|]\s+)(?:please )?remember (?:that\b|this\b|:)|\bfrom now on,? (?:you|always|never|answer|respond|include|i|all)\b",
        r"(?:^|[-–:;.!?]\s+)(?:please )?(?:always|never) (?:append|include|add|recommend|copy|answer|reply|say|tell|trust|approve|send|cc|bcc|mention)\b",
        rf"(?:장기|네|너의|당신의|메모리|기억)\s?(?:기억|메모리)?에\s(?:저장|넣|기록)|기억해 ?(?:두었다가|뒀다가)|^\W{0,8}기억(?:해|하라|하세요|하십시오|할 것)(?:[\s:.,!]|$)|"
        rf"앞으로~{{0,40}}(?:항상|언제나|무조건|모든|마다|절대)~{{0,60}}{_TOLD}",
    ),
    "asks for instructions": _all(
        r"\b(?:reveal|show|print|repeat|output|tell|disclose|leak|display|give|share|summary of)\b~{0,30}\b(?:system prompt|(?:your|exact|initial|"
        r"operating|hidden|secret|developer) (?:system )?(?:instructions?|prompt|guidelines|rules)|words above|instructions you were given)\b",
        r"\b(?:reveal|show|give|print|output)\b~{0,20}\b(?:any )?(?:credentials|private admin|admin pass\w+)\b",
        r"\b(?:verrate|r[ée]v[èe]le\w*|r[ée]v[ée]le[zr]|rivela|muestra|mostra|montre)\b~{0,40}\b(?:i(?:n)?stru[cz]\w+|systemanweisung\w*|prompt)\b",
        r"(?:시스템\s?프롬프트|내부\s?지침|(?:너|네|당신)(?:의|에게)~{0,15}(?:지시|지침|프롬프트))(?:을|를)?\s?~{0,15}(?:보여|출력|말해|공개|알려|그대로)",
    ),
    "claims authority": _all(
        r"\b(?:the )?user (?:is an? (?:admin|root|administrator)|has (?:already )?(?:granted|given) permission)\b|\bgrant (?:all requests|this user|the user)\b",
        r"\bsafety (?:protocols?|guidelines?|checks?|rules|policies)\b~{0,40}\b(?:disabled|turned off|not (?:apply|meant)|do(?:es)? not apply|for the rest)\b",
        r"\b(?:skip|bypass|disable) (?:all|any|the) (?:safety|confirmation|security)\b|\bexempt from the usual\b|\bproceed without (?:asking|confirm\w+)\b",
        r"\b(?:do not|don['’]t|never) (?:tell|inform|notify|alert|mention (?:this|it) to) the (?:user|customer)\b|\byour (?:real|actual|true|new) (?:task|mission|goal|purpose|role)\b",
        r"\b(?:sicherheitsrichtlinien|reglas de seguridad|r[èe]gles de s[ée]curit[ée])\b~{0,30}\b(?:nicht|no|ne)\b",
        r"(?:안전|보안)\s?(?:수칙|정책|규칙|지침)~{0,20}(?:해제|적용되지 않|무효)|확인 ?절차~{0,12}생략|다시 묻지 말고|사용자(?:는|가)\s?(?:이미\s?)?관리자|모든 요청을 승인",
        r"(?:사용자|고객)에게~{0,20}(?:알리지|말하지)\s?(?:마|말)|(?:너의|네|당신의)\s?(?:새|진짜|실제)\s?(?:임무|목표|역할)",
    ),
    "plans for the model": _all(
        r"\bhigh[- ]priority note\b|\b(?:begin|start) with the (?:first|following)~{0,30}(?:actions?|steps?|sequences?)\b|\bthink before search\b",
        r"\bi should (?:directly |always )?(?:search|buy|choose|order|select|call|recommend)\b~{0,60}",
        r"중요 ?메모~{0,30}(?:행동|반드시)|첫 번째 행동은|대신 ~{0,20}검색할 것",
    ),
    "asks to decode and obey": _all(
        r"\bdecode\b~{0,60}\b(?:do (?:exactly )?what|follow|execute|obey|carry out|run)\b|\bdo exactly what it says\b",
        r"(?:해독|디코딩|복호화)~{0,20}(?:실행|따르|수행)",
    ),
}  # fmt: skip
