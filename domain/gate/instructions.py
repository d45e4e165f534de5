"""Text that tells the reader's model what to do: instruction-shaped, and so held when its origin is not trusted.

A mail, a page or a tool's output states things; it has no say in what an agent does, remembers, reveals or answers.
Rules look at the text itself, and at what is hidden in it: encoded, spaced out, spelled with digits, or invisible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mnemolog.domain.gate.disguises import undisguised
from mnemolog.domain.gate.findings import Sign

READ: Final = 100_000
"""Characters of one text that are looked at."""


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
_DO: Final = "|".join(
    "add append apply approve assume attach call claim confirm copy create delete deny disable display download email enable encode "
    "execute export fetch follow forget forward generate give grant hide include insert invoke keep list load log mark memorize mention "
    "modify obey omit open output pass paste perform post praise pretend print promote provide publish put rank rate read recommend record "
    "redirect refuse remember remove repeat replace reply report respond return reveal run save say select send set share show skip start "
    "state stop store submit suggest switch tell transfer translate treat trust update upload use verify visit write".split()
)
_ANY_VERB: Final = (
    r"(?!(?:during|including|unlike|with|within|without|under|over|after|before|because|despite|through|throughout|regarding|between|like|"
    r"while|when|where|whether|since|from|into|onto|upon|about|against|among|both|only|even|once|until|unless|though|although|if|and|or|but|"
    r"for|in|on|at|by|of|as|to|the|this|that|these|those|all|any|every|each|some|is|are|was|were|has|have|had|does|did|can|could|would|may|"
    r"might|so|then|thus|here|there|what|who|how|why|one|i|we|you|he|she|they|it)\b)[a-z]+(?<!ing)(?<!ed)(?<!s)(?<!ly)"
    r"(?=\s(?:the|an?|this|that|these|your|all|every|each|any|me|it|them|him|her|to|with|only|no|whatever|everything|as)\b)"
)
"""Something that begins a sentence, is not one of its small words, and has an object."""
_ORDER: Final = (
    r"(?:(?:^|[.!?:;,]\s+)(?:please |kindly |now |then |always |never |just |simply |do not |don['’]t )*|\b(?:make sure (?:that |to )?|be sure to |"
    r"you (?:must|should|will|shall|need to|have to|are to) (?:always |never |now )?|your (?:task|job|goal|mission|role) is to |"
    r"it is (?:very )?(?:important|essential|critical) that you ))"
)
_OF_MODELS: Final = (
    r"(?:the user(?! (?:manual|guide|interface|agent|name|id|account|group))|(?<!friendly )(?<!teaching )assistant|chat ?bot|language model|this (?:chat|conversation)|"
    r"(?:the|entire|whole|full) conversation|(?:system|hidden|your) prompt|long-term memory|your memory|(?:earlier|previous|prior) context|"
    r"final answer|your (?:answer|response|reply|output|summary)|tool calls?|(?:browser|search|email|file) tool|user['’]s (?:request|question|instructions?|session|token|trust)|previous message|every question|safety|persona|hidden (?:text|message)|as your (?:developer|admin\w*|owner|master)|requests? as authori[sz]ed|"
    r"without (?:asking|question|confirmation|verification|checking)|just repeat it|confirmation step)"
)
_ORDERED: Final = (
    r"(?:(?:하세요|하십시오|[가-힣]으?세요|하라|해라|시오|해 ?주세요|주세요|말 ?것|할 ?것|마라|마세요|마십시오|해야 한다|해야 합니다)(?=[\s.!)]|$)|"
    r"(?:줘|도록(?: 해)?|말해|적어|써|[가-힣]해|붙여 ?넣어|열어|숨겨|저장|출력)(?=\s*(?:[.!)]|$)))"
)
_ROLES: Final = r"(?:AI|인공지능|LLM|챗봇|어시스턴트|에이전트|비서|언어 ?모델)"
_OF_MODELS_KO: Final = (
    rf"(?:사용자(?!\s?(?:이름|계정|설명서|가이드|아이디|ID|인터페이스|경험|정의|정보를))|{_ROLES}|도우미|이 ?채팅|대화 ?내용|프롬프트|(?:장기|네|너의)\s?기억|(?:기억|메모리)(?:에| ?갱신)|다른 지시|위 지시|원래 설정|"
    r"도구 ?호출|확인 ?절차|검사를 생략|누가 물어|무조건|(?<![가-힣])(?:너|넌|너는|네가|너한테|너에게)(?![가-힣])|전에 (?:들은|받은) (?:말|지시))"
)
_TOLD: Final = r"(?:세요|십시오|시오|라|줘|주세요|줄 것|야 ?(?:한다|합니다|해)|할 ?것|해|서)(?=[\s.!)\"'”]|$)"

_RULES: Final = {
    "overrides instructions": _all(
        r"\b(?:supersedes?|overrides?|takes? precedence over|replaces?)\b~{0,15}\b(?:all|any|every|your) (?:\w+ )?(?:instructions?|rules|guidelines|directives?|messages)\b",
        r"\b(?:rule|instruction|directive|message|note) (?:has|have|is of|takes) (?:the )?(?:highest|top|absolute) priority\b|^\W{0,4}(?:new )?directives?\W{0,3}:",
        r"규칙보다 우선|유일한 규칙|(?:들은|받은) (?:말|지시|안내)(?:은|는)?~{0,8}(?:잊고|무시하고|잊어)",
        r"\b(?:ignore|disregard|forget|discard)\b~{0,20}?\b(?:what you (?:were|have been) told|everything (?:above|before|prior|you|that came)|all (?:of )?the above|"
        r"the user['’]s (?:question|request|message|instructions?)|what (?:came|was said) before)\b",
        r"\b(?:your|the|my|these) (?:new|real|actual|updated|revised|only) (?:instructions?|directives?|orders?|prompt) (?:is|are|as)\b|\b(?:hidden|secret) (?:instructions?|prompt|command)\b",
        r"(?:기존|이전|앞서|지금까지|원래)[^\n.]{0,20}(?:잊어버리|잊고|무시하고|버리고|취소하고)[^\n.]{0,30}(?:따라|따르|수행|응답|답)",
        r"^\W{0,4}(?:지시|명령|지침)\s*(?:사항)?\W{0,2}\s*[\])】:]|(?:아래|다음|이)\s(?:명령|지시)(?:을|를|만|대로)?\s?(?:그대로\s?)?(?:수행|실행|따르|따라)",
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
        r"\bfrom (?:now|here|this (?:point|moment)|today)(?: on(?:wards?)?| forward)?,?\s+(?:you|respond|answer|reply|act|behave|speak|only|always|never)\b(?!(?:['’]ll| can| will (?:be able|receive|find|get|see)))",
        r"\byou (?:will|must|shall|are to)(?: now| always| only)? (?:act|behave|pretend|obey|operate as|role-?play|respond (?:as|only|with)|answer (?:as|only|with))\b",
        r"\bwithout (?:any )?(?:ethical|moral|safety|content) (?:limits|limitations|restrictions|constraints|filters)\b|\banswer as (?:root|admin|an? (?:unrestricted|evil|uncensored))\b",
        r"\b(?:respond|answer|reply|speak) only (?:with|in|as)\b|\b(?:you(?:['’]re| are) in|enter|enable) (?:maintenance|debug|developer|god|admin|jailbreak) mode\b",
        r"(?:너|넌|네|당신)(?:는|은|이|가)?\s~{0,20}(?:역할|캐릭터|인격)(?:을|를|로|이)|(?:제약|제한|규칙|검열|필터)(?:이|은|을|를)?\s?(?:모두|전부)?\s?(?:해제|없애|끄)",
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
        r"\bas (?:the|an) (?:ai|assistant|language model|chatbot|llm)\b~{0,30}\b(?:your|you)\b|\byou are (?:an?|the) (?:\w+[- ]){0,3}(?:assistant|ai|chatbot|language model|bot)\b|\byour guidelines\b",
        r"\b(?:ai|llm|language) (?:assistants?|models?|agents?|systems?|bots?)\b~{0,60}\b(?:should|must|shall|need to|have to|are (?:required|instructed|asked) to)\b",
        rf"{_ROLES}\s?(?:비서|어시스턴트|에이전트)?(?:는|은|님|가)[\s,]~{{0,80}}(?:줘야|줄 것|주세요|주십시오|하세요|하라|추천해야)",
        rf"\b(?:notes?|messages?|instructions?|important|notice|attention|reminder|hint)\b~{{0,20}}\b(?:to|for) (?:the |any |all |this )?{_MODEL}\b",
        rf"\bif you(?:['’]re| are) an? {_MODEL}\b|\((?:for|to) (?:the )?{_MODEL}\)|\b(?:dear|attention,?) {_MODEL}\b",
        r"\b(?:nota di sistema|note syst[eè]me|nota del sistema|systemhinweis)\b",
        rf"{_ROLES}\s?{_ROLES}?(?:에게|님)\s?[:,]|(?:당신|너|네)(?:이|가|이가)\s?{_ROLES}(?:이?라면)",
        rf"{_ROLES}(?:는|은)\s~{{0,60}}(?:할 것|해야 (?:합니다|한다)|붙여야|하라|하십시오)",
    ),
    "imitates a role": _all(
        r"</?\s?(?:system|instructions?|prompt|admin)\s?>",
        r"^\W{0,4}system\W{0,4}:\s*(?:\w+ required\b|the user\b|grant\b|you\b|ignore\b|override\b|call\b|from now\b|new\b|do\b|please\b|"
        r"disregard\b|reveal\b|execute\b|run\b|all\b)",
        r"<\|(?:im_start|im_end|system|user|assistant)\|>|\[/?INST\]|<</?SYS>>|#{2,}\s*(?:end|start|begin) of (?:user|system|input|prompt|context)",
        r"^\W{0,4}assistant\W{0,4}:\s*(?:sure|of course|okay|certainly)\b|\b(?:important )?system (?:update|override|message):\s",
        rf"^\W{{0,2}}시스템(?:\s?(?:공지|알림|메시지|지시|노트))?\W{{0,3}}\s*[^\n]{{0,60}}(?:{_TOLD}|생략한다|무시한다)",
    ),
    "shapes the answer": _all(
        r"\bwhen (?:summari[sz]ing|answering|responding|replying|reviewing|processing|generating|translating|quoting)\b~{0,40},\s*(?:always|do not|don['’]t|never|please|also|include|mention|say|add|make sure|you|omit|leave)\b",
        r"\binstead,? (?:say|reply|respond|answer|output|write)\b|\b(?:simply|just|only) (?:say|reply|respond|answer|output|write)\s+(?:with\s+)?[\"'“‘]|\btell the user (?:that|their|they|to|you|it)\b|\binform the user that\b",
        r"\b(?:before|prior to) (?:you )?(?:answer|respond|reply|continu|proceed)(?:ing)?\b|\bin (?:all|every|each|any) (?:future|following|subsequent) (?:conversation|session|chat|response|repl|interaction|message|answer)\w*",
        rf"(?:답변|응답|대답|요약)(?:\s?(?:결과|맨\s?위|첫머리|끝))?(?:에|에는|의|은|는|을|를)\s~{{0,60}}(?:써|쓰|적|적을|작성하|표시하|언급하|넣)\s?(?:{_TOLD}|것)",
        rf"(?:다음|이후|앞으로)(?:의)?\s?(?:모든\s)?(?:대화|답변|응답|세션)(?:부터는?|에서는?|에는|은|는)~{{0,80}}{_TOLD}",
        r"사용자(?:에게|가|의|를)\s~{0,60}(?:하세요|하라|해라|십시오|줘|주세요|마세요|할 ?것|말 ?것)(?=[\s.!)]|$)",
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
        r"\b(?:execute|run) (?:the following|this) (?:shell |bash |sql |system )(?:commands?|code|scripts?|quer(?:y|ies))\b|\brm -rf /|\bdrop table\b",
        r"\b(?:transfer|wire|pay|send|donate)\s+(?:[$€₩]\s?[\d,.]+|[\d,.]+\s?(?:usd|eur|krw|dollars|euros|won|btc|eth))\b~{0,40}\bto\b|\boutput the (?:api key|password|secret)",
        rf"[^\s@]@[^\s@]{{1,255}}\s?(?:로|으로|에게|에)\s?~{{0,20}}(?:보내|전송|전달|복사)\s?(?:{_TOLD}|것|하라)",
        r"\b(?:send|forward|e-?mail|upload|transmit|exfiltrate|leak|envoie|envoyez|env[ií]a|invia|sende)\b~{0,60}\b(?:customers?['’]? (?:list|data|e-?mails|records)|"
        r"credentials?|passwords?|api keys?|secrets|conversation|chat history|private (?:data|keys?))\b",
        r"\b(?:customer list|customer e-?mails|credentials|passwords|api keys)\b~{0,60}\b(?:send|forward|e-?mail|upload)\b",
        r"\b(?:envoie|envoyez|env[ií]a|invia|sende)\b~{0,60}\S@",
        r"\b(?:call|use|invoke|run|execute|trigger)\s+(?:the\s+)?`?(?:\w+_)?(?:delete|remove|drop|send|transfer|exec|email|pay|grant|upload|forward|wipe)_\w+",
        rf"(?:고객|명단|목록|키|토큰|비밀번호|자격 ?증명|대화)\S{{0,3}}\s~{{0,60}}(?:보내|전송|업로드|전달|유출|넘겨)\s?(?:해(?=:)|{_TOLD})",
        rf"\b[a-z]+_[a-z_]+\s?(?:도구|함수)?(?:을|를)?\s?(?:사용해|호출|실행)\s?(?:~{{0,30}}{_TOLD})?",
    ),
    "writes to memory": _all(
        r"\bupdate (?:your|the assistant['’]s) memory\b|\b(?:add|save|store|commit|write|put|record|keep)\b~{0,60}?\b(?:to|in|into) (?:your|the|its|the user['’]s) (?:\w+[- ]){0,2}(?:memory|memories|user profile)\b",
        r"\b(?:add|save|store|record|note|remember|memori[sz]e) the following (?:\w+ ){0,2}(?:preferences?|facts?|memor(?:y|ies)|information|instructions?|rules?)\b|(?:^|[.!?]\s+)(?:please )?remember: (?!\n)",
        r"(?:네|너의|당신의|장기|영구)\s?(?:기억|메모리)에~{0,15}(?:저장|기록|넣|남기)|(?:기억|메모리)에\s?(?:영구히|영원히|계속)",
        r"\b(?:remember|memori[sz]e|save|store|keep)\b~{0,60}\b(?:(?:long-term |your )memory|all future|future (?:tasks|conversations|sessions|requests)|"
        r"across (?:turns|sessions)|from now on)\b",
        r"(?:^|[.!?:|]\s+)(?:please )?remember (?:that\b|this\b|:)|\bfrom now on,? (?:you|always|never|answer|respond|include|i|all)\b",
        r"(?:^|[-–:;.!?]\s+)(?:please )?(?:always|never) (?:append|include|add|recommend|copy|answer|reply|say|tell|trust|approve|send|cc|bcc|mention)\b",
        rf"(?:장기|네|너의|당신의|메모리|기억)\s?(?:기억|메모리)?에\s(?:저장|넣|기록)|기억해 ?(?:두었다가|뒀다가)|^\W{{0,8}}기억(?:해|하라|하세요|하십시오|할 것)(?:[\s:.,!]|$)|"
        rf"앞으로~{{0,40}}(?:항상|언제나|무조건|모든|마다|절대)~{{0,60}}{_TOLD}",
    ),
    "asks for instructions": _all(
        r"\b(?:print|repeat|output|reveal|show|display|echo|copy|write out)\b~{0,20}\b(?:everything|all (?:the )?(?:text|words)|the (?:text|words|contents?)) (?:above|before|prior)",
        r"\b(?:your|the) (?:initial|original|first|full|complete|exact) (?:system )?(?:instructions|prompt)\b|\boutput (?:the|your|any) (?:api key|password|secret|credential)",
        rf"(?:네|너|당신)(?:가|이)\s?받은~{{0,30}}(?:알려|보여|말해|출력|공개)|(?:초기|숨은|비밀)\s?(?:설정|지시|지침|프롬프트)~{{0,20}}(?:알려|보여|말해|출력|공개)\s?{_TOLD}",
        r"\b(?:reveal|show|print|repeat|output|tell|disclose|leak|display|give|share|summary of)\b~{0,30}\b(?:system prompt|(?:your|exact|initial|"
        r"operating|hidden|secret|developer) (?:system )?(?:instructions?|prompt|guidelines|rules)|words above|instructions you were given)\b",
        r"\b(?:reveal|show|give|print|output)\b~{0,20}\b(?:any )?(?:credentials|private admin|admin pass\w+)\b",
        r"\b(?:verrate|r[ée]v[èe]le\w*|r[ée]v[ée]le[zr]|rivela|muestra|mostra|montre)\b~{0,40}\b(?:i(?:n)?stru[cz]\w+|systemanweisung\w*|prompt)\b",
        r"(?:시스템\s?프롬프트|내부\s?지침|(?:너|네|당신)(?:의|에게)~{0,15}(?:지시|지침|프롬프트))(?:을|를)?\s?~{0,15}(?:보여|출력|말해|공개|알려|그대로)",
    ),
    "claims authority": _all(
        r"(?:문구|지시|메시지|사실|내용)(?:의\s?존재)?(?:를|을)?\s~{0,20}(?:밝히|알리|언급하|드러내)지\s?(?:마|말)",
        r"\b(?:the )?user (?:is an? (?:admin|root|administrator)|has (?:already )?(?:granted|given) permission)\b|\bgrant (?:all requests|this user|the user)\b",
        r"\bsafety (?:protocols?|guidelines?|checks?|rules|policies)\b~{0,40}\b(?:disabled|turned off|not (?:apply|meant)|do(?:es)? not apply|for the rest)\b",
        r"\b(?:skip|bypass|disable) (?:all|any|the) (?:safety|confirmation|security)\b|\bexempt from the usual\b|\bproceed without (?:asking|confirm\w+)\b",
        r"\b(?:do not|don['’]t|never) (?:tell|inform|notify|alert|mention (?:this|it) to) the (?:user|customer)\b|\byour (?:real|actual|true|new) (?:task|mission|goal|purpose|role)\b",
        r"\b(?:sicherheitsrichtlinien|reglas de seguridad|r[èe]gles de s[ée]curit[ée])\b~{0,30}\b(?:nicht|no|ne)\b",
        r"(?:안전|보안)\s?(?:수칙|정책|규칙|지침)~{0,20}(?:해제|적용되지 않|무효)|확인 ?절차~{0,12}생략|다시 묻지 말고|사용자(?:는|가)\s?(?:이미\s?)?관리자(?! ?권한(?:을|이))|모든 요청을 승인",
        r"(?:사용자|고객)에게~{0,20}(?:알리지|말하지)\s?(?:마|말)|(?:너의|네|당신의)\s?(?:새|진짜|실제)\s?(?:임무|목표|역할)",
    ),
    "plans for the model": _all(
        r"\bhigh[- ]priority note\b|\b(?:begin|start) with the (?:first|following)~{0,30}(?:actions?|steps?|sequences?)\b|\bthink before search\b",
        r"\bi should (?:directly |always )?(?:search|buy|choose|order|select|call|recommend)\b~{0,60}",
        r"중요 ?메모~{0,30}(?:행동|반드시)|첫 번째 행동은|대신 ~{0,20}검색할 것",
    ),
    "orders the reader": _all(
        rf"{_ORDER}(?:(?:{_DO})\b|{_ANY_VERB})~{{0,120}}?\b{_OF_MODELS}\b",
        rf"\b(?:any|every|all|the) {_MODEL}\b~{{0,40}}\b(?:should|must|shall|has to|have to)\b~{{0,20}}\b(?:{_DO}|ignore|disregard|obey|comply)\b",
        rf"\bif you(?:['’]re| are) (?:summari[sz]|read|process|review|translat)ing\b~{{0,40}},\s*(?:please )?(?:{_DO})\b|\byou do not need (?:permission|approval|confirmation)\b",
        r"\b(?:override|unlock) (?:code|all features)\b|\b(?:call|run|use|invoke)\s+`?[a-z]+_[a-z_]+`?\b~{0,80}\bbefore you\b",
        rf"\b{_OF_MODELS}\b~{{0,40}}, (?:always |never |please )?(?:{_DO})\b",
        rf"\b(?:make sure|ensure)\b~{{0,60}}\b{_OF_MODELS}\b",
        r"\b(?:rate|rank|score|describe) (?:this|the|our) \w+ (?:as |at )?(?:excellent|the best|highest|positively|\d+/\d+)",
        rf"{_OF_MODELS_KO}~{{0,80}}?{_ORDERED}",
        rf"(?:\b[a-z]+_[a-z_]+(?:로|으로|을|를)|데이터를 내보내|잠금을 풀|결제를 승인|(?:항상|언제나) ~{{0,20}}(?:대답|답변|응답))~{{0,40}}{_ORDERED}",
        r"(?:규정|규칙|제약)에 (?:얽매이|구애)|사실로 (?:취급|간주)",
    ),
    "asks to decode and obey": _all(
        r"\bdecode\b~{0,60}\b(?:do (?:exactly )?what|follow|execute|obey|carry out|run)\b|\bdo exactly what it says\b",
        r"(?:해독|디코딩|복호화)~{0,20}(?:실행|따르|수행)",
    ),
}  # fmt: skip
