"""The rules for Korean: what a clause states, and what makes a sentence no statement."""

from __future__ import annotations

import re
from typing import Final

from mnemolog.domain.gate.candidates import Span
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

_re: Final = re.compile


_WITH_L: Final = "".join(chr(0xAC00 + 28 * at + 8) for at in range(399))
"""Syllables that end in ㄹ: 일 거예요, 할걸요, 쓸까 guess."""
_WITH_N: Final = "".join(chr(0xAC00 + 28 * at + 4) for at in range(399))

_NO_STATEMENT: Final = _re(
    rf"알기로는?(?=\s|$)|알기론|기억하기로는|듣기로는?(?=\s|$)|듣기론|들은 ?바로는|아마|(?:것|거) ?같|모르겠|모를|[{_WITH_N}{_WITH_L}는] ?듯|걸요?$|(?:[가-힣]나|[{_WITH_N}]가) ?(?:봐|보[네다아])|지도 ?(?:몰|모)|확실하?[진지]|"
    rf"[{_WITH_L}] ?(?:거(?:예요|에요|야|죠|지)|것이|것입|겁니다|까(?!지))|아닐까|글쎄|추측(?:이|인|으로)|혹시"
    # hypothetical
    rf"|만약|만일|가정하|가정해|[{_WITH_N}다]고 ?(?:치|친|쳐)|상상|텐데|(?:라|다|하게 ?되|(?<!소개)(?<!정리)(?<!요약)하|되|뀌|기|가|오|쓰|이)면(?!\s*(?:안|서))\s(?!.*(?:줘요?|주세요)$)|예를 ?들"
    # given up
    r"|려다가?|려고 ?했(?:었)?(?:는데|지만|다가)|뻔했|그만뒀|그만두(?!고)|포기|고려했|관뒀|아니다,? ?(?:됐|아니)|[할볼갈쓸]까 ?(?:했|하다|싶)|할까요"
    # somebody else's words
    r"|(?:대요|래요|답니다|(?<!바)랍니다|다던데|라던데|다더라|라더라|던데요?)$|(?<=[가-힣])[쓴한된난간운]대$|라고 ?(?:말|쓰여|써|적|나와|나오|되어|돼|했대|하더|하던|그[랬러])|"
    rf"다고 ?(?:말|들었|하더|하던|그[랬러]|쓰여|써|적|나와)|[{_WITH_N}다]고 ?했(?:어|다|습|던)|맞춤법|번역해|(?:고쳐|다듬어|바꿔|줄여|늘려|손봐|읽어|옮겨|(?:요약|교정|분석|설명|검토|수정)해) ?(?:줘|줘요|주세요|줄래요?)\s?:"
    # jokes
    r"|[ㅋㅎ]{2,}|농담|[😂🤣😜😝🙃😆]"
)
_JOKE: Final = _re("농담")
_TAKEN_BACK: Final = _re(r"아니다,? ?(?:됐|아니)|^됐어|취소(?:할게|야)?$|잊어 ?(?:줘|버려)|없던 ?걸로")
_CONDITION: Final = _re(r"(?!)")
_PASSING: Final = _re(
    r"이번[에엔만 ](?!\S*부터|.*기로 ?(?:했|정|결정|합의|확정))|이번 ?(?:건|한|주|달)|지금(?!부터|까지)|오늘(?! (?:\S+ )?\S*(?:회의|미팅|모임|총회|논의)에서 .*기로)|내일|모레|한 ?번만|(?<![가-힣])이 (?:파일|문단|메일|질문|답변|작업|건|줄)|"
    r"잠깐|당장|일단|우선은|나중에|아직|저녁에 만|걱정"
)
_CORRECTS: Final = _re(
    r"^(?:정정|아니(?=[,\s])|아니[요야오]|아니에요|아니예요|아뇨|아닙니다|그거 ?틀|그건 ?아니|그게 ?아니|죄송하지만 ?틀|틀렸|사실|아까|잘못|다시 ?말하|수정할게|제가 잘못|방금|그 ?정보|업데이트|헷갈|바로잡|오해|다시 ?(?:말씀|정정)|지난번|예전 ?정보)"
)
_BEGINS: Final = _re(r".*(?:부터|까지)(?:는|로)?$")

_ME: Final = r"(?:저는요?|나는|난|전(?=\s)|제가|내가|저도|나도|전(?=,)|(?:저|나)(?!\s?(?:사람|분|친구|남자|여자|건물|가게|집|쪽|애|아이|것|게|건|거))(?=\s))"
_US: Final = r"(?:우리(?:는|가|도)|(?:우리|저희)(?=\s(?:이제|요즘|지금|더 ?이상)\s)|우린|저희(?:는|가)|저흰|(?:우리|저희) ?(?:쪽 )?(?:팀|회사|조직|부서|가족|부부|집|학교|동아리|모임|본부|연구실|학과)(?:은|는|이|가|에서는|에선|도)?)"
_TAKES: Final = (
    r"(?:(?P<a>\S+(?: \S+)?)(?:은|는) )?(?P<v>[^\s,;]+?)(?: ?(?:씨|님))?(?:이|가) "
    r"(?:맡(?:아요?|습니다|는다|고 ?있\S*|기로 ?(?:했|결정했|정했)\S*|아서 ?(?:해요|합니다))|(?:담당|책임)(?:해요?|합니다|한다|하고 ?있\S*|하기로 ?했\S*)|책임(?:져요?|집니다))"
)


def _unnamed(pattern: str) -> str:
    """Without names of groups, to stand in another pattern."""
    return pattern.replace("?P<a>", "?:").replace("?P<v>", "?:")


_JOINT: Final = _re(
    rf"(?<=[가-힣 ][요다줘마])[,;]\s+(?![^,]*아니(?:라|고|에요|예요|야))(?!(?:제|내|우리|저희)\s[^,]{{2,30}}(?:은|는|이|가)?$)(?!.*(?:기억|메모|저장|기록|잊지))|"
    r"(?:(?P<keep>이고|고|인데|이며|는데|지만|니까|라서|해서|어서|아서),?|(?<=[가-힣\w])[,;:]|\s[–—-])\s+(?!(?:제|내|우리|저희)(?: [^\s,]+){1,2}(?<![요다야임죠])$)"
    rf"(?=(?:그리고 |근데 |그런데 |하지만 )?(?:{_ME}|{_US}|제 |내 |저를|나를|(?:이제|지금은?|요즘은?) \S+ |절대|항상|앞으로|이제부터|\S+(?:은|는) \S+(?: \S+){{0,2}}?(?:이에요|예요|입니다|이야|야)$|{_unnamed(_TAKES)}$|\S+(?:에|에서|으로|로) (?:다니|다녀|살아|살고|삽니다|일하|일해|일합|근무)|\S+(?: \S+)?(?:을|를) (?:더 |제일 |가장 )?(?:선호|좋아|싫어)))"
)
_FILLER: Final = _re(
    r"(?:본문|요약|내용|제목|메모|비고|설명|알림)\s?:\s+|(?:안녕하세요|안녕|네|예|응|음|아|어|그리고|근데|그런데|하지만|아무튼|어쨌든|그래서|그럼|참고로|사실은?|정정하자면|아니[요야오]|아뇨|아 ?참|"
    r"그게 ?아니(?:고|라)|잘못 ?(?:알고 ?계신데|아셨\S*|들으셨\S*|말씀드렸\S*|적었\S*|이해하셨\S*)|헷갈리(?:셨|신)\S*|정정(?:할게요?|합니다|해요?|하자면|드려요|드립니다)|바로잡(?:을게요?|자면|습니다)|오해(?:하셨|예요|가)\S*|"
    r"(?:오늘 |어제 |지난번 )?(?:\S+ )?\S*(?:회의|미팅|모임|총회|논의)에서(?= .*기로)|결국|최종적으로|드디어|(?:오늘 |어제 |이번 )?(?:\S+ )?(?:(?:논의|고민|상의|회의|검토|토론|투표) (?:끝에|결과))|아니(?=,)|다들 알다시피|알고 계시겠지만|혹시나 해서|추가로|하나 더|그건 그렇고|맞다|음|저희 쪽에서는|회사에서는|"
    r"저기|솔직히(?: 말해서?| 말하면)?|사실대로 말하면|고마워요?|감사합니다|(?:그거 ?)?틀렸어요?|시작하기 전에|다시 말하지만|그냥|방금|일단|아까 .{1,20}?(?:라고|다고) ?(?:했|말했)(?:는데|지만)|"
    r"잘못 말했(?:는데|네요))[,.!:~…]*\s+"
)
_VERB_OF_MEMORY: Final = (
    r"(?:꼭|좀|잘|(?:다음|나중)(?:을|에|을 ?위해|에 ?쓰게)|잊지 ?말고|이거|이것도?|이건|이 ?점(?:을|은)?|반드시|항상|계속|앞으로도?|늘|머릿속에|어딘가에|어디)*\s*"
    r"(?:(?:기억|메모|저장|기록|명심|외워|유념|적어|참고|감안|숙지|새겨|입력)\s?"
    r"(?:해|하고|둬|두)?\s?(?:둬|두고|놔|놓고)?\s?"
    r"(?:줘요?|주세요|주십시오|주실래요|주시겠어요|줄래요?|줄 ?수 ?있(?:어|나|을까)요?|줬으면 해요?|두세요|둬요?|놔요?|하세요|해요|해라|해|부탁해요?|부탁드려요|부탁드립니다|주시기 ?바랍니다|바랍니다)"
    r"|알아 ?(?:두세요|둬요?|두시면 ?(?:돼요|됩니다)|두시기 ?바랍니다)|염두에 ?(?:둬 ?(?:줘요?|주세요)|둬요?|두세요|두고 (?:\S+ ){0,2}?\S*(?:줘요?|주세요))|(?:까먹|잊어버리)지 ?(?:마(?:세요)?|말아 ?(?:줘요?|주세요)))"
)
_ASKED_BEHIND: Final = _re(
    rf"(?P<v>.{{3,200}}?)(?P<da>다)?(?:는|라는|란|(?<!손잡)이라는|이란|(?<=[0-9번호실층시일월])인)\s*(?:거|것|걸|점|사실|내용)(?:을|도|만|은)?\s+"
    rf"{_VERB_OF_MEMORY}$"
)
_ASKED_NOT_TO_FORGET: Final = _re(
    r"(?P<v>.{3,200}?)(?:(?P<da>다)는|이?라는)\s*(?:거|것|걸|점|사실)(?:을|도|만|은)?\s+잊지 ?(?:마|말아 ?줘|마세요|말아 ?주세요)요?$"
)
_ASKED_BEFORE: Final = _re(
    rf"(?:[^,:]{{2,40}}(?:니까|니|서),?\s+)?(?:{_VERB_OF_MEMORY}|잊지 ?(?:마|말아 ?줘|말아 ?주세요|마세요|말고)요?|참고로|메모|기록)[,:]?\s+(?P<v>.{{3,}})$"
)
_ASKED_AFTER: Final = _re(rf"(?P<v>.{{3,200}}?),\s*{_VERB_OF_MEMORY}$")
_ASKED_SAYING: Final = _re(rf"(?P<v>.{{3,200}}?)(?:이?라고|(?P<da>다)고)\s+{_VERB_OF_MEMORY}$")
_ASKED_BECAUSE: Final = _re(
    rf"(?P<v>.{{3,200}}?)(?P<da>(?!))?(?:부터)?(?:(?<!테)(?<!거)이?니까?|이?라서|이?거든),?\s+{_VERB_OF_MEMORY}$"
)
_ASKED_ALONE: Final = _re(rf"(?:[^,:]{{2,40}}[테거](?:니|니까),?\s+)?{_VERB_OF_MEMORY}[~.! ]*$")

_OPEN: Final = "".join(map(chr, range(0xAC00, 0xD7A4, 28)))
"""Syllables without a final consonant: behind them 이 belongs to the name."""
_CALLED: Final = rf"(?:(?<![{_OPEN}])이)?라고"
_SURE: Final = r"(?:입니다|이에요|이예요|예요|에요|이야|야|이다|이죠|이지|임|이라고요|이네요|인데요|이거든요)"
_COPULA: Final = rf"(?:{_SURE}|이고요?|고요)"
_PAST: Final = r"(?:어요?|습니다|다|네요?|음|죠|지요?|고요|는데요?|거든요?)?"
_V: Final = r"(?P<v>(?:[^,;]|,(?=\d)){1,80}?)"
_A: Final = r"(?P<a>[^\s:,;]+?(?:\s[^\s:,;]+?){0,3}?)"
_W: Final = r"(?P<w>제|내|우리|저희)"
_SUBJECT: Final = rf"(?:(?P<w>{_ME}|{_US})\s+)?"
_NOW: Final = r"(?:(?:얼마 ?전에|최근에?|방금|드디어|이제|지금은?|요즘|이젠|현재|앞으로는?|더 ?이상|정말|진짜|특히|제일|가장|원래|평소에?|아예|전혀|너무|아주|주로|많이)\s+)*"
_OBJECT: Final = r"(?:을|를|은|는|이|가|도)?"
_TOPIC: Final = r"(?:은|는|이|가)"
_NOTHING: Final = r"(?:이[게거건것걸]|그[게거건것걸]|저[게거건것걸]|이것|그것|여기|거기|(?:무엇|뭐|누구|어디|어느|왜|어떻게|언제)(?![가-힣]{2}))"
_PRONOUN: Final = rf"^{_NOTHING}|(?:^|\s)(?:뭐|뭔|뭘|무슨|누구|어디|어느|왜|언제|몇)(?:\s|$)"
_WORK: Final = words(
    "개발자 프로그래머 디자이너 간호사 의사 약사 교사 선생님 강사 교수 학생 대학생 대학원생 번역가 통역사 작가 기자 변호사 회계사 세무사 건축가 "
    "연구원 과학자 엔지니어 기획자 마케터 요리사 사진가 사진작가 음악가 화가 농부 소방관 경찰관 공무원 상담사 사서 수의사 물리치료사 프리랜서 주부 편집자 분석가"
)
_DIET: Final = "(?:(?:락토|오보|락토 ?오보|페스코) )?베지테리언|플렉시테리언|채식주의자|비건|페스코|왼손잡이|오른손잡이|색맹|색약|당뇨 ?환자|유당불내증|글루텐 ?불내증|임산부|무슬림"
_ATTRIBUTES: Final = words(
    "마감일 마감 예산 단가 요금 수수료 가격 포트 주소 호스트 도메인 버전 브랜치 시간대 근무_시간 영업_시간 지원_시간 담당자 연락처 책임자 저장소 데이터베이스 "
    "스프린트_길이 스프린트_주기 스프린트_기간 점검_주기 백업_주기 배포_주기 리전 담당 보관_기간 한도 할당량 제한_시간 회의실 회의_시간 출시일 릴리스_요일 배포_요일 스택 통화 계좌 코드명 프로젝트_이름 프로필_이름"
)
_TOOLED: Final = words(
    "백엔드 프론트엔드 프런트엔드 프론트 DB 디비 데이터베이스 서버 인프라 모니터링 배포 CI 테스트 문서 디자인 코드 소스 형상_관리 이슈 일정 회계 결제 메신저 협업 로그 캐시 큐 "
    "대시보드 빌드 언어 프레임워크 에디터 메일 툴 도구 기획 저장소 알림 채팅 화상_회의 회의록 위키 버전_관리 클라우드 호스팅 분석 검색 인증 할_일 메모장 가계부 노트 브라우저"
)
_PEOPLE: Final = (
    r"(?:^|[\s남여큰작친외]|막내|셋째|둘째|첫째)(?:동생|형|누나|오빠|언니|엄마|아빠|어머니|아버지|남편|아내|아들|딸|친구|사촌|이모|삼촌|고모|할머니|할아버지|여자 ?친구|남자 ?친구|아이|애|고양이|강아지|"
    r"사장님?|고객|동료|이웃)$"
)
_SOMEBODY: Final = r"(?:동료|친구|팀장|상사|사장|이웃|선배|후배|동생|형|누나|오빠|언니|남편|아내|엄마|아빠|아들|딸|애|씨)(?:님)?(?:은|는|이|가)\s"
_NO_ATTRIBUTE: Final = r"(?:추측|예상|추정|생각|질문|문제|말|잘못|고민|목표|계획|의견|기분|머리|컴퓨터|노트북|코드|차례|꿈|취지|뜻|요점|희망|바람)$"
_NOBODY: Final = r"^(?:제|내|네|누|우리|저희|그|그녀|걔|얘|쟤|누군|아무|다|팀|회사|모두|전부|본인|자기|상대|담당자|직원|사람|친구|동료|거기|여기)$"
_DONE: Final = r"(?:^|\s|[을를] ?)(?:줄|늘|높|움직|보|쌓|붙|모|섞|들|끓|녹|기울|덧붙|먹|매|숙|벌|죽|속|뒤집|들여|받아들|망설|밀어붙)$"
_STATE: Final = r"^(?:그대로|별로|아주|매우|너무)|^(?:초록|빨간|노란|녹|적)색(?:불)?$|^(?:엉망|난리|개판|최악|최고|엉망진창|정상|먹통|다운|에러|오류|실패|성공)$|(?:중|정도|때문|상태|예정|편|것|거|뿐|문제|탓|덕분|마찬가지)$"
_REQUEST: Final = (
    r"(?:줘요?|주세요|주십시오|주시면 ?(?:돼요|됩니다|좋겠\S*|감사하겠\S*|고맙겠\S*)|주길 ?바라요?|주시(?:기|길) ?(?:바라요?|바랍니다|부탁\S*)|(?:주셨|줬|했|하셨|썼)으면 ?(?:해요?|합니다|좋겠\S*)|주실래요|줄래요?|"
    r"(?<= )(?:써|적어|넣어|붙여|불러|보여|알려|빼)|(?:말|답|정리|표시|사용|번역|계산|요약|시작|설명|대답|답변|표기|작성|추가|기재|통일)해|바람|요망|"
    r"하세요|[으]?세요|하십시오|해라|[아어]라|하자|합시다|할 ?것|해야 ?(?:해요?|합니다|한다|돼요?|됩니다)|"
    r"도록 ?(?:해요?|하세요|합시다|해 ?줘요?|해 ?주세요|부탁\S*)|부탁해요?|부탁드려요|부탁드립니다)"
)
_DONT: Final = r"지\s?(?:마(?:세요|십시오|요|라|시고)?|말(?:아\s?(?:줘요?|주세요|요)?|라|자|것|도록)|않도록 ?(?:해 ?줘|해 ?주세요|하세요|해요)|말 ?것)"
_MUST_NOT: Final = r"(?:면|(?:해|아|어|여|려|[가-힣])서는|(?:는|은) ?(?:건|것은|일은))\s?(?:절대로?\s)?(?:안\s?(?:돼요?|되요|됩니다|된다|됨|되고)|금물\S*|곤란\S*)"
_LEADING: Final = r"(?:(?:절대로?|결코|이제부터는?|다음부터는?|앞으로는?|다시는|두 ?번 ?다시는?|어떤 ?(?:경우|일|상황)에?(?:에서|이 ?있어)?도|무슨 ?일이 ?있어도|누구도|아무도|제발|부디),?\s+)*"
_MANY: Final = r"(?:주말에는?|주말마다|주중에는?|매일|매주|매달|매년|아침마다|저녁마다|밤마다|보통|평소에는?|\S요일마다|\S요일에는|아침에는|저녁에는)"


def _no_other_subject(found: re.Match[str]) -> bool:
    """민수는 차를: whoever leaves the speaker out speaks of themselves only where nobody else is the subject."""
    if group(found, "w"):
        return True
    every = found["v"].split()
    if every[-1:] in (["거"], ["것"], ["게"]):  # 전화 오는 거
        return True
    return not any(re.search(r"(?:은|는|이|가|께서|도)$", one) for one in every[:-1])


def _is_time(found: re.Match[str]) -> bool:
    return (
        re.search(r"\d+ ?(?:시|일|월)|요일|정오|자정|매[일주월년]|월말|연말|초순|하순", found["v"])
        is not None
    )


def _topic_only(found: re.Match[str]) -> bool:
    """What a decision is about may be its topic; whoever else decided is a subject, or a person."""
    if _no_other_subject(found):
        return True
    every = found["v"].split()[:-1]
    if any(re.search(r"(?:(?<![\d두세네 ]명)(?:이|가)|께서|씨는|님은|들은)$", one) for one in every):
        return False
    topic = re.match(r"(.+?)(?:은|는)\s", found["v"])
    sure = (
        re.search(r"결정|합의|확정|기로 ?(?:정|했습니다)|(?:에|부터|까지|마다|씩) 하기로", found[0])
        is not None
    )
    return (
        topic is not None
        and re.search(_PEOPLE, topic[1]) is None
        and (sure or " " in topic[1] or bool(group(found, "n")))
    )


def _not_of_a_team(found: re.Match[str]) -> bool:
    """What a team happens to do is nobody's preference."""
    return re.match(_US, group(found, "w") or "") is None


def _of_a_person(found: re.Match[str]) -> bool:
    return bool(found["w"]) and _not_of_a_team(found)


def _people_have_names(found: re.Match[str]) -> bool:
    return re.search(_PEOPLE, found["a"]) is None


def _ends_in_a_noun(found: re.Match[str]) -> bool:
    """예산은 줄이고: no value, but what is done."""
    return not found[0].endswith(("이고", "이며")) or re.search(_DONE, found["v"]) is None


def _is_of_something(found: re.Match[str]) -> bool:
    """다리 꼬지 마 is said in anger or fun; a rule is for good, or says what it is about."""
    if _FOR_GOOD.search(found[0]):
        return True
    about = any(
        re.search(r"(?:을|를|에|에게|한테|께|라고|에서|로|은|는|와|과|없이|마다)$", one)
        for one in found["v"].split()
    )
    return about and not found[0].endswith("말자")


_FOR_GOOD: Final = re.compile(r"절대|항상|앞으로|이제부터|다음부터|다시는|번 ?다시|경우에도|있어도|결코")
_ABOUT: Final = re.compile(r"(?:을|를|에|로) ")
_OWN: Final[tuple[Check, ...]] = (_no_other_subject, lacks("v", _PRONOUN))

_RULES: Final[tuple[Rule, ...]] = (
    # who somebody is
    Rule("name", Lazy(rf"{_W} (?:본명|이름)은 (?P<v>[^\s,]+?(?: [^\s,]+?)?)(?:{_COPULA}|고(?=\s)|인데(?=\s)|(?:이)?라고 ?(?:해요|합니다|해))(?:$|\s.*|,.*)"),
         attribute="name", confidence=0.95, fits=(lacks("v", _PRONOUN),)),
    Rule("name", Lazy(rf"(?:{_ME}) (?P<v>\S+?){_CALLED} ?(?:합니다|해요|해|하고요)$"), attribute="name"),
    Rule("name", Lazy(rf"(?:{_ME}) (?:\S+ )?\S+(?:팀|부서|본부|회사|은행|병원|센터|학과|대학교?)(?:의)? (?P<v>\S+?){_CALLED} ?(?:합니다|해요|해|하고요)$"), attribute="name"),
    Rule("name", Lazy(rf"(?:(?:저를|나를|절|날|그냥|앞으로는?|저는|나는|(?:저|나|날|절)(?:를)? 부를 ?(?:때|땐|때는|때엔)|편하게|이제부터는?|지금부터는?)\s)+(?P<v>\S+?(?: \S+?)?){_CALLED} ?(?:불러|부르).*$"), attribute="name"),
    Rule("name", Lazy(rf"(?P<v>\S+?){_CALLED} ?불러 ?(?:주세요|줘요?|주시면 돼요|주시면 됩니다|주십시오)$"), attribute="name",
         fits=(lacks("v", _PRONOUN),)),
    Rule("place", Lazy(rf"(?:{_W} )?(?P<a>(?:\S+ )?(?:사무실|본사|지사|회사|매장|공장|고객센터|물류센터|연구소|스튜디오|가게|작업실|연구실|서버|데이터센터|창고))(?:은|는|이|가)? (?:(?P<o>\S+)에서 )?{_V}(?:으로|로) (?:이사했|이전했|옮겼|이사 ?왔|이사 ?갔|이전됐|이전되었){_PAST}$"),
         whose="team", personal=False, dated=True, fits=(lacks("v", _PRONOUN),)),
    Rule("home", Lazy(rf"(?P<w>{_ME}) {_NOW}(?P<v>[가-힣A-Za-z]+) (?:살아요?|삽니다|살고 ?있(?:어요?|습니다)|거주 ?중(?:이에요|입니다))$"), attribute="home",
         fits=(lacks("v", r"^(?:혼자|같이|함께|따로|오래|열심히|아직|계속|둘이|셋이|그냥|잘|못|안|겨우|바쁘게|여기|거기|저기)$|(?:게|히|이|서|면서|고|며|에|째|동안)$"),)),
    Rule("home", Lazy(rf"{_SUBJECT}{_NOW}{_V}에서? (?:살아요?|삽니다|산다|살고(?: ?있(?:어요?|습니다))?|거주하고(?: ?있(?:어요?|습니다))?|거주해요?|거주합니다|거주 ?중(?:이에요|입니다))$"),
         attribute="home", dated=True, fits=(*_OWN, lambda found: bool(found["w"]) or " " not in found["v"])),
    Rule("home", Lazy(rf"{_SUBJECT}{_NOW}(?:(?P<o>\S+)에서 )?{_V}(?:으로|로) (?:이사했|이사 ?왔|이사 ?갔){_PAST}$"), attribute="home", dated=True, fits=_OWN),
    Rule("occupation", Lazy(rf"{_SUBJECT}{_NOW}{_V}(?:으로|로) (?:일해요?|일합니다|일하고(?: ?있(?:어요?|습니다))?|근무하고|근무해요?|근무합니다)$"),
         attribute="occupation", dated=True, fits=_OWN),
    Rule("employer", Lazy(rf"{_NOW}(?P<v>(?:\S+ )?\S*(?:팀|부서|본부|사업부|연구소|센터|은행|병원|대학교?|회사))에서 (?:일해요?|일합니다|일하고(?: ?있(?:어요?|습니다))?|근무하고(?: ?있(?:어요?|습니다))?|근무해요?|근무합니다)$"),
         attribute="employer", dated=True, confidence=0.85, fits=(*_OWN,)),
    Rule("team", Lazy(rf"{_ME} {_NOW}(?P<v>(?:\S+ )?\S+(?:팀|부서|본부|파트|실))(?: ?소속)?{_COPULA}$"), attribute="team", fits=(lacks("v", r"(?:은|는|이|가)\s|(?:교실|거실|현실|사실)$"),)),
    Rule("age", Lazy(rf"{_ME} {_NOW}(?:올해 )?(?P<v>(?:\d+|[가-힣]{{1,4}}) ?살){_COPULA}$"), attribute="나이"),
    Rule("origin", Lazy(rf"{_ME} (?P<v>\S+) (?:출신|태생){_COPULA}$"), attribute="출신"),
    Rule("has not", Lazy(rf"{_ME} {_NOW}(?P<v>\S+?(?: \S+?)?)(?:이|가|은|는|도)? ?(?:없어요?|없습니다|안 ?가지고 ?있\S*)$"), relation="has", negated=True, confidence=0.75,
         fits=(*_OWN, lacks("v", r"(?:시간|관심|생각|문제|필요|방법|기억|자신|계획|의견|정신|힘|돈|일정|질문|이유|상관|아이디어|여유|여력|수|적|말|할 말|재미|불만|이견|걱정|후회|미련|거|것|게|데|줄)$"))),
    Rule("employer", Lazy(rf"(?P<w>{_ME}) {_NOW}{_V}에서 (?:일해요?|일합니다|일하고(?: ?있(?:어요?|습니다))?|근무하고(?: ?있(?:어요?|습니다))?|근무해요?|근무합니다)$"),
         attribute="employer", dated=True, confidence=0.85, fits=(*_OWN, lacks("v", rf"(?:집|자택|재택|카페|사무실|현장|거실|방|도서관|밖|환경|{_NOTHING})$"))),
    Rule("employer", Lazy(rf"{_SUBJECT}{_NOW}{_V}에 ?(?:다녀요?|다닙니다|다니고(?: ?있(?:어요?|습니다))?)$"), attribute="employer", dated=True,
         fits=(*_OWN, lacks("v", r"(?:학원|병원|체육관|헬스장|학교)$"))),
    Rule("attends", Lazy(rf"(?:(?P<w>{_ME})\s+|(?:이제는?|지금은?|요즘은?|현재|요새는?) ){_NOW}(?P<v>[가-힣A-Za-z0-9]+)(?:을|를)? (?:다녀요?|다닙니다|다니고 ?있(?:어요?|습니다))$"), relation="attends",
         fits=(lacks("v", r"^(?:잘|자주|매일|열심히|혼자|같이|함께|안|못|계속|아직|여기|거기)$|(?:히|게|서|고|며|로|러)$"),)),
    Rule("home", Lazy(rf"(?:(?P<w>{_ME})\s+)?(?:이제는?|지금은?|요즘은?|현재) (?P<v>[가-힣A-Za-z]+)(?:에서?)? (?:살아요?|삽니다|살고 ?있(?:어요?|습니다))$"), attribute="home",
         fits=(lacks("v", r"^(?:혼자|같이|함께|따로|오래|열심히|아직|계속|둘이|셋이|그냥|잘|못|안|겨우|바쁘게|여기|거기|저기)$|(?:게|히|서|면서|고|며|째|동안)$"),)),
    Rule("born", Lazy(rf"{_ME} {_NOW}{_V}(?:에서|에) 태어났{_PAST}$"), attribute="출생", fits=(lacks("v", _PRONOUN),)),
    Rule("cannot", Lazy(rf"{_ME} {_NOW}(?P<v>(?!전혀|아직|잘|도저히|더)[가-힣A-Za-z]+?)(?:을|를|은|는)? 못 ?(?:해요?|합니다|하는 ?편\S*)$"), relation="ability", negated=True, confidence=0.75,
         fits=(lacks("v", r"^(?:말|생각|만족|이해|집중|대답|답장|연락|기대|용서|상상|포기|실감|공부|일|숙제|결정|고백|표현|인정|그렇게|이렇게|어떻게)$|(?:게|히|서|도|까지|만|고)$"),)),
    Rule("occupation", Lazy(rf"{_ME} {_NOW}(?P<v>(?:\S+ ){{0,3}}\S*(?:{_WORK})){_COPULA}$"), attribute="occupation",
         fits=(lacks("v", r"(?:은|는|이|가|께서)\s"),)),
    Rule("place", Lazy(rf"{_W} (?P<a>(?:\S+ )?(?:사무실|본사|지사|회사|집|창고|매장|공장|고객센터|물류센터|연구소|스튜디오|가게|농장|작업실|연구실|서버|데이터센터))(?:은|는) {_V}에 (?:있어요|있습니다|위치해 ?있\S*)$"),
         confidence=0.85, fits=(lacks("v", _PRONOUN), lacks("v", r"^(?:근처|앞|뒤|옆|안|밖)$|오늘|지금"))),
    Rule("has", Lazy(rf"{_ME} (?P<v>(?:아이|아들|딸|남동생|여동생|동생|형|누나|언니|오빠|고양이|강아지|반려견|반려묘)(?:가|이|는|은|를|을)? ?(?:하나|둘|셋|넷|\S+ ?(?:명|마리)))(?:이|가|을|를)? ?(?:있어요?|있습니다|키워요?|키웁니다)$"),
         relation="has"),
    Rule("speaks", Lazy(rf"{_ME} (?P<v>(?!단어|언어|용어|국어|약어)\S+어(?:(?:와|과|랑|하고) \S+어)?)(?:를|을|도)? (?:할 ?줄 ?알아요?|할 ?줄 ?압니다|구사해요?|구사합니다)$"), relation="speaks"),
    # what has changed
    Rule("changed", Lazy(rf"(?:{_W} )?{_A}{_TOPIC} (?:이제 )?(?P<o>[^,;]+?)에서 {_V}(?:으로|로) (?:바뀌었|바뀌|바꿨|옮겼|옮겨졌|미뤄졌|늘었|줄었|올랐|내렸|늘어났|(?:변경|이동|연기|조정|인상|인하)(?:됐|되었|했|하였)){_PAST}$"),
         whose="team", personal=False, fits=(lacks("a", _NOTHING), lacks("a", r"(?:팀|회사|부서|조직|우리|저희)$"))),
    Rule("moved over", Lazy(rf"{_SUBJECT}{_NOW}(?P<o>[^,;]+?)에서 {_V}(?:으로|로) (?:바꿨|바꾸었|옮겼|갈아탔|이전했|전환했|교체했|넘어갔|넘어왔){_PAST}$"),
         relation="use", whose="team", personal=False, fits=(lacks("o", r"(?:은|는)(?:\s|$)"), lacks("v", _PRONOUN))),
    Rule("changed", Lazy(rf"(?:{_W} )?{_A}{_TOPIC} (?:이제 )?{_V}(?:으로|로) (?:바뀌었|바꿨|옮겼|옮겨졌|미뤄졌|늘었|줄었|올랐|내렸|늘어났|(?:변경|이동|연기|조정|인상|인하)(?:됐|되었|했|하였)){_PAST}$"),
         whose="team", personal=False, fits=(lacks("a", _NOTHING), lacks("v", _PRONOUN), lacks("v", r"(?:팀|부서|본부|회사|학교|동네|지점|지사)$"))),
    Rule("replaced", Lazy(rf"{_SUBJECT}{_NOW}(?P<o>[^\s,;]+?)(?:을|를|은|는)? (?:버리고|그만두고|끊고|접고|해지하고|정리하고|안 ?쓰고|안 ?마시고|안 ?먹고) {_NOW}(?:대신 )?{_V}(?:으로|로|을|를|에)? (?:갈아탔|바꿨|옮겼|넘어갔|써요?$|쓰고|씁니다|사용|다녀요?$|다니고|다닙니다|시작했|배우고|배워요?$|타고|마셔요?$|먹어요?$|이용)\S*(?: ?있\S*)?$"),
         relation="use", personal=False, fits=(lacks("v", _PRONOUN), lacks("o", _NOTHING))),
    Rule("new", Lazy(rf"(?:{_W} )?(?:새|새로운|바뀐|변경된|새로 ?바뀐) {_A}{_TOPIC} {_V}{_SURE}$"), whose="team", personal=False,
         fits=(lacks("v", _STATE), lacks("v", _PRONOUN), lacks("v", r"^(?:게|것|건|거|일)"), _people_have_names)),
    Rule("replaced", Lazy(rf"{_SUBJECT}{_NOW}(?P<o>[^,;]+?)(?:을|를) {_V}(?:으로|로) (?:교체했|바꿨|대체했){_PAST}$"), relation="use",
         whose="team", personal=False, fits=_OWN),
    Rule("moved over", Lazy(rf"(?:(?P<w>{_US}) )?{_NOW}(?P<a>\S+(?: \S+)?)(?:을|를) {_V}(?:으로|로) (?:옮겼|이전했|전환했|마이그레이션했){_PAST}$"), whose="team", personal=False,
         fits=(lacks("a", _NOTHING), lacks("a", r"(?:은|는|이|가)\s"), lambda found: re.search("[A-Za-z]", found["v"]) is not None)),
    Rule("now", Lazy(rf"(?:{_W} )?{_A}{_TOPIC} (?:이제|이제는|지금은|현재|앞으로) {_V}{_SURE}$"), whose="team", personal=False,
         fits=(lacks("v", _STATE), lacks("v", r"(?:은|는|이|가|를|을)$"), lacks("a", _NOTHING), lacks("v", _PRONOUN),
               lacks("a", r"^(?:그쪽|저쪽|그|걔|그녀)"), lacks("a", _PEOPLE))),
    # what is used
    Rule("not used", Lazy(rf"{_SUBJECT}{_NOW}{_V}{_OBJECT} (?:더 ?이상 |이제 )?(?:안 (?:써요?|씁니다|쓴다|씀|사용해요?|사용합니다)|쓰지 않(?:아요?|습니다)|사용하지 않(?:아요?|습니다))$"),
         relation="use", negated=True, whose="team", personal=False, fits=_OWN),
    Rule("not supported", Lazy(rf"(?:(?P<w>{_US}) )?{_NOW}{_V}{_OBJECT} (?:더 ?이상 |이제 )?(?:(?:지원|제공|판매|운영)하|받|팔)지 ?(?:않아요?|않습니다|않는다)$"),
         relation="support", negated=True, whose="team", personal=False, fits=(*_OWN, lambda found: re.search(rf"^{_US}|더 ?이상", found[0]) is not None)),
    Rule("used", Lazy(rf"{_SUBJECT}{_NOW}(?:(?P<a>\S+(?: \S+)?)(?:에는|에선|에서는|에|은|는|으로|로) )?(?P<o>[^\s,]+(?: [^\s,]+){{0,2}}?) (?:대신(?:에)?|말고|아니고|아니라) {_V}(?:을|를)? "
         rf"(?:써요?|씁니다|쓴다|사용해요?|사용합니다|마셔요?|마십니다|먹어요?|먹습니다|타요?|탑니다|다녀요?|다닙니다|배워요?|쓰고 ?있(?:어요?|습니다)|쓰기로 ?했{_PAST})$"), relation="use", whose="team", personal=False,
         fits=(lacks("v", r"^(?:이|그|저)\s"), lacks("v", _PRONOUN), lacks("a", _NOTHING))),
    Rule("used", Lazy(rf"{_SUBJECT}{_NOW}(?P<a>\S+(?: \S+)?)(?:에는|에선|에서는|에|용으로|으로|로는?) {_V}(?:을|를) "
         rf"(?:써요?|씁니다|쓴다|사용해요?|사용합니다|쓰고 ?있(?:어요?|습니다))$"), relation="use", whose="team", personal=False, confidence=0.85,
         fits=(lacks("v", _PRONOUN), lacks("a", rf"^{_NOTHING}|(?:은|는|이|가)(?:\s|$)"), _no_other_subject)),
    Rule("used", Lazy(rf"(?P<w>{_ME}|{_US}) {_NOW}{_V}(?:을|를) (?:써요?|씁니다|사용해요?|사용합니다|쓰고 ?있(?:어요?|습니다))$"), relation="use",
         personal=False, confidence=0.85, fits=(lacks("v", _PRONOUN), lacks("v", r"(?:대신|말고|보다|(?:은|는)\s.+)(?:\s|$)"))),
    Rule("used", Lazy(rf"(?:{_W} )?{_A}(?:은|는) {_NOW}(?P<o>[^\s,]+(?: [^\s,]+)?) (?:대신(?:에)?|말고) {_V}(?:을|를|으로|로)? (?:써요?|씁니다|돌아가|돌아갑|돌려|운영|관리|진행|배포|만들)\S*$"), relation="use", whose="team", personal=False,
         fits=(lacks("v", _PRONOUN), lacks("a", _NOTHING), lacks("v", r"^(?:이|그|저)\s"))),
    Rule("used", Lazy(rf"(?:(?P<w>{_US}) )?{_NOW}(?P<a>(?:\S+ )?(?:{_TOOLED}))(?:은|는) {_V}(?:을|를|으로|로)? (?:써요?|씁니다|쓴다|쓰고 ?있(?:어요?|습니다)|사용해요?|사용합니다|사용 ?중\S*|관리해요?|관리합니다|관리하고 ?있\S*|짜요|짜고 ?있\S*|작성해요?|작성합니다|돌려요|돌립니다|운영해요?|운영합니다|올려요|올립니다|호스팅해요?|호스팅합니다)$"),
         relation="use", whose="team", personal=False, confidence=0.85, fits=(lacks("v", _PRONOUN), lacks("v", r"^(?:잘|많이|자주|매일|안|못|다|더|계속|직접|같이)$|(?:은|는)\s"))),
    # what is liked, eaten, done
    Rule("likes", Lazy(rf"{_SUBJECT}{_NOW}(?:\S+(?:은|는) )?(?:역시 )?(?:[^,;]+?보다는? )?{_V}(?:이|가) (?:딱 |더 |제일 |가장 |역시 |훨씬 )?(?:제|내|저한테|나한테|저랑|나랑)(?: (?:딱 |더 |잘 )?)?(?:취향|스타일|최애|타입|맞아요?|맞습니다|잘 ?맞아요?)(?:{_COPULA})?$"), PREFERENCE,
         relation="liking", fits=(lacks("v", _PRONOUN), lacks("v", r"(?:은|는)\s"))),
    Rule("favourite", Lazy(rf"(?:제|내) (?P<a>최애 ?\S*?|(?:\S+ )?취향)(?:은|는) {_V}{_COPULA}$"), PREFERENCE, fits=(lacks("v", _PRONOUN), lacks("v", _STATE))),
    Rule("favourite", Lazy(rf"(?:제가|내가) (?P<a>(?:제일|가장) 좋아하는 [^,;]+?){_TOPIC} {_V}{_COPULA}$"), PREFERENCE),
    Rule("prefers", Lazy(rf"{_SUBJECT}{_NOW}(?P<x>[^,;]+?)보다는? {_V}(?:을|를|이|가)? (?:더 |훨씬 |항상 |역시 )?(?:좋아요?|좋습니다|좋아해요?|좋아합니다|선호해요?|선호합니다|나아요?|낫습니다|편해요?|편합니다|끌려요?|끌립니다|마음에 ?들어요?|당겨요?|땡겨요?|즐겨요?|즐겨 ?(?:마셔|마십|먹|써|입|봐|봅|읽|들|찾)\S*|자주 ?(?:마셔|마십|먹|써|입|봐|봅|읽|들|찾)\S*|맞아요?|좋더라고?요?|(?:좋아하|선호하)는 (?:편|쪽)\S*)$"),
         PREFERENCE, relation="liking", fits=(lacks("v", _PRONOUN), lacks("x", _SOMEBODY))),
    Rule("prefers", Lazy(rf"{_SUBJECT}{_NOW}{_V}(?:을|를|(?<=거)|(?<=것)|(?<=걸)) (?:더 |가장 |제일 |정말 |무척 )?(?:선호해요?|선호합니다|선호한다|좋아해요?|좋아합니다|즐겨요?|사랑해요?|(?:좋아하|선호하|즐기)는 (?:편|쪽)\S*)$"),
         PREFERENCE, relation="liking", fits=(*_OWN, lacks("v", r"(?:는|은) 것$"))),
    Rule("likes", Lazy(rf"{_ME} {_NOW}{_V}(?:이|가|(?<=는 게)|(?<=은 게)) (?:더 |제일 |정말 )?(?:좋아요?|좋습니다|편해요?|편합니다)$"), PREFERENCE, relation="liking",
         confidence=0.8, fits=(lacks("v", _PRONOUN), lacks("v", r"(?:데|지만|고|서)\s"))),
    Rule("dislikes", Lazy(rf"{_SUBJECT}{_NOW}{_V}(?:은|는) ?(?:정말 |진짜 |아주 )?(?:딱 )?(?:질색|극혐){_COPULA}$"), PREFERENCE, relation="liking", negated=True,
         fits=(lacks("v", _PRONOUN), lacks("v", r"(?:은|는|이|가)\s"))),
    Rule("dislikes", Lazy(rf"{_ME} {_NOW}{_V}(?:이라면|라면|은|는|이|가)? ?(?:정말 |진짜 |아주 |딱 )?(?:질색|별로|극혐|쥐약|싫어하는 ?편|안 ?좋아하는 ?편|꺼리는 ?편){_COPULA}$"), PREFERENCE, relation="liking", negated=True,
         fits=(lacks("v", _PRONOUN), lacks("v", r"(?:은|는|이|가)\s"))),
    Rule("dislikes", Lazy(rf"{_SUBJECT}{_NOW}{_V}(?:을|를|이|가|은|는)? ?(?:정말 |진짜 |너무 |무척 |제일 |별로 |그다지 |딱히 |썩 )?(?:싫어해요?|싫어합니다|싫어요|싫습니다|안 좋아해요?|안 좋아합니다|"
         rf"좋아하지 않(?:아요?|습니다)|못 ?견뎌요?)$"), PREFERENCE, relation="liking", negated=True,
         fits=(*_OWN, lacks("v", r"(?:^|\s)(?:나|저|너|날)$|게\s|면서\s"))),
    Rule("no more", Lazy(rf"{_SUBJECT}{_NOW}{_V}{_OBJECT} (?:이제 |더 ?이상 |전혀 |아예 |너무 |거의 |잘 |별로 )?(?:(?:안|못) ?(?:먹어요?|먹습니다|먹는다|마셔요?|마십니다|피워요?)|먹지 (?:않|못해)\S*|마시지 않\S*)(?:,.*)?$"),
         PREFERENCE, relation="diet", negated=True, fits=_OWN),
    Rule("stopped", Lazy(rf"{_SUBJECT}{_NOW}{_V}(?:은|는|을|를)? (?:(?P<t>[^,;]+?) )?끊었{_PAST}$"), PREFERENCE, relation="diet",
         negated=True, fits=(*_OWN, lacks("v", r"(?:전화|연락|통화)$"))),
    Rule("habit", Lazy(rf"{_SUBJECT}{_MANY} (?P<v>[^,;]+?(?:[가-힣]요|[아어해가와]|습니다|[합갑십씁]니다))$"), PREFERENCE, relation="habit",
         confidence=0.75, fits=(*_OWN, lambda found: _ABOUT.search(found["v"]) is not None, _not_of_a_team, lacks("v", r"싶어요?$|[았었였했됐갔왔봤](?:어요?|습니다)$|(?:줘요?|주세요|해야 해요?|세요|하자|있어요?|없어요?)$"))),
    Rule("eats", Lazy(rf"{_SUBJECT}{_NOW}{_V}(?:을|를|은|는|만)? (?:다시 |잘 )?(?:먹어요|먹습니다|마셔요|마십니다)$"), PREFERENCE, relation="diet",
         confidence=0.8, fits=(*_OWN, lacks("v", r"보다|즐겨$|자주$|대신|말고"), _of_a_person)),
    Rule("allergy", Lazy(rf"{_SUBJECT}{_NOW}(?P<v>[^\s,]+(?: [^\s,]+)?) ?알레르기(?:가|도)? ?(?:있|생겼|심해|심합)\S*$"), relation="diet", negated=True,
         fits=_OWN),
    Rule("allergy", Lazy(rf"{_SUBJECT}{_NOW}{_V}에 ?알레르기(?:가|도)? ?(?:있|생겼|심해|심합)\S*$"), relation="diet", negated=True, fits=_OWN),
    Rule("diet", Lazy(rf"{_SUBJECT}{_NOW}(?:(?P<t>\S+(?: \S+)?부터) )?(?P<v>{_DIET})(?:(?P<n>(?:이|가)? ?(?:아니에요|아니예요|아닙니다|아니야|아니다))|(?:이|가) ?있(?:어요?|습니다)|{_COPULA}|(?:이|가) ?됐\S*)$"),
         relation="trait", fits=(_no_other_subject,)),
    # rules
    Rule("never", Lazy(rf"{_NOW}{_LEADING}(?P<v>.{{2,120}}?)(?:하)?(?:{_DONT}|{_MUST_NOT}|지 ?않(?:았으면|으면) ?(?:해요?|합니다|좋겠\S*)|지 ?않도록 ?(?:부탁\S*|주의\S*))$"), CONSTRAINT, relation="rule", negated=True,
         fits=(lacks("v", r"(?:걱정|신경|잊|울|웃|오해|미안해|포기|후회|낭비)$"), _is_of_something)),
    Rule("forbidden", Lazy(rf"{_LEADING}(?P<v>[^,;]{{2,80}}?)(?:은|는|을|를)? ?(?:삼가|자제해|피해|빼고 ?써) ?(?:줘요?|주세요|주십시오|주시기 ?바랍니다|주시길 ?바랍니다|주셨으면 ?\S+)$"), CONSTRAINT, relation="rule", negated=True, confidence=0.85),
    Rule("forbidden", Lazy(rf"(?P<v>[^,;]{{2,80}}?)(?:은|는|을|를)? ?(?:절대 |엄격히 )?금지(?:{_COPULA}|합니다|해요|한다|됩니다|돼요)?$"), CONSTRAINT, relation="rule",
         negated=True),
    Rule("from now on", Lazy(rf"(?:앞으로는?|이제부터는?|다음부터는?|지금부터는?|향후에?는?|오늘부터는?)[,]?\s+(?P<v>.{{2,160}}?{_REQUEST})$"), CONSTRAINT, relation="rule"),
    Rule("always", Lazy(rf"(?:항상|언제나|늘|반드시|무조건|매번)\s+(?P<v>.{{2,160}}?{_REQUEST})$"), CONSTRAINT, relation="rule",
         fits=(lacks("v", r"(?:고마워|미안해|좋아해|사랑해)(?:요)?$"),)),
    Rule("always", Lazy(rf"(?P<v>\S.{{0,120}}?(?:항상|언제나|늘|반드시|꼭|무조건|매번|때마다)\s+.{{1,120}}?(?:{_REQUEST}))$"), CONSTRAINT, relation="rule",
         fits=(lacks("v", r"(?:습관|고마워|미안해|좋아해|와|가|타|먹어|자|사랑해)(?:요)?$"), lacks("v", r"^(?!제가|내가)\S+(?:님은|씨는|이는|들은|가|이)\s"))),
    Rule("always", Lazy(rf"(?P<v>\S.{{0,80}}?[{_WITH_L}] ?(?:때는|땐|때엔|때에는|적에는|경우에는|경우엔)\s+.{{2,120}}?{_REQUEST})$"), CONSTRAINT, relation="rule", confidence=0.8),
    Rule("always", Lazy(rf"(?P<v>(?:내가|제가) [^,]{{2,60}}?면,? .{{2,100}}?{_REQUEST})$"), CONSTRAINT, relation="rule", confidence=0.8, fits=(lacks("v", r"(?:^|\s)(?:그|이|저)(?:것|거|게)?\s"),)),
    Rule("always", Lazy(rf"(?:기본적으로는?|따로 ?말(?:하지|씀드리지|이) ?\S+면|별(?:다른|도의?)? ?(?:말|얘기|요청|언급)\S* ?없으면|(?:내가|제가) ?(?:따로|다시|다르게) ?말(?:할|씀드릴) ?때까지는?|앞으로 ?쭉|모든 \S+(?:은|는|에|에는)),?\s+(?P<v>.{{2,160}}?{_REQUEST})$"), CONSTRAINT, relation="rule", confidence=0.85),
    # decisions
    Rule("decision", Lazy(rf"(?:{_US} )?(?P<v>.{{2,120}}?)하?(?P<n>지 ?(?:않|말))기로 ?(?:결정|합의|확정|정|결론 ?지)?(?:었|했|됐|함|하였|결정함|을 ?모았){_PAST}$"), relation="decision", whose="team",
         personal=False, fits=(_topic_only,)),
    Rule("decision", Lazy(rf"(?:{_US} )?(?P<a>[^\s,]+(?: [^\s,]+){{0,2}}?)(?:은|는) (?:(?:최종적으로|최종|결국|일단|그냥|드디어) )?{_V}(?:으로|로) (?:(?:[하가]기로 ?(?:했|결정했|합의했|정했)|확정(?:했|됐|되었)|결정(?:했|됐|났|되었)|정했|정해졌|낙점(?:했|됐)){_PAST}|확정|결정)$"),
         relation="decision", whose="team", personal=False, fits=(lacks("v", r"기$"), lacks("a", rf"^{_NOTHING}|^(?:저|나)$"),)),
    Rule("decision", Lazy(rf"(?:{_US} |(?:팀|회사|부서|회의|학교|가족|동아리)에서는? )?(?P<v>.{{2,120}}?)하?기로 ?(?:결정|합의|확정|정)?(?:했|됐|함|하였|결정함){_PAST}$"), relation="decision", whose="team",
         personal=False, fits=(lacks("v", r"지 ?(?:않|말)$"), _topic_only)),
    Rule("decision", Lazy(r"(?:결정|결정 ?사항|확정|합의)(?:됨)?: (?P<v>.{2,200})$"), relation="decision", whose="team", personal=False),
    Rule("decision", Lazy(rf"(?:그럼 |우리 )?{_V}(?:으로|로) ?(?:가자|갑시다|하자|합시다|결정|확정|결정했{_PAST}|확정했{_PAST}|정했{_PAST})$"), relation="decision", whose="team",
         confidence=0.8, fits=(_no_other_subject, lacks("v", _PRONOUN), lacks("v", r"^(?:집|밖|저기|안)$"))),
    # attributes
    Rule("corrected", Lazy(rf"(?P<o>[^\s,;]+(?<![은는]))(?:(?:이|가) ?아니(?:라|고)|\s?말고) {_V}{_SURE}$"), personal=False, corrects=True, confidence=0.8, fits=(lacks("v", _PRONOUN), lacks("v", _STATE), lacks("o", rf"^{_NOTHING}"))),
    Rule("corrected", Lazy(rf"{_W} {_A}(?:은|는) {_V}{_SURE}, ?(?P<o>[^,;]+?)(?:이|가)? ?아니(?:라|고|에요|예요|라요|고요)?$"), personal=False, fits=(lacks("v", _PRONOUN), _people_have_names)),
    Rule("corrected", Lazy(rf"(?:{_W} )?{_A}(?:은|는) {_V}(?:이|가) ?맞(?:아요?|습니다|다)$"), whose="team", personal=False, corrects=True, fits=(lacks("v", _STATE), lacks("a", _NOTHING), lacks("v", _PRONOUN))),
    Rule("corrected", Lazy(rf"(?P<o>[^\s,;]+?)(?:(?:이|가)? ?아니(?:라|고)|\s?말고) {_V}{_SURE}, ?(?P<w>제|내|우리|저희) (?P<a>[^,;]{{2,30}}?)(?:은|는|이|가)?$"), personal=False, fits=(lacks("v", _PRONOUN),)),
    Rule("corrected", Lazy(rf"(?:{_W} )?{_A}{_TOPIC} (?P<o>[^,;]+?)(?:(?:이|가)? ?아니(?:라|고)|\s?말고) {_V}{_SURE}$"), whose="team", personal=False,
         fits=(lacks("a", _NOTHING), lacks("a", r"^(?:그|저|이)$|의(?:\s|$)"))),
    Rule("corrected", Lazy(rf"(?:{_W} )?(?P<a>[^\s:]+?(?:\s[^\s:]+?){{0,3}}?){_TOPIC} (?P<o>[^,;]+?)(?:이|가)? ?아니라 {_V}에 (?:시작|종료|마감|오픈|출발|도착|끝|열|닫|있)\S*$"),
         whose="team", personal=False, fits=(lacks("a", _NOTHING), lacks("a", _PEOPLE))),
    Rule("corrected", Lazy(rf"(?:{_W} )?{_A}{_TOPIC} {_V}{_SURE}$"), whose="team", personal=False, corrects=True,
         fits=(lacks("v", _STATE), lacks("a", _NOTHING), lacks("v", _PRONOUN))),
    *(
        Rule("attribute", Lazy(rf"(?P<w>우리|저희) {_A}{topic} {_V}{_SURE}$"), confidence=0.85, whose="team", personal=False,
             fits=(lacks("a", _NO_ATTRIBUTE), lacks("v", _PRONOUN), lacks("v", _STATE), lacks("a", r"(?:을|를)\s"),
                   lacks("v", r"오늘|내일|모레|지금|이번"), _people_have_names))
        for topic in ("(?:은|는)", "(?:이|가)")
    ),
    *(
        Rule("attribute", Lazy(rf"{_W} {_A}{topic} {_V}{_COPULA}$"), confidence=0.85,
             fits=(lacks("a", _NO_ATTRIBUTE), lacks("v", _PRONOUN), lacks("v", _STATE), lacks("a", r"(?:을|를)\s"), lacks("v", r"오늘|내일|모레|지금|이번"), _people_have_names))
        for topic in ("(?:은|는)", "(?:이|가)")
    ),
    Rule("made", Lazy(rf"(?P<w>우리|저희) {_A}{_TOPIC} {_V}(?:으로|로) (?:작성|구현|개발|만들어|구성|짜여|쓰여)(?:되어|돼|져)? ?(?:있어요|있습니다|있다|됐어요|됐습니다|졌어요|졌습니다)$"),
         confidence=0.85, whose="team", personal=False, fits=(lacks("v", _PRONOUN), _people_have_names)),
    Rule("dated", Lazy(rf"(?:{_W} )?{_A}(?:은|는) {_V}(?:으로|로|에)? (?:잡혀 ?있\S*|잡혔\S*|예정\S*|정해졌\S*|정해져 ?있\S*|예약돼 ?있\S*|예약되어 ?있\S*)$"),
         whose="team", personal=False, confidence=0.8, fits=(_is_time, lacks("v", r"오늘|내일|지금"), lacks("a", r"오늘|내일|지금"), lacks("a", _NOTHING))),
    Rule("trait", Lazy(rf"{_SUBJECT}{_NOW}(?P<v>{_DIET})$"), relation="trait", asked=True, fits=(_no_other_subject,)),
    *(
        Rule("schedule", Lazy(rf"(?:{_US} )?{what}(?:은|는) {_V}에 (?:해요|합니다|한다|진행해요|진행합니다|나가요|나갑니다|있어요|있습니다)$"), attribute=f"{what} 일정",
             whose="team", personal=False, confidence=0.85, fits=(lambda found: re.search(r"요일|매[일주달월]|격주|\d+ ?[시일주]|주말|평일", found["v"]) is not None, lacks("v", r"오늘|내일|이번|다음 ?주")))
        for what in ("배포", "릴리스", "주간 회의", "정기 회의", "스탠드업", "정산", "백업", "정기 점검")
    ),
    *(
        Rule("attribute", Lazy(rf"{_W} {_A}{topic} {_V}$"), asked=True,
             fits=(lacks("a", _NO_ATTRIBUTE), lacks("v", _PRONOUN), lacks("v", r"(?:[다요에서]|을|를)$|(?:을|를|에|에서|은|는|이|가)\s"), _people_have_names))
        for topic in ("(?:은|는)", "(?:이|가)")
    ),
    Rule("attribute", Lazy(rf"(?P<a>(?:\S+ ){{0,2}}(?:{_ATTRIBUTES})){_TOPIC} {_V}(?:{_SURE}|이고|이며)$"), whose="team", personal=False, confidence=0.75,
         fits=(lacks("v", _STATE), lacks("v", _PRONOUN), lacks("a", r"^(?:그|저|걔|그쪽|그녀)(?:의)?\s|(?:인데|이고|이며|는데|지만)\s"), _ends_in_a_noun)),
    Rule("owner", Lazy(rf"{_TAKES}$"), part="담당자", behind=True, whose="team", personal=False, confidence=0.75,
         fits=(lacks("v", _PRONOUN), lacks("v", _NOBODY), lacks("v", _PEOPLE), lacks("a", _NOTHING))),
)  # fmt: skip


def _asked(text: str, start: int, end: int) -> Span | None:
    """What the sentence asks to remember; nothing of it where it only says "기억해 줘"."""
    behind = (_ASKED_BEHIND, _ASKED_SAYING, _ASKED_NOT_TO_FORGET, _ASKED_BECAUSE)
    found = next((one for each in behind if (one := each.match(text, start, end)) is not None), None)
    if found is not None:
        return found.start("v"), found.end("da") if found["da"] else found.end("v")
    if _ASKED_ALONE.match(text, start, end) is not None:
        return end, end
    if (found := _ASKED_AFTER.match(text, start, end)) is not None:
        return found.span("v")
    found = _ASKED_BEFORE.match(text, start, end)
    return None if found is None else found.span("v")


KOREAN: Final = Language(
    no_statement=_NO_STATEMENT, joke=_JOKE, taken_back=_TAKEN_BACK, condition=_CONDITION, passing=_PASSING,
    then_asks=_re(r"(?!)"), corrects=_CORRECTS, begins=_BEGINS, joint=_JOINT, filler=_FILLER, asked=_asked, rules=_RULES,
    mine=frozenset("저는 저는요 나는 난 전 제가 내가 저도 나도 제 내".split()), articles=_re(r"(?!)"), tail=_re(r"\s+$"),
    canonical={"이름": "name", "본명": "name", "생일": "birthday", "직업": "occupation", "집": "home", "회사": "employer", "담당": "담당자",
               "직장": "employer"},
)  # fmt: skip
