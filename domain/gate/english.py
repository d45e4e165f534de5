"""The rules for English: what a clause states, and what makes a sentence no statement."""

from __future__ import annotations

import re
from typing import Final

from mnemolog.domain.gate.candidates import Span
from mnemolog.domain.gate.mood import states
from mnemolog.domain.gate.rules import (
    CONSTRAINT,
    PREFERENCE,
    Check,
    Language,
    Lazy,
    Rule,
    group,
    lacks,
    words,
)


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_NO_STATEMENT: Final = _re(
    r"\b(?:maybe|perhaps|i (?:think|guess|believe|suppose|assume|doubt)|probably|possibly|not (?:so |really )?sure|"
    r"might|seems?|apparently|presumably|supposedly|iirc|no idea|if i (?:recall|remember)|don['’]t quote me|"
    r"sort of|kind of|could be|may be|not certain|as far as i|afaik|to my knowledge|last i (?:checked|heard)|i(?: have|['’]ve)? heard|from what i|rumou?r)\b"
    # hypothetical
    r"|(?:^|[,;:]\s*)(?:suppose|imagine|supposing|assuming|hypothetically|what if|pretend|let['’]s (?:say|pretend|"
    r"assume|imagine)|let us (?:say|assume)|say (?:the|i|we|my)|in case|unless(?! (?:i|we) (?:say|ask|tell|state|specify)\b| (?:otherwise )?(?:stated|noted|asked|specified)\b)|were i|had i|in theory|"
    r"for (?:example|instance)|e\.g)\b|\b(?:would(?!\s+rather)|i['’]d(?!\s+rather)|could have|should have|as if)\b"
    # given up
    r"|\bnever ?mind\b|\bgave up\b|\bdropped (?:the|that) idea\b|\bdecided against\b|\bbut no\b|\b(?:was|were) (?:about|"
    r"going) to\b|\b(?:tried|hoped|wanted|planned|meant) to\b|\balmost\b|\bnearly\b|\bconsider(?:ed|ing)\b|"
    r"\bused to\b(?!.{1,60}?\b(?:but )?now (?:it|we|i|they)\b)|\bscrap that\b|\bforget (?:it|that)\b"
    # somebody else's words
    r"|(?<!\bi )(?<!\bwe )\b(?:said|says|saying|reads|wrote|writes|claims?|claimed|told|tells|according to)\b|"
    r"^(?:please |can you |could you )*(?!remember|note|memori|save|store|keep|record)\w+ (?:this|that|it|these|the following)\b[^:.]{0,30}:|"
    r"^(?:please )?(?:translate|proofread|fix the (?:grammar|spelling)|rephrase|rewrite)\b"
    # jokes
    r"|^(?:yeah|sure|right|of course|oh (?:great|sure|yeah|wonderful|joy)|well sure)[,!]* (?:and|because|right)\b|\b(?:lol|lmao|rofl|haha\w*|hehe\w*|jk)\b|[😂🤣😜😝🙃😆]"
)
_JOKE: Final = _re(
    r"\b(?:just |only )?(?:kidding|joking)\b|\bjust a joke\b|\bjk\b|(?<=[.!?] )(?:(?:ha){2,}h?|lol|lmao)$"
)
"""Takes back what was said before it in the same turn."""
_TAKEN_BACK: Final = _re(r"\bnever ?mind\b|\bscrap that\b|\bforget (?:it|what i)\b")
_CONDITION: Final = _re(r"^(?:but |and |so |then )*(?:if|when(?! it comes to\b)|once|whether)\b")
_PASSING: Final = _re(
    r"\b(?:this time|just (?:this )?once|only once|right now|for now|tonight|today(?!['’]s| on)|tomorrow|this (?:one|file|task|pr|"
    r"paragraph|e-?mail|message|question|answer|morning|afternoon|evening|version|draft|round|reply|response|report|section|table|text|"
    r"list|slide|chart|page|sentence|letter|post|chat|conversation|session)|yet|here(?! on\b)|at the moment|so far|until then)\b"
)
"""Said of the moment, not for good: no rule and no preference."""
_CORRECTS: Final = _re(
    r"^(?:(?:small |quick |one )?correction|actually|no|nope|nah|wait|sorry|wrong|that(?:['’]s| is|['’]s been| was) (?:wrong|not (?:quite )?(?:right|correct|true)|incorrect|"
    r"outdated|out of date|old|a typo)|i (?:said|told you|meant|misspoke|was wrong|made a mistake|mistyped)|to correct|let me correct|my mistake|my bad|oops|not quite|not exactly|"
    r"you(?: have|['’]ve)?(?: got)? .{1,20} (?:wrong|mixed up|confused|backwards)|you misunderstood|you(?:['’]re| are) (?:wrong|mistaken|mixing)|scratch that|hold on|hang on)\b"
)
_TIME_HEAD: Final = _re(r"(?:starting|beginning|effective|as of|as from|from|since)\b")

_JOINT: Final = _re(
    r"(?:(?<!settled)(?<!decided)(?<!decision)(?<!agreed)(?<!now on)(?<!here on)(?<!forward)(?<!future)(?<!henceforth)\s*[,;:–—]\s*|\s+-\s+|(?=\s+(?:and|but|so|because|though|then|also|anyway)\b))"
    r"(?:\s*\b(?:and|but|so|because|though|then|also|anyway|by the way|btw|(?<=but )now)\b,?)*\s*"
    r"(?=(?:i|i['’]m|i['’]ve|my|we|we['’]ve|we['’]re|our|please|(?:(?<=and )|(?<=but )|(?<=so ))(?:it|they)(?: is| are|['’]s|['’]re)|(?<=[:;–—] )(?:never|always|do not|don['’]t)|(?:(?<=, and )|(?<=, so )|(?<=, but ))(?:never|do not|don['’]t)|from now on|"
    r"the [\w' /-]{1,40}? (?:is|are|has|have|was|changed)|(?-i:[A-Z])[\w'’.-]*(?: (?-i:[A-Z])[\w'’.-]*)? (?:owns|leads|maintains|is (?:the (?:owner|lead|maintainer)|responsible for|in charge)))\b)"
)
_FILLER: Final = _re(
    r"(?:snippet|summary|content|title|note|text|description|body|excerpt):\s+|(?:(?:hi|hello|hey)(?: there)?|ok(?:ay)?|so|well|oh|ah|and|but|also|anyway|anyhow|by the way|btw|actually|fyi|"
    r"yes|yeah|yep|sorry|wait|please|just|to be clear|in fact|in general|generally|correction|as you know|just so you know|honestly|frankly|to be honest|tbh|i meant(?: to say)?(?: that)?|i mean|"
    r"that['’]s (?:wrong|right|outdated|not right)|thanks|thank you|before we start|one more thing|also note|nope|my bad|my mistake|i misspoke(?: earlier)?|"
    r"(?:small|quick|one) (?:correction|note|update|change|thing|intro|context|question)|update|heads[- ]up|for context|context|in the end|ultimately|eventually|finally|"
    r"at (?:work|home|the office|our company)|(?:at|in|during) (?:(?:the|our|this|today['’]s|yesterday['’]s) )?(?:\w+ ){0,2}(?:meeting|call|stand-?up|retro(?:spective)?|sync|planning|discussion)(?=,| (?:we|i)(?:['’]ve| have)? (?:decided|agreed|settled|chose)\b)|(?:after|following) (?:much|some|a lot of|long|today['’]s|yesterday['’]s|the) [\w ]{2,30}?(?=,| (?:we|i)(?:['’]ve| have)? (?:decided|agreed|settled|chose)\b)|when it comes to [^,]{2,40}(?=,)|"
    r"as (?:for|far as) [^,]{2,40}(?=,)|for (?:what it['’]s worth|the record)|as it happens|as you may know|fun fact|note that|no no|by default(?=, (?:i|we)))\b[,:;!–—-]*\s+|no[,;:]\s+"
)

_ASKED: Final = _re(
    r"(?:(?:hey|hi|ok|and|also|so)[, ]+)*(?:please\s+|(?:can|could|would|will) you (?:please )?|i(?: want|['’]d like|"
    r" need) you to |you should )*"
    r"(?:(?:always )?(?:remember|keep in mind|bear in mind|note|don['’]t forget|do not forget|memori[sz]e|make sure (?:you |to )?(?:remember|know)|be aware)"
    r"(?:\s+(?:that|this|for (?:later|me|next time)))*"
    r"(?:\s*[:–—]\s*|(?<=that)\s+|(?:,\s*please[:,]?)?\s+(?=(?:i|i['’]m|my|we|our|the (?:[\w'-]+ ){1,4}?(?:is|are|was|has|have|will|must|can))\b))"
    r"|(?:(?:one|a|another|quick|small|last) )*(?:things?|facts?|notes?|details?|info) to (?:remember|keep in mind|note|memori[sz]e)(?: for (?:later|me|next time))?[:–—]\s*"
    r"|(?:make|take) (?:a )?(?:mental )?note(?: of (?:this|the fact))?(?: that)?[:,\s]\s*|(?:write|jot|note) (?:this|that) down[:,]\s*|remind yourself that\s+|(?:save|store) (?:this|that)(?: (?:for (?:later|next time|me)|please|to memory))*[:,]\s*"
    r"|for (?:future|your) reference[:,]?\s*|for the record[:,]?\s*|remember[:,]\s*(?=(?:my|our|we|the)\b)|(?:please keep (?:this|that|it) in mind|keep (?:this|that|it) in mind|(?:log|write|jot|put|file|record|pin|note) (?:this|that|it)(?: down| away| somewhere| in your (?:memory|notes))?)[:,]\s*(?=(?:i|i['’]m|my|our|we|the)\b)|note to self[:,]\s*)(?=\w)"
)
"""Asks to remember what follows."""
_NOT_ASKED: Final = _re(r"(?:when|how|why|who|where|what|me|to|the time|those days)\b")

_PRONOUN: Final = (
    r"^(?:it|this|that|these|those|them|him|her|you|me|us|what|how|when|why|where|who|not|to|so)\b"
)
_PASSING_LIKING: Final = r"^(?:all )?(?:the|your|his|her|their|its)\b|^just\b|\b(?:one|ones|option|version|first|second|former|latter)$"
_STATE: Final = (
    r"^(?:(?:so|very|really|too|quite|pretty|super|a bit|a little|about|from|like|my|our|much|more|less)\b|(?:not |still |also |all |being |only |just |already )*(?:awesome|amazing|"
    r"cute|important|urgent|perfect|beautiful|delicious|gorgeous|adorable|lovely|crazy|weird|funny|happy|sad|\w+ed|\w+ing|good|fine|"
    r"ok(?:ay)?|bad|slow|fast|late|early|down|up|broken|ready|done|gone|red|green|open|shut|full|empty|wrong|right|dead|"
    r"busy|frozen|lost|hidden|torn|worn out|an? (?:mess|disaster|joke|nightmare|pain|shame|miracle|dream|bit \w+)|here|there|great|nice|better|worse|clear|complete|available|unavailable|stuck|hard|easy|big|small|old|new|"
    r"back|over|sick|tired|safe|true|false|different|the same|that|what|how|because|if|whether|to \w+|\w+(?:ful|ous|less))\b(?! \w+ \w))"
)
_NO_ATTRIBUTE: Final = (
    r"^(?:question|point|guess|problem|issues?|concern|ideas?|thoughts?|turn|fault|bad|apolog(?:y|ies)|understanding|hopes?|"
    r"worry|head|computer|laptop|app|code|build|day|mood|favou?rites?|favou?rite part|situation|fam(?:ily)?|art|passion|first time|last|next|only|intention|advice|"
    r"opinion|plan|goal|feeling|experience|boss|life|god|train|flight|bus|taxi|order|package|parcel)$"
)
_RELATIVE: Final = (
    r"^(?:\w+ )?(?:brother|sister|mother|father|mom|mum|dad|son|daughter|wife|husband|cousin|uncle|aunt|friend|"
    r"neighbou?r|grand\w+|partner|boyfriend|girlfriend|kids?|child|children|parents?|colleague|roommate|client|boss|"
    r"famil(?:y|ies)|people|folks|guys|girls?|boys?|couple|tenant|landlord|landlady|customer|student|teacher|in-law)s?$"
)
_SUBJECT: Final = r"(?:i|we|you|he|she|they|it|this|that|there|everyone|people|nobody)\b"
_NAMED: Final = re.compile(r"[A-Z0-9]")
_ATTRIBUTES: Final = words(
    "deadline due_date launch_date release_date release_day budget rate price fee port ssh_port host hostname address "
    "url domain endpoint base_path branch default_branch version stack time_zone timezone working_hours opening_hours "
    "support_hours currency locale account_number invoice_address contact point_of_contact owner maintainer lead "
    "project_name code_name codename repo repository database primary_database staging_server staging_url region sla "
    "retention_period retention limit threshold quota timeout schedule meeting_room stand-up standup review sprint_length"
)
_WORK: Final = words(
    "nurse doctor teacher engineer developer programmer designer lawyer writer editor translator student researcher "
    "scientist analyst architect consultant accountant chef cook pilot farmer artist musician photographer journalist "
    "manager director founder freelancer carpenter electrician plumber mechanic pharmacist dentist veterinarian vet "
    "professor lecturer librarian therapist psychologist physiotherapist paramedic firefighter economist historian "
    "paralegal barista tutor nanny midwife optician radiologist surgeon psychiatrist surveyor interpreter recruiter auditor "
    "biologist chemist physicist mathematician statistician administrator producer composer novelist poet"
)
_DIET: Final = (
    r"vegetarian|vegan|pescatarian|(?:lactose|gluten)[- ]intolerant|diabetic|(?:a )?coeliac|celiac|left-handed|"
    r"right-handed|colou?r-?blind|teetotal|deaf|dyslexic|hard of hearing"
)
_NOT_ANY_MORE: Final = r"(?: any ?more| any longer| these days| now)?"
_INSTEAD: Final = r"(?: (?:instead of|rather than|in place of|and no longer|not) (?P<o>[^,;]+?))?"
_DO: Final = r"(?!(?:know|think|worry|mind|see|understand|remember|believe|care|have|need|want|like|get|forget|hesitate|bother|panic|be|feel|seem|quote me|give|quit|lose|let|miss|look|stop|doubt|fear|underestimate|regret|sweat|settle|thank|hurt|\w+ed|saw|knew|went|had|got|was|were|i|you|we|the|a)\b)"
_V: Final = r"(?P<v>(?:[^,;]|,(?=\d)){1,120}?)"
_WHEN: Final = (
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|may|june|july|august|september|october|"
    r"november|december|q[1-4]|weekdays?|weekends?|midnight|noon|day|week|month|year|quarter|spring|summer|autumn|winter)\b|\d"
)
_MONTHS: Final = r"january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_WHEN_TOO: Final = rf"(?:on |at |every |from |until |the )*(?:\d|noon|midnight|mon|tues|wednes|thurs|fri|satur|sun|{_MONTHS})"
_PLURAL_BEFORE_VERB: Final = r"\b(?:and|who|that|which|is|are|was|has)\b"
_EVER: Final = r"(?:,? (?:ever(?: again)?|no matter what|under any circumstances|without exception|please|ok(?:ay)?|at all))*"
_LINE: Final = rf"(?P<v>.{{2,200}}?){_EVER}"
_MOST: Final = (
    r"(?: (?:the )?(?:best|most)| a lot| very much| so much| better(?: than [^,;]+?)?| more than [^,;]+?)?"
)
_ACROSS: Final = r"(?: (?:across|throughout|everywhere in) (?:the|our|all|every)\b[^,;]*)?"
_STANDING: Final = (
    r"(?:(?:every(?: single)?|each|any) time|whenever|anytime) (?:i|you|we|there(?:['’]s| is)|someone|the|an?) ?[^,;]*,|(?:as a (?:general )?rule(?: of thumb)?|by default|without exception|at all times|"
    r"until (?:i (?:say|tell you) otherwise|further notice)|unless (?:i|we) (?:say|ask|tell you|state|specify)(?: otherwise| for \w+)?|unless (?:otherwise )?(?:stated|noted|asked|specified)(?: otherwise)?|"
    r"(?:in|for|on|at the (?:end|top|start|beginning) of) (?:all|any|every|each)(?: (?:of )?(?:the|your|my|our))? (?:future )?[\w' -]{2,40}?,|from this (?:point|moment|day) (?:on|onwards?|forward)|from here on out|moving forward|"
    r"(?:starting|beginning|as of|effective) (?:now|today|immediately)|for the rest of (?:this|our|the) [\w ]{2,20}),?"
)
_STANDING_BEHIND: Final = (
    r"(?:from now on|going forward|moving forward|in (?:the )?future|from here on(?: out)?|from this point (?:on|forward)|every (?:single )?time|each time|at all times|by default|"
    r"unless (?:i|we) (?:say|ask|tell you|state|specify)(?: otherwise)?|until (?:i say otherwise|further notice)|(?:every time|each time|whenever) (?:i|you|we) [^,;]{2,80})"
)
_DOES: Final = words(
    "draft write reply answer respond summarise summarize translate explain show give list quote cite refer format generate create review address mention describe suggest recommend book schedule plan code"
)
_OUTPUTS: Final = words(
    "answer answers reply replies response responses email emails e-mail e-mails message messages summary summaries draft drafts commit commits report reports snippet snippets example examples post posts "
    "letter letters document documents translation translations list lists table tables chart charts invoice invoices file files function functions test tests query queries page pages paragraph paragraphs section sections"
)
_STAFF: Final = (
    r"(?:my [\w-]+ and i|(?:the|our) (?:\w+ )?(?:team|board|company|group|committee|family|management)|we|i)"
)
_PLACES: Final = (
    r"office|offices|headquarters|hq|warehouse|data ?cent(?:er|re)|server|servers|factory|plant|studio|shop|store|lab|branch|house|flat|apartment|"
    r"cluster|backups?|support (?:team|desk|line)|help ?desk|head office|main office|new office|school|clinic|workshop"
)
_THING: Final = r"[^;:]{1,100}?"
_VALUE: Final = r"(?P<v>[^;]{1,120}?)$"
_RELATION: Final = (
    r"(?:is|was) (?:a citizen|married|located|founded|created|performed|developed|employed|affiliated|associated|born|written|famous|educated|"
    r"produced|directed|owned|headquartered)(?: (?:in|of|to|by|with|for|at))?(?: the (?:city|country|continent|religion|sport|language|field) of)?|"
    r"plays the position of|speaks the language of|(?:died|worked|works|lives) in(?: the (?:city|field) of)?"
)
_END: Final = r"(?:\s*(?:;|,(?!\d)).*|\s+(?:because|since it|as it|so that|so)\b.*)?$"


def _capitalised(name: str) -> Check:
    """A name begins with a capital; the pattern itself ignores case."""
    return lambda found: _NAMED.match(group(found, name) or "") is not None


def _people_have_names(found: re.Match[str]) -> bool:
    """ "My manager is Ana" names one; "my brother is a teacher" talks about him."""
    of_person = re.match(_RELATIVE, found["a"], re.IGNORECASE)
    return of_person is None or _NAMED.match(found["v"]) is not None


def _orders(name: str) -> Check:
    """It is an order, as far as its first word tells."""
    return lambda found: not states(group(found, name) or "")


_TIME: Final = re.compile(
    rf"(?:on |every |at )?(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})|(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?|\d{{4}}-\d\d-\d\d|\d{{1,2}}(?::\d\d)? ?[ap]\.?m\b|\d{{1,2}}:\d\d|noon|midnight|(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b)",
    re.IGNORECASE,
)


def _is_time(found: re.Match[str]) -> bool:
    return _TIME.match(found["v"]) is not None


def _told_when(found: re.Match[str]) -> bool:
    return re.search(_WHEN, found["v"], re.IGNORECASE) is not None


_LIKING: Final = (lacks("v", _PRONOUN), lacks("v", _PASSING_LIKING))
_HABIT: Final = (
    lacks("v", r"^(?:\w+ed|knew|said|thought|was|were|did|had|went|got|saw|heard|be|been|want|feel|felt|"
          r"forget|know|wonder|thinking|wonder|mind|get|seem)\b"),
)  # fmt: skip
_ADJECTIVE: Final = lacks("v", _STATE)


def _is_named_or_no_state(found: re.Match[str]) -> bool:
    """New Delhi is a name, "new" a state."""
    return _NAMED.match(found["v"]) is not None or _ADJECTIVE(found)


_RULES: Final[tuple[Rule, ...]] = (
    # who somebody is
    Rule("name", Lazy(rf"my (?:full |first )?name(?: is|['’]s) (?P<v>[^,;]{{2,60}}?){_END}"), attribute="name",
         confidence=0.95, fits=(lacks("v", r"^(?:not|now|in|on|spelled|too|\w+ing)\b"),)),
    Rule("spelled", Lazy(rf"my (?P<a>(?:first |last |full |middle |family )?name|surname) is (?:spelled|spelt|written) {_V}(?:,? not (?P<o>[^,;]+?))?{_END}")),
    Rule("name", Lazy(rf"i(?: am|['’]m) called (?P<v>[^,;]{{2,40}}?){_END}"), attribute="name"),
    Rule("name", Lazy(rf"(?:(?:{_STANDING}|from now on|going forward),? )?(?:please |always |just )*(?:you (?:can|may|should) )?call me (?P<v>[^,;]{{2,40}}?){_NOT_ANY_MORE}(?: from now on)?{_END}"),
         attribute="name", fits=(_capitalised("v"), lacks("v", r"\b(?:at|on|when|back|tomorrow|later)\b"))),
    Rule("name", Lazy(rf"(?:please |always )*(?:address me as|refer to me (?:only )?as) (?P<v>[^,;]{{2,40}}?){_NOT_ANY_MORE}(?: from now on)?{_END}"), attribute="name"),
    Rule("corrected", Lazy(rf"you (?:wrote|spelled|spelt|have|got|had|put)(?: down)? (?P<w>my|our) (?P<a>[\w' /-]{{2,40}}?) (?:wrong|down wrong|incorrectly)[,;:–—]+ ?(?:it['’]s|it is|it should be) {_V}(?:,? not (?P<o>[^,;]+?))?{_END}"), personal=False),
    Rule("name", Lazy(rf"(?:(?:people|friends|everyone|everybody|my friends) (?:all )?calls? me|i go by) (?P<v>[^,;]{{2,40}}?){_END}"), attribute="name",
         fits=(_capitalised("v"),)),
    Rule("home", Lazy(rf"i(?: now)? live in {_V}{_NOT_ANY_MORE}{_END}"), attribute="home", dated=True,
         fits=(lacks("v", r"^(?:my|fear|hope|constant)\b"),)),
    Rule("home", Lazy(rf"i(?: am|['’]m) (?:now )?(?:based|living) in {_V}{_NOT_ANY_MORE}{_END}"), attribute="home",
         dated=True),
    Rule("home", Lazy(rf"i(?:['’]ve| have)?(?: just)? (?:moved|relocated)(?: from (?P<o>[^,;]+?))? to {_V}{_END}"),
         attribute="home", dated=True, fits=(_capitalised("v"),)),
    Rule("occupation", Lazy(rf"i work as (?:an? )?{_V}{_END}"), attribute="occupation", dated=True),
    Rule("occupation", Lazy(rf"i(?: am|['’]m) an? (?P<v>(?:[\w-]+ ){{0,3}}(?:{_WORK}))(?: (?:at|by|in|from|based|living|working)\b.*)?{_END}"),
         attribute="occupation"),
    Rule("employer", Lazy(rf"i(?: now)? work (?:at|for) {_V}{_NOT_ANY_MORE}{_END}"), attribute="employer",
         dated=True, fits=(lambda found: re.search(r"\b[A-Z0-9]", found["v"]) is not None, lacks("v", r"^(?:my|an?|his|her|their|him|them|you|free)\b"))),
    Rule("employer", Lazy(rf"i(?:['’]ve| have)?(?: just| recently)? (?:started|begun|got|landed|accepted) (?:an? |my )?(?:new )?(?:job|position|role) (?:at|with) {_V}{_END}"),
         attribute="employer", dated=True, fits=(_capitalised("v"),)),
    Rule("manager", Lazy(rf"i report (?:directly )?to {_V}{_END}"), attribute="manager", fits=(lacks("v", _PRONOUN),)),
    Rule("team", Lazy(rf"i(?:['’]ve| have)?(?: just| recently)? joined (?:the )?{_V}{_END}"), attribute="team", dated=True,
         fits=(lacks("v", _PRONOUN), lambda found: re.search(r"\b(?:team|group|department|squad|division|crew)\b|^[A-Z]", found["v"]) is not None)),
    Rule("team", Lazy(rf"i(?: am|['’]m) (?:on|in|part of) (?:the |our )?(?P<v>[\w' &/-]{{2,40}}? (?:team|group|department|squad|division)){_END}"), attribute="team"),
    Rule("time zone", Lazy(rf"i(?: am|['’]m)(?: based)? (?:in|on) (?:the )?(?P<v>(?:utc|gmt)\s?[+-]?\d*|cet|cest|est|edt|pst|pdt|cst|jst|kst|ist|\w+ (?=time))(?: (?:time ?)?zone| time)?(?:,? not (?P<o>[^,;]+?))?{_END}"),
         attribute="time zone"),
    Rule("age", Lazy(r"i(?: am|['’]m)(?: now| already)? (?P<v>\d{1,2})(?: years old)?(?:,? not \d+)?$"), attribute="age", confidence=0.8),
    Rule("born", Lazy(rf"i was born (?:in|on) {_V}{_END}"), attribute="born", fits=(lacks("v", r"^(?:a|the|an)\b"),)),
    Rule("from", Lazy(rf"i(?: am|['’]m)(?: originally)? from {_V}{_END}"), attribute="origin", fits=(_capitalised("v"),)),
    Rule("drives", Lazy(rf"i (?:drive|ride|own|play) (?:an? |the )?{_V}{_END}"), relation="has", fits=(_capitalised("v"),)),
    Rule("has", Lazy(rf"i(?: have|['’]ve got|['’]ve got) (?P<v>(?:an?|one|two|three|four|five|six|\d+) (?:[\w-]+ )?(?:kids?|child|children|sons?|daughters?|brothers?|sisters?|cats?|dogs?)){_END}"),
         relation="has"),
    Rule("cannot", Lazy(rf"i (?:can['’]t|cannot|can not|do not(?: know how to)?|don['’]t(?: know how to)?) (?P<v>drive|swim|cook|dance|sing|ski|ride a bike|read music|code|type|whistle|speak \w+|read \w+|eat \w+(?: \w+)?){_NOT_ANY_MORE}{_END}"), relation="ability", negated=True, confidence=0.8,
         fits=(lacks("v", r"^eat\b|it$|this$|that$|right now"),)),
    Rule("has not", Lazy(rf"i (?:do not|don['’]t) (?:have|own) (?:an? |any )?(?P<v>[\w' -]{{2,40}}?){_NOT_ANY_MORE}{_END}"), relation="has", negated=True, confidence=0.75,
         fits=(lacks("v", r"^(?:time|idea|clue|the|to|it|that|this|anything|enough|much|many|access|problem|issue|question|plan|choice|patience|energy|strong|preference|opinion)|\b(?:yet|now|today)\b"),)),
    Rule("speaks", Lazy(rf"i speak (?:both )?{_V}{_END}"), relation="speaks", fits=(_capitalised("v"),)),
    # what has changed
    Rule("changed", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) (?:has |have )?(?:been )?(?:was |is being |got )?"
         rf"(?:changed|moved|renamed|switched|updated|raised|lowered|increased|reduced|bumped|set|postponed|rescheduled|went up|went down|risen|rose|fallen|fell)"
         rf"(?: from (?P<o>[^,;]+?))? to {_V}{_END}"), whose="team", personal=False, dated=True, fits=(lacks("a", _RELATIVE),)),
    Rule("now", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) (?:is|are) now (?:at )?{_V}{_INSTEAD}{_NOT_ANY_MORE}{_END}"),
         whose="team", personal=False, fits=(_ADJECTIVE, lacks("v", r"^not\b"))),
    Rule("changed", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) (?:is|are) no longer (?P<o>[^,;]+?), (?:it['’]s|it is|but|they['’]re) (?:now )?{_V}{_END}"),
         whose="team", personal=False, fits=(_ADJECTIVE,)),
    Rule("changed", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) (?:is|are) {_V} now(?:,? (?:rather than|instead of|not|and not|and no longer) (?P<o>[^;]+?))?{_END}"),
         whose="team", personal=False, fits=(_ADJECTIVE, lacks("v", r"^not\b|^\w+ing\b|ly$|\bright$"), lacks("a", _NO_ATTRIBUTE), _people_have_names)),
    Rule("changed", Lazy(rf"(?:we|i)(?:['’]ve| have)?(?: just| recently)? (?:changed|updated|got a new|have a new|switched) (?:(?P<w>my|our|the) )?(?P<a>[\w' /-]{{2,40}}?)[,;:–—-]+ ?(?:(?:and )?(?:the new one is|it is now|it['’]s now|now it['’]s|it['’]s|it is|new one:?|they['’]re now) ){_V}{_END}"),
         personal=False),
    Rule("changed", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) used to be (?P<o>[^,;]+?),? (?:but |and )?now (?:it['’]s|it is|they['’]re|they are) {_V}{_END}"),
         whose="team", personal=False, fits=(lacks("a", _RELATIVE),)),
    Rule("changed", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) (?:has |have )?(?:changed|moved)[,;:–—-]+ ?(?:and )?(?:it['’]s|it is|they['’]re|they are)(?: now)? {_V}(?: now)?{_END}"),
         whose="team", personal=False, fits=(lacks("a", _RELATIVE),)),
    Rule("changed", Lazy(rf"(?P<a>[\w./-]+(?: [\w./-]+){{0,2}}?) (?:has|have) (?:just )?been (?:migrated|moved|switched|upgraded|changed|renamed)(?: over)?(?: from (?P<o>[^,;]+?))? to {_V}{_END}"),
         whose="team", personal=False, dated=True, fits=(lacks("a", rf"^{_SUBJECT}|^(?:the|my|our|his|her|their|your|which|who)\b"), lacks("a", _RELATIVE), lacks("v", _PRONOUN))),
    Rule("new", Lazy(rf"(?P<w>the|our|my) new (?P<a>[\w' /-]{{2,40}}?) is {_V}(?:,? not (?P<o>[^,;]+?))?{_END}"), whose="team", personal=False,
         fits=(_is_named_or_no_state, lacks("v", r"^(?:not|that|what|how|why|to|if|whether)\b"), lacks("a", _RELATIVE), lacks("a", r"\b(?:and|that|who)\b"))),
    Rule("replaced", Lazy(rf"(?:we|i|our team|the team)(?: have| has|['’]ve)?(?: just| now| recently)? (?:swapped|traded|exchanged|ditched|dropped)(?: out)? (?P<o>[^,;]+?) (?:for|in favou?r of) {_V}{_END}"),
         relation="use", whose="team", personal=False, dated=True, fits=(lacks("o", _PRONOUN), lacks("v", _PRONOUN))),
    Rule("replaced", Lazy(rf"(?P<v>[\w'./-]+(?: [\w'./-]+){{0,3}}?) (?:has |have )?(?:now )?(?:replaced|replaces|superseded) (?P<o>[^,;]+?)(?: as (?:our|the) (?P<a>[^,;]+?))?{_END}"),
         relation="use", whose="team", personal=False, fits=(_capitalised("v"), lacks("o", _PRONOUN), lacks("v", rf"^{_SUBJECT}"))),
    Rule("replaced", Lazy(rf"(?P<o>[\w'./-]+(?: [\w'./-]+){{0,3}}?) (?:has been|was|is being|got|is) replaced (?:by|with) {_V}{_END}"),
         relation="use", whose="team", personal=False, dated=True, fits=(lacks("v", _PRONOUN), lacks("o", rf"^{_SUBJECT}"))),
    Rule("used", Lazy(rf"instead of (?P<o>[^,;]+?),? (?P<w>we|i)(?: now)?(?: use|['’]re using| are using|['’]m using)(?: now)? {_V}{_NOT_ANY_MORE}{_END}"), relation="use", personal=False,
         fits=(lacks("v", _PRONOUN),)),
    Rule("moved over", Lazy(rf"(?:we|i|our team|the team)(?: have| has|['’]ve|['’]re| are)?(?: just| now)? (?:switched|migrated|moved|"
         rf"switching|migrating|moving)(?: over)? from (?P<o>[^,;]+?) to {_V}{_END}"), relation="use", whose="team",
         personal=False, dated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("moved over", Lazy(rf"(?:we|i)(?: have|['’]ve)?(?: just| now)? (?:switched|migrated)(?: over)? to {_V}"
         rf"(?: from (?P<o>[^,;]+?))?{_END}"), relation="use", whose="team", personal=False, dated=True,
         fits=(lacks("v", _PRONOUN), lacks("v", r"^an?\b"))),
    Rule("moved over", Lazy(rf"(?:we|i|our team|the team)(?: have| has|['’]ve)?(?: just)? (?:switched|migrated|moved) (?:our|the) (?P<a>[\w' /-]{{2,40}}?)(?: over)?"
         rf"(?: from (?P<o>[^,;]+?))? to {_V}{_END}"), whose="team", personal=False, dated=True, fits=(_capitalised("v"), lacks("a", _RELATIVE), lacks("v", _WHEN))),
    Rule("replaced", Lazy(rf"(?:we|i|our team|the team)(?: have| has|['’]ve)?(?: just)? replaced (?P<o>[^,;]+?) (?:with|by) {_V}{_ACROSS}{_END}"),
         relation="use", whose="team", personal=False, dated=True, fits=(lacks("o", _PRONOUN),)),
    # what is used
    Rule("replaced", Lazy(rf"(?P<w>we|i)(?:['’]ve| have)?(?: just| recently| now)? (?:dropped|quit|cancelled|canceled|stopped|gave up|left) (?P<o>[^,;]+?) and(?: now)?(?: i| we)?(?: now)?(?: do| use| go to|['’]m on|['’]re on| switched to| moved to| started(?: using)?| took up| work (?:at|for)) {_V}(?: instead)?{_NOT_ANY_MORE}(?: instead)?{_END}"),
         relation="use", personal=False, dated=True, fits=(lacks("v", _PRONOUN), lacks("o", _PRONOUN))),
    Rule("not used", Lazy(rf"(?P<w>we|i)(?: have|['’]ve)? (?:no longer use|stopped using|don['’]t use|do not use|dropped|ditched|retired|abandoned) {_V}{_NOT_ANY_MORE}{_END}"),
         relation="use", negated=True, personal=False, dated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("not supported", Lazy(rf"(?P<w>we)(?: have|['’]ve)? (?:(?:no longer|do not|don['’]t) (?:support|offer|accept|maintain|sell|ship|provide)|stopped (?:supporting|offering|accepting|maintaining|selling|shipping|providing)) {_V}{_NOT_ANY_MORE}{_END}"),
         relation="support", negated=True, personal=False, dated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("used", Lazy(rf"(?P<w>we|i|our (?:\w+ )?team)(?:(?: now| currently| always| mostly)? uses?|(?:['’]re|['’]m| are| am| is)(?: now| currently)? using) {_V}(?: for (?P<a>[^,;]+?))?{_INSTEAD}{_NOT_ANY_MORE}{_END}"),
         relation="use", personal=False, dated=True, confidence=0.85,
         fits=(lacks("v", _PRONOUN), lacks("a", _PRONOUN), lacks("v", r"^(?:the same|(?:the )?following|my|your|both)\b| to \w|\b(?:term|word|phrase|expression|idea)\b|ly$"))),
    Rule("used", Lazy(rf"(?P<w>we) (?P<a>deploy|build|test|host|monitor|bill|track|document|provision|release|manage|store|keep|write|run|plan|handle|log|file|review|schedule)s?(?: (?:(?:all|most)(?: of)? )?(?:our|the|everything|all)(?: [\w-]+){{0,2}}?)? (?:with|on|via|through|using|in) {_V}{_END}"),
         relation="use", personal=False, confidence=0.8, fits=(lacks("v", _PRONOUN), _capitalised("v"), lacks("v", r"days?$|^(?:time|our|a|the)\b"))),
    # what is liked, eaten, done
    Rule("preference", Lazy(rf"(?P<w>my|our) preference is (?:for )?{_V}(?: (?:rather than|over|instead of|and not|not) [^,;]+)?{_END}"),
         PREFERENCE, relation="liking"),
    Rule("favourite", Lazy(rf"(?P<w>my|our) (?P<a>(?:all-time )?favou?rite [\w' -]{{2,40}}?) (?:is|are) {_V}{_END}"), PREFERENCE,
         fits=(_ADJECTIVE, lacks("v", r"^(?:when|that|how)\b"), lacks("a", r"\b(?:part|thing)$"))),
    Rule("prefers", Lazy(r"(?P<v>[\w'-]+(?: [\w'-]+)?) over (?P<o>[\w'-]+(?: [\w'-]+)?),? (?:always|any day(?: of the week)?|every time|for me)$"), PREFERENCE, relation="liking", fits=(lacks("v", _PRONOUN),)),
    Rule("favourite", Lazy(rf"{_V} (?:is|are) (?:(?:by far|easily|definitely|still|probably) )?(?P<w>my|our) (?:all-time )?favou?rites?(?: [\w' -]{{2,40}})?{_END}"), PREFERENCE, relation="liking",
         fits=(lacks("v", _PRONOUN), lacks("v", rf"^{_SUBJECT}|^(?:my|our|his|her|their|which|here)\b"))),
    Rule("likes", Lazy(rf"i(?: am|['’]m)(?: really| very| quite| more of| much more of| definitely)* (?:an? (?P<v>[\w' -]{{2,30}}?) person)(?: than [^,;]+)?{_END}"), PREFERENCE, relation="liking", confidence=0.8,
         fits=(lacks("v", r"morning|night|evening|early|late|people|very|that|this|bad|good|nice|kind|busy|new|private|different"),)),
    Rule("likes", Lazy(rf"i(?: am|['’]m)(?: really| very| quite| a big| big| huge| a huge| a)* (?:fond of|keen on|into|partial to|fan of) {_V}{_END}"), PREFERENCE, relation="liking", confidence=0.8,
         fits=(lacks("v", _PRONOUN), lacks("v", _PASSING_LIKING))),
    Rule("dislikes", Lazy(rf"i(?: am|['’]m) (?:really )?not (?:really |very |that |too |so )?(?:fond of|keen on|into|big on) {_V}{_NOT_ANY_MORE}{_END}"), PREFERENCE, relation="liking", negated=True,
         fits=(lacks("v", _PRONOUN), lacks("v", _PASSING_LIKING))),
    Rule("dislikes", Lazy(rf"{_V} (?:is|are)(?: not|n['’]t) (?:really )?(?:my thing|for me|my style|my cup of tea|to my taste){_END}"), PREFERENCE, relation="liking", negated=True,
         fits=(lacks("v", _PRONOUN), lacks("v", rf"^{_SUBJECT}"), lacks("v", _PASSING_LIKING))),
    Rule("likes", Lazy(rf"{_V} (?:works? best for me|suits? me (?:best|better)|(?:is|are) (?:more )?my (?:thing|style|cup of tea)){_END}"), PREFERENCE, relation="liking",
         fits=(lacks("v", _PRONOUN), lacks("v", rf"^{_SUBJECT}"), lacks("v", _PASSING_LIKING))),
    Rule("likes", Lazy(rf"i(?:['’]ve| have) always (?:liked|loved|enjoyed|preferred) {_V}{_END}"), PREFERENCE, relation="liking", fits=(lacks("v", _PRONOUN),)),
    Rule("dislikes", Lazy(rf"i(?:['’]ve| have) (?:always (?:hated|disliked)|never (?:liked|been (?:an? )?(?:big )?fan of|been into|been fond of|enjoyed)) {_V}{_END}"), PREFERENCE, relation="liking", negated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("prefers", Lazy(rf"(?P<w>i|we)(?: now| generally| usually| much| strongly| really)* prefer {_V}"
         rf"(?: (?:over|to|rather than|instead of|and not) [^,;]+?)?{_NOT_ANY_MORE}{_END}"), PREFERENCE, relation="liking", fits=(
             lacks("v", _PRONOUN), lacks("v", r"\b(?:one|ones|option|version|first|second|former|latter)$|^your\b"))),
    Rule("prefers", Lazy(rf"(?P<w>i|we)(?:['’]d| would) rather (?:have |use |get |see )?{_V} than [^,;]+{_END}"), PREFERENCE,
         relation="liking", confidence=0.8, fits=(lacks("v", _PRONOUN),)),
    Rule("likes", Lazy(rf"i(?: really| absolutely| always| just)* (?:like|love|enjoy|adore)(?: to)? {_V}{_MOST}{_END}"), PREFERENCE,
         relation="liking", fits=_LIKING, confidence=0.8),
    Rule("dislikes", Lazy(rf"i(?:['’]m| am) (?:really )?(?:not (?:really )?(?:an? )?(?:big |huge |great )?|no (?:big |great )?)fan of {_V}{_NOT_ANY_MORE}{_END}"),
         PREFERENCE, relation="liking", negated=True, fits=_LIKING),
    Rule("dislikes", Lazy(rf"i(?: really| absolutely| just)* (?:don['’]t (?:really )?(?:like|enjoy)|do not like|hate|dislike|"
         rf"detest|can['’]t stand|cannot stand|no longer like) {_V}{_NOT_ANY_MORE}{_END}"), PREFERENCE, relation="liking", negated=True,
         fits=_LIKING),
    Rule("no more", Lazy(rf"i (?:no longer|do not|don['’]t|can['’]t|cannot|never) (?:eat|drink|smoke)(?: any)? {_V}{_NOT_ANY_MORE}{_END}"),
         PREFERENCE, relation="diet", negated=True, dated=True,
         fits=(lacks("v", _PRONOUN), lacks("v", r"\b(?:after|before|at|on|when|while|during|until|without)\b"))),
    Rule("no more", Lazy(rf"no (?:more )?(?P<v>[\w -]{{2,40}}?) (?:any ?more|any longer|for me){_END}"), PREFERENCE, relation="diet",
         negated=True, dated=True, confidence=0.8),
    Rule("stopped", Lazy(rf"i(?:['’]ve| have)? (?:stopped|quit|given up|gave up) (?P<v>smoking|drinking|gambling|vaping)(?P<t> (?:in|since|last)\b[^,;]*)?{_END}"),
         PREFERENCE, relation="habit", negated=True),
    Rule("stopped", Lazy(rf"i(?:['’]ve| have)? (?:stopped|quit|given up|gave up) (?:eating|drinking|smoking) {_V}{_END}"), PREFERENCE,
         relation="diet", negated=True, dated=True),
    Rule("eats", Lazy(rf"i(?: only| mostly| do)? (?:eat|drink) {_V}{_END}"), PREFERENCE, relation="diet", dated=True,
         fits=(lacks("v", _PRONOUN),), confidence=0.8),
    Rule("allergy", Lazy(rf"i(?: am|['’]m|['’]ve become| have become) (?:\w+ly )?allergic to {_V}(?: (?:whenever|when|if|so|in case) .*)?{_END}"), relation="diet", negated=True,
         fits=(lacks("v", _PRONOUN),)),
    Rule("diet", Lazy(rf"(?:i(?: am|['’]m)|i(?:['’]ve| have) (?:been|become|gone)|i became|i went)(?P<n> not| no longer)?(?: now)? (?:an? )?(?P<v>{_DIET})"
         rf"{_NOT_ANY_MORE}(?P<t> [^,;]*)?{_END}"), relation="trait"),
    Rule("habit", Lazy(rf"i (?:always|usually) {_V}{_END}"), PREFERENCE, relation="habit", fits=_HABIT, confidence=0.75),
    Rule("habit", Lazy(rf"i never {_V}{_END}"), PREFERENCE, relation="habit", negated=True, fits=_HABIT, confidence=0.75),
    # rules
    Rule("never", Lazy(rf"(?:you (?:must|should|may) (?:never|not(?: ever)?)|you (?:mustn['’]t|shouldn['’]t)|never(?: ever)?|don['’]t ever|"
         rf"do not ever|(?:from now on )?(?:please )?(?:do not|don['’]t)|under no circumstances(?:,? (?:should you|may you|are you to))?|at no (?:point|time)(?: should you)?|you(?:['’]re| are) (?:never|not) to|"
         rf"(?:we|you) (?:must|can|may) (?:never|not(?: ever)?)|i (?:never|do not|don['’]t)(?: ever)? want you to|i want you to never|i(?:['’]d| would) (?:like|prefer) (?:it if )?you (?:to )?never)(?: ever)?,? {_DO}{_LINE}$"),
         CONSTRAINT, relation="rule", negated=True,
         fits=(lacks("v", r"^(?:mind|been|had|heard|seen|thought|again|say never)\b"), lambda found: " " in found["v"])),
    Rule("never", Lazy(rf"(?:please )?stop (?P<v>\w+ing \w+ .{{2,100}}?){_END}"), CONSTRAINT, relation="rule", negated=True),
    Rule("never", Lazy(rf"it(?:['’]s| is) (?:strictly |absolutely )?(?:forbidden|prohibited|not allowed|never ok(?:ay)?|not ok(?:ay)?|against (?:the|our) (?:rules|policy)) to {_LINE}$"), CONSTRAINT, relation="rule", negated=True),
    Rule("never", Lazy(rf"i (?:never|do not|don['’]t)(?: ever)? want to (?:see|read|hear|get|find) {_LINE}$"), CONSTRAINT, relation="rule", negated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("never", Lazy(r"(?P<v>(?!(?:i|we|you|he|she|they|it|this|that)\b)[\w' -]{2,60}? (?:must|may|should|can) (?:never|not) be .{2,80}?)$"), CONSTRAINT, relation="rule", negated=True, confidence=0.75),
    Rule("never", Lazy(rf"(?:nobody|no[- ]one|none of us|none of you)(?: (?:on|in|from|but|except) [\w' ]{{2,30}}?)? (?:is (?:ever )?(?:allowed|permitted|supposed) to|may|can|should|gets to|is to|must)(?: ever)? {_LINE}$"), CONSTRAINT, relation="rule",
         negated=True, personal=False, fits=(lacks("v", r"^(?:be|have|know|tell|say|explain|help|answer|believe|understand|find|see)\b"),)),
    Rule("never", Lazy(rf"(?:please |always )?(?:avoid|refrain from|steer clear of|stay away from) {_LINE}$"), CONSTRAINT, relation="rule", negated=True, confidence=0.85, fits=(lacks("v", _PRONOUN), lambda found: " " in found["v"])),
    Rule("never", Lazy(r"(?:please,? )?no (?P<v>[\w' -]{2,60}?),? (?:please|ever(?: again)?|under any circumstances|at all|period)$"), CONSTRAINT, relation="rule", negated=True, confidence=0.8,
         fits=(lacks("v", r"^(?:problem|worries|luck|idea|clue|need|way|thanks|doubt|rush|hurry|more|longer|one|issues?|changes?|difference|reason|point|pressure)\b"),)),
    Rule("never", Lazy(rf"(?:we|you)(?:['’]re| are) not allowed to {_LINE}$"), CONSTRAINT, relation="rule", negated=True, personal=False),
    Rule("forbidden", Lazy(rf"{_V} (?:is|are) (?:strictly )?(?:forbidden|prohibited|banned|not allowed|not permitted|never (?:ok|okay|allowed|acceptable)|not (?:ok|okay|acceptable)|unacceptable|a no-go|off[- ]limits|out of bounds){_END}"), CONSTRAINT,
         relation="rule", negated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("always", Lazy(rf"(?:you (?:must|should) always|(?:make sure|be sure)(?: that)? (?:you|to) always|always|(?:every time|whenever) you [^,;]+,"
         rf"(?: please| always)?) {_LINE}$"), CONSTRAINT, relation="rule",
         fits=(lacks("v", r"^(?:\w+ing|\w+[^s]s|full|happy|fun|nice|good|great|glad|lovely|love|just let|a|the|there|here|my|been|had|in|on|at|so|\w+ed)\b"),)),
    Rule("always", Lazy(rf"(?:{_STANDING}),? (?:please |always |you (?:should|must) (?:always )?|i want you to (?:always )?|make sure (?:to |you )|then )*(?!{_SUBJECT}|never|(?:the|our|my|do not|don['’]t|not|just|let me|feel free)\b){_LINE}$"), CONSTRAINT, relation="rule",
         fits=(_orders("v"),)),
    Rule("never", Lazy(rf"(?:{_STANDING}),? (?:please )?(?:never|do not|don['’]t)(?: ever)? {_LINE}$"), CONSTRAINT, relation="rule", negated=True),
    Rule("always", Lazy(rf"(?:i(?:['’]d| would)? (?:always )?(?:want|like|need|expect) you to (?:always )?|please (?:always|make sure (?:to|you) always) |your (?:answers|replies|responses) (?:should|must) always |you(?:['’]re| are) always to ){_LINE}$"), CONSTRAINT,
         relation="rule", confidence=0.8, fits=(lacks("v", r"^(?:know|understand|help|be|have|see|look|check|remember|tell|stop|do|think)\b"), lambda found: re.search(r"always|every|all|each|whenever", found[0], re.IGNORECASE) is not None)),
    Rule("always", Lazy(rf"(?:when|if) (?:you (?:{_DOES}|are {_DOES}\w*)|i (?:ask|paste|send|say|mention|share|give|request|quote|type|write|post|describe))\b(?!.{{0,60}}?\b(?:the|this|that|it)\b[^,]*,)[^,;]*,(?: please| always| then)* (?!{_SUBJECT}|never|(?:the|our|my|do not|don['’]t|not)\b){_LINE}$"),
         CONSTRAINT, relation="rule", confidence=0.8, fits=(_orders("v"),)),
    Rule("never", Lazy(rf"(?:when|if) (?:you {_DOES}|i (?:ask|paste|send|say|mention|share|give|request|quote|type|write|post))\b(?!.{{0,60}}?\b(?:the|this|that|it)\b[^,]*,)[^,;]*,(?: please)? (?:never|do not|don['’]t) {_LINE}$"),
         CONSTRAINT, relation="rule", negated=True, confidence=0.8),
    Rule("always", Lazy(rf"(?:please )?(?P<v>(?!{_SUBJECT})\w+ (?:[\w' -]{{1,60}}? )?(?:every|each|all your|all my|all our) (?:single )?(?:{_OUTPUTS})\b.{{0,80}}?)$"), CONSTRAINT, relation="rule", confidence=0.8, fits=(_orders("v"),)),
    Rule("always", Lazy(rf"(?:please )?(?P<v>(?!{_SUBJECT})\w+ .{{2,80}}? unless (?:i|we) .{{3,60}}?)$"), CONSTRAINT, relation="rule", confidence=0.8, fits=(_orders("v"),)),
    Rule("always", Lazy(r"(?P<v>(?:all|every|each) (?:of )?(?:(?:your|the|my|our) )?[\w' -]{2,40}? (?:should|must|has to|have to|needs? to) .{2,100}?)$"), CONSTRAINT, relation="rule", confidence=0.8),
    Rule("never", Lazy(rf"(?:from now on|going forward|from here on|in (?:the )?future|{_STANDING})[,:]? (?:please )?no (?:more )?{_LINE}$"), CONSTRAINT, relation="rule", negated=True),
    Rule("never", Lazy(rf"(?:from now on|going forward|from here on|in (?:the )?future)[,:]? (?:please )?(?:never|do not|don['’]t)(?: ever)? {_LINE}$"), CONSTRAINT, relation="rule", negated=True),
    Rule("from now on", Lazy(rf"(?:from now on|from here on|going forward|in (?:the )?future|henceforth|from today)[,:]? (?:please |always |you (?:should|must) (?:always )?)*"
         rf"(?!(?:i|we|the|my|our|it|there)\b){_LINE}$"), CONSTRAINT, relation="rule"),
    Rule("from now on", Lazy(rf"(?:from now on|from here on|going forward|in (?:the )?future|henceforth)[,:]? i(?:['’]d)? (?:only )?(?:want|like|need|expect|prefer) (?!you\b|to\b){_LINE}$"), CONSTRAINT, relation="rule", fits=(lacks("v", _PRONOUN),)),
    Rule("from now on", Lazy(rf"(?!{_SUBJECT})(?P<v>\w+ .{{2,120}}?),? from now on$"), CONSTRAINT, relation="rule"),
    Rule("from now on", Lazy(rf"(?:please |always )*(?!{_SUBJECT})(?P<v>\w+ .{{2,120}}?),? {_STANDING_BEHIND}$"), CONSTRAINT, relation="rule", confidence=0.85, fits=(_orders("v"),)),
    # decisions
    Rule("decision", Lazy(rf"{_STAFF}(?:['’]ve| have| has)? (?:chosen|chose|picked|selected|hired|appointed|named|adopted|gone with|went with) {_V} (?:as|to be) (?:our|the|my) (?P<a>[^,;]+?){_END}"),
         relation="decision", whose="team", personal=False, fits=(lacks("v", _PRONOUN),)),
    Rule("decision", Lazy(rf"{_STAFF}(?:['’]re| are|['’]ll be| will be) (?:going|sticking|moving ahead|moving forward) with {_V} for (?:the |our |my )?(?P<a>[^,;]+?){_END}"), relation="decision",
         whose="team", personal=False, fits=(lacks("v", _PRONOUN),)),
    Rule("decision", Lazy(rf"(?:we|i|the team|our team)(?:['’]ve| have| has)? (?:decided|agreed|settled|chosen|chose|picked|opted)(?: on| for|"
         rf" to (?:go with|use|adopt))? {_V} for (?:the |our )?(?P<a>[^,;]+?){_END}"), relation="decision", whose="team", personal=False,
         fits=(lacks("v", r"^(?:to|not|that|with|on)\b|\b(?:because|that|which|and|as)\b"), lacks("v", _PRONOUN), lacks("a", _PRONOUN))),
    Rule("decision", Lazy(rf"{_STAFF}(?:['’]ve| have| has)?(?: all| finally| now| just)? (?:decided|agreed|settled|chosen|opted)(?: on| for| that)?"
         rf"(?P<n> not)?(?: to)? {_LINE}$"), relation="decision", whose="team", personal=False, fits=(lacks("v", r"^(?:with|it|this|that|what|how|why|whether|if|against)\b"),)),
    Rule("decision", Lazy(rf"(?:(?:final )?decision|decided|resolved|agreed|conclusion|outcome)(?: made)?(?: (?:from|of|in|at|after) [^:;]{{2,40}})?: {_LINE}$"), relation="decision", whose="team", personal=False),
    Rule("decision", Lazy(rf"it(?:['’]s| is|['’]s been| has been) (?:now |been )?(?:settled|decided|agreed|final|official|confirmed)(?:(?: (?:from|of|in|at|after) [^:;,]{{2,40}})?(?: that|[:,]))? {_LINE}$"), relation="decision",
         whose="team", personal=False, fits=(lacks("v", r"^(?:then|now|already)$|^(?:after|from|in|at|of)\b"),)),
    Rule("decision", Lazy(rf"(?:let['’]s|we['’]ll|we will|we(?:['’]re| are)) (?:go|going|stick|sticking) with {_V}{_END}"), relation="decision",
         whose="team", confidence=0.8, fits=(lacks("v", _PRONOUN), lacks("v", r"^the flow"))),
    # attributes
    Rule("place", Lazy(rf"(?P<w>our|my|the) (?P<a>(?:[\w'’-]+ ){{0,2}}(?:{_PLACES}))(?: is| are|['’]s) (?:now )?(?:located |based |hosted )?in (?P<v>[^;,]{{1,60}}?)(?:,? (?:and )?not (?:in )?(?P<o>[^,;]+?))?{_END}"), whose="team",
         confidence=0.85, personal=False, fits=(_capitalised("v"),)),
    Rule("attribute", Lazy(rf"(?P<w>our) (?P<a>[\w'’/-]+(?: [\w'’/-]+){{0,3}}?)(?: is (?:now )?called|['’]s (?:now )?called| are (?:now )?called| is| are) {_V}(?:,? not (?P<o>[^,;]+?))?{_END}"),
         confidence=0.85, personal=False, fits=(_ADJECTIVE, lacks("a", _NO_ATTRIBUTE), lacks("v", r"^(?:not|that|what|how|why|to|if|whether|no longer)\b"),
                                lacks("v", r"\b(?:today|tonight|tomorrow|now|at the moment|this (?:morning|afternoon|evening|week))\b"),
                                lacks("a", r"\b(?:is|are|and|who|that|says?|has)\b"), _people_have_names)),
    Rule("attribute", Lazy(rf"(?P<w>my) (?P<a>[\w'’/-]+(?: [\w'’/-]+){{0,3}}?)(?: is called|['’]s called| are called| is| are) {_V}(?:,? not (?P<o>[^,;]+?))?{_END}"),
         confidence=0.85, fits=(_ADJECTIVE, lacks("a", r"['’]s favou?rite\b|(?:neighbou?r|colleague|co-?worker|roommate|landlord|friend|cousin)['’]s name$"), lacks("a", _NO_ATTRIBUTE), lacks("v", r"^(?:not|that|what|how|why|to|if|whether|no longer)\b"),
                                lacks("v", r"\b(?:today|tonight|tomorrow|now|at the moment|this (?:morning|afternoon|evening|week))\b"),
                                lacks("a", r"\b(?:is|are|and|who|that|says?|has)\b"), _people_have_names)),
    Rule("corrected", Lazy(rf"(?P<w>the|our|my) (?P<a>[\w' /-]{{2,50}}?) (?:is|are) {_V}(?:,? (?:and )?not (?P<o>[^,;]+?))?{_END}"),
         whose="team", personal=False, corrects=True, fits=(_ADJECTIVE,)),
    Rule("begins", Lazy(rf"(?P<w>our|my) (?P<a>[\w'’ /-]{{2,40}}? (?:starts|begins|ends|opens|closes|expires|renews|runs out|leaves|departs|arrives|takes place)) (?:in|on|at|every) {_V}(?:,? not (?:in |on |at )?(?P<o>[^,;]+?))?{_END}"),
         personal=False, confidence=0.8, unasked=True, fits=(lacks("a", _PLURAL_BEFORE_VERB), _told_when, lacks("v", _PRONOUN), lacks("v", r"tomorrow|today|tonight|\bthis\b|\bnext\b"))),
    Rule("runs on", Lazy(rf"(?P<w>our|my|the) (?P<a>[\w'’ /-]{{2,40}}?) (?:runs|is hosted|is running|is deployed|is stored|are hosted|run|are stored) (?:on|in) {_V}{_END}"), whose="team", personal=False, confidence=0.85,
         fits=(_capitalised("v"), lacks("a", _RELATIVE))),
    Rule("corrected", Lazy(rf"(?:it|that|they)(?:['’]s| is| should be|['’]re| are)(?: actually| really)? {_V},? (?:and )?not (?P<o>[^,;]+?){_END}"), personal=False, corrects=True, confidence=0.8,
         fits=(_is_named_or_no_state, lacks("v", _PRONOUN), lambda found: re.search(r"\d|[A-Z]", found["v"]) is not None)),
    Rule("begins", Lazy(rf"(?P<w>our|my|the) (?P<a>[\w' /-]{{2,40}}? (?:starts|begins|ends|opens|closes|expires|renews|runs out|leaves|departs|arrives|lands|takes place|happens|is due)) (?:in|on|at|every) {_V}(?:,? not (?:in |on |at )?(?P<o>[^,;]+?))?{_END}"),
         whose="team", personal=False, corrects=True, fits=(lacks("a", _RELATIVE), lacks("a", _PLURAL_BEFORE_VERB), _told_when, lacks("v", _PRONOUN))),
    *(
        Rule("schedule", Lazy(rf"(?P<w>we) (?:only |always |usually |normally )?(?:{verbs}) (?:on|every|at) {_V}{_END}"), attribute=what, personal=False, confidence=0.85,
             fits=(_told_when,))
        for verbs, what in (("deploy", "deploy schedule"), ("release|ship", "release schedule"), ("meet", "meeting schedule"))
    ),
    Rule("dated", Lazy(rf"(?P<w>the) (?P<a>(?:[\w'’-]+ ){{0,3}}[\w'’-]+(?: (?:for|of|with) (?:(?:the|our|my) )?[\w'’-]+(?: [\w'’-]+){{0,2}})?) (?:is|are)(?: (?:scheduled|set|planned|booked|due))?(?: (?:for|at|by))? (?P<v>(?:on )?[^;,]{{1,60}}?)(?:,? not [^,;]+)?(?:\s+and (?!{_WHEN_TOO}).*)?{_END}"),
         whose="team", personal=False, confidence=0.75, fits=(_is_time, lacks("a", r"\b(?:is|are|and|who|that|which|was)\b"), lacks("a", _RELATIVE))),
    *(
        Rule("owner", Lazy(rf"(?P<v>[\w'’.-]+(?: [\w'’.-]+)?) (?:(?:{verbs}) (?:it|that|this|(?:the|our) (?P<a>[\w'’/-]+(?: [\w'’/-]+){{0,3}}?))|is the {role}|{states})$"), part=role, behind=True,
             whose="team", personal=False, confidence=0.75, fits=(_capitalised("v"), lacks("v", rf"^{_SUBJECT}|^(?:the|our|my|your|his|her|their)\b")))
        for role, verbs, states in (("owner", "owns|is responsible for|is in charge of", "is (?:responsible|in charge)"), ("lead", "leads", "(?!)"), ("maintainer", "maintains", "(?!)"))
    ),
    Rule("named", Lazy(rf"(?P<w>the) (?P<a>[\w' /-]{{2,50}}?) is (?:now |currently )?(?:called|named) {_V}{_END}"), whose="team", personal=False, confidence=0.8),
    Rule("attribute", Lazy(rf"(?P<w>the) (?P<a>(?:[\w-]+ ){{0,2}}(?:{_ATTRIBUTES})(?: for (?:the )?[\w-]+(?: [\w-]+)?)?) is {_V}(?:,? not (?P<o>[^,;]+?))?{_END}"),
         whose="team", personal=False, confidence=0.75, fits=(_ADJECTIVE,)),
    # what a document says about something
    Rule("relation", Lazy(rf"(?P<e>{_THING}) (?P<a>{_RELATION}) {_VALUE}"), personal=False, document=True, confidence=0.75,
         fits=(lacks("e", r"^(?:he|she|it|they|this|that|there|i|we|you|which|who|and|but|as|if)\b"),)),
    Rule("relation", Lazy(rf"the (?P<a>[\w' -]{{3,60}}?) (?:of|in|that|where) (?P<e>{_THING}) is(?: located in the \w+ of)? {_VALUE}"), personal=False,
         document=True, confidence=0.75, fits=(_is_named_or_no_state,)),
    Rule("relation", Lazy(rf"(?P<e>{_THING})['’]s (?P<a>[\w -]{{2,40}}?) is {_VALUE}"), personal=False, document=True, confidence=0.75,
         fits=(_capitalised("e"), _is_named_or_no_state)),
)  # fmt: skip


def _asked(text: str, start: int, end: int) -> Span | None:
    """What the sentence asks to remember: all that stands behind "remember that"."""
    found = _ASKED.match(text, start, end)
    while found is not None and (again := _ASKED.match(text, found.end(), end)) is not None:
        found = again
    if found is None or _NOT_ASKED.match(text, found.end(), end):
        return None
    return found.end(), end


_THEN_ASKS: Final = _re(
    r"[,;–—]\s+(?:so|and|but)[, ]+(?:what|which|how|where|when|who|whom|why|can|could|would|should|do|does|did|is|are|will|any|may)\b"
)

ENGLISH: Final = Language(
    no_statement=_NO_STATEMENT, joke=_JOKE, taken_back=_TAKEN_BACK, condition=_CONDITION, passing=_PASSING,
    then_asks=_THEN_ASKS, corrects=_CORRECTS, begins=_TIME_HEAD, joint=_JOINT, filler=_FILLER, asked=_asked, rules=_RULES,
    mine=frozenset({"i", "my"}), articles=_re(r"(?:the|an?)\s+"),
    tail=_re(r"(?:[\s,]+(?:now|please|thanks|too|as well|these days|any ?more|actually|from now on|by the way))+$"),
)  # fmt: skip
