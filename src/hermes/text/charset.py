"""Charset detection for text that is not UTF-8 and has no byte order mark."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

# Full stops, commas, brackets, dashes and quotation marks as they stand between characters.
PUNCTUATION = frozenset(
    "，。、；：？！（）《》〈〉「」『』【】〔〕“”‘’…—～　·％＃／＋－＝０１２３４５６７８９"
)

SIMPLIFIED = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之"
    "年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样"
    "理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将"
    "两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信"
    "表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔"
    "更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统"
    "区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品"
    "住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运转风花车飞站华"
    "请输错误码配置户密删除添修改版默返参函循环串字符测试启停止服器网络址端夹录径志库查询排序列"
    "索引缓存线异载显示注释编译读写打印屏幕键按钮窗菜单欢迎谢您吗呢吧啊哪谁怎快件议音乐元客满"
    "爱春秋夏冬早晚左右男父母友校语言汉英京城街店院房床桌红黄蓝绿黑跑吃喝买卖钱送收找笑哭"
)

TRADITIONAL = frozenset(
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之"
    "年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣"
    "理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將"
    "兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信"
    "表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾"
    "更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統"
    "區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品"
    "住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運轉風花車飛站華"
    "請輸錯誤碼配置戶密刪除添修改版默返參函循環串字符測試啟停止服器網路址端夾錄徑誌庫查詢排序列"
    "索引緩存線異載顯示註釋編譯讀寫打印螢幕鍵按鈕窗菜單歡迎謝您嗎呢吧啊哪誰怎快檔議音樂元客滿"
    "愛春秋夏冬早晚左右男父母友校語言漢英京城街店房床桌紅黃藍綠黑跑吃喝買賣錢送收找笑哭臺灣"
)

KANJI = frozenset(
    "日一人年大国会中本出者行時上生分間見事自方合後場社今前度下手女子新学文名部長入用的家動作"
    "物力定金気通来回市円員政発対法代現全明性体問題化理主山東京私何書使示設表語目話変更読込最"
    "小高地内外同田先月火水木土道電車持思言知食飲立開閉始終保存画面検索漢字世界"
)

HANGUL = frozenset(
    "이다는의에을하고가지사로기리도서대자한은인시어나를그스수아정일해부전과보라만제으있들원주장구"
    "마상게여선오우조공트동비되니세무유미소신요안계치경생바방연문모내관용호성러개발할거중저진국실"
    "학면말적화교위재물체양금당영회운력분설때더없않년월명등건심각녕까야터파일입습합와요네군데려"
    "했었였같습것번행작본복식약업예외음의임점준질차처청초출최추통투판평표품하험현확활후히"
)

# Encodings of one byte to a letter: the letters that make up most of what is not ASCII in them.
BY_BYTE = {
    "cp1251": "оеаинтсрвлкмдпуяыьгзбчй",
    "koi8-r": "оеаинтсрвлкмдпуяыьгзбчй",
    "cp866": "оеаинтсрвлкмдпуяыьгзбчй",
    "iso8859-5": "оеаинтсрвлкмдпуяыьгзбчй",
    "mac-cyrillic": "оеаинтсрвлкмдпуяыьгзбчй",
    "iso8859-7": "αοιετσνηυρπκμλωςάόίέήύώγδθ",
    "cp1255": "יוהלאתשרמבנדעחקפכגםסטןצז",
    "cp1256": "ايلمنورتبةعدسفهكقحجأىشطصخ",
    "cp874": "านรอกเงมยลวดทสตะปบคหแจพชขใไ่้ิีัุู็์",
    "cp1250": "ąćęłńóśźżáčďéěíňřšťúůýžőöűüăâîşţđ",
    "iso8859-2": "ąćęłńóśźżáčďéěíňřšťúůýžőöűüăâîşţđ",
    "cp1254": "ığşçöüâİŞÇÖÜ",
    "cp850": "äöüßÄÖÜéèêëàâçîïôûùáíóúñãõåæøì",
    "mac-roman": "äöüßÄÖÜéèêëàâçîïôûùáíóúñãõåæøì",
}


_SAMPLE = 32 << 10  # bytes that are judged
_NEAR = 200  # bytes before a character that is not ASCII which are judged with it
_LONG = 4_000  # bytes of a line that may have been cut
_SPREAD = 8  # places that they are taken from in a large text
_SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_SAFE = re.compile(rb"[\x00-\x2f]")
_LAST_SAFE = 0x2F
_HIGH = re.compile(rb"[\x80-\xff]")

# Characters of two bytes: the encodings, what is common in them, how ordinary ones are told.
_WIDE = {
    "gbk": SIMPLIFIED | PUNCTUATION,
    "big5": TRADITIONAL | PUNCTUATION,
    "cp932": KANJI | PUNCTUATION,
    "euc-jp": KANJI | PUNCTUATION,
    "cp949": HANGUL | PUNCTUATION,
}
_COMMON, _ORDINARY, _ODD = 2.0, 0.5, -2.0
_TAKEN = 0.6  # the score from which on a reading makes sense
_POSSIBLE = 0.4  # ... if nothing else does
_SURE = 0.9  # ... and is told from the next best by as much in all
_MARGIN = 2.5

_L = "A-Za-zÀ-ÖØ-öø-ÿŠŽšžŒœŸ"
_H = "[À-ÖØ-öø-ÿŠŽšžŒœŸ]"
# What no text of western Europe has: see the parts.
_MISPLACED = re.compile(
    "|".join(
        (
            # words of nothing but accents, unless they are there to be listed
            f"(?![äöüÄÖÜß]+[^À-ÿ]|[æøåÆØÅ]+[^À-ÿ])(?:{_H}{{3,}}|(?<![{_L}]){_H}{{2}}(?![{_L}]))",
            "(?<=[a-zà-öø-ÿ])[À-ÖØ-ÞŠŽŒŸ]",  # a capital within a word
            f"(?<=[{_L}])[^\x00-\x7f{_L}´‘’·\xad\xa0–—‑…]+(?=[{_L}])",  # signs within a word
            f"(?<=[{_L}])[¿¡±¶¼½¾¤¦¨¯¸¬]",
            f"(?<![{_L}0-9])[²³¹ºª±¼½¾¶¤¦¨¯¸¬](?=[{_L}])",
            "[ÂÃâ][\x80-\xbf€‚ƒ„…†‡ˆ‰‹Œ‘’“”•–—˜™›œ]",  # UTF-8 that was cut
            "[¢-ª¬-¶¸-º¼-¾×÷]{2,}|[À-ÿ][¢-¨¬¯±-³µ¶¸¹¼-¿]",  # sign after sign
            "[\x80-\x9f\ufffd]",
        )
    )
)
_WESTERN = re.compile("[^\x00-\x7f]")
_FOREIGN = re.compile("[ðþýÐÞÝšžŠŽŸ]")
_ICELANDIC = re.compile("[áíóúéæöÁÍÓÚÉÆÖ]")
_NOT_ICELANDIC = re.compile("[šžŠŽŸèìòùøçñ]")
_TOLERATED = 50  # one letter in so many may be misplaced


class Guess(NamedTuple):
    """An encoding, and whether it is beyond doubt."""

    encoding: str
    certain: bool


def guess(data: bytes) -> Guess:
    """The likeliest encoding of bytes that are not valid UTF-8."""
    lines = _sample(data)
    sample = b"\n".join(lines)
    if _mixed(lines):
        return Guess("utf-8", certain=False)
    western, bad = _western(sample)
    wide = sorted(((*_wide(lines, name), name) for name in _WIDE), reverse=True)
    score, count, best = wide[0]
    if score >= _TAKEN and (bad or score >= _SURE):
        lead = (score - max(wide[1][0], 0)) * count
        return Guess(_named(best, data), certain=score >= _SURE and lead >= _MARGIN)
    if not bad:
        return Guess(western, certain=True)
    if score >= _POSSIBLE and count > 1:
        return Guess(_named(best, data), certain=False)
    return Guess(_by_letters(sample) or "latin-1", certain=False)


def _named(encoding: str, data: bytes) -> str:
    """`gb18030` instead of `gbk` for text with characters that only the successor has."""
    if encoding == "gbk":
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            return "gb18030"
    return encoding


def whole(data: bytes) -> bytes:
    """A piece out of a text without the characters at its ends that may have been cut.

    Spaces and control characters are never a part of another one.
    """
    first = _SAFE.search(data)
    start = first.start() if first else 0
    end = len(data)
    while end > start + 1 and data[end - 1] > _LAST_SAFE:
        end -= 1
    return data[start:end] if end > start + 1 else data[start:]


def _sample(data: bytes) -> list[bytes]:
    """Lines with characters that are not ASCII, out of the whole text."""
    if len(data) <= _SAMPLE:
        starts = [0]
    else:
        starts = [len(data) * part // _SPREAD for part in range(_SPREAD)]
    lines: list[bytes] = []
    position = 0
    for begin in starts:
        room = _SAMPLE // len(starts)
        if begin:
            position = max(begin, position)
            safe = _SAFE.search(data, position, position + room)
            if safe is None:
                continue  # nobody can tell where a character starts
            position = safe.start()
        while room > 0 and (first := _HIGH.search(data, position)):
            # Of a long line only what is near counts.
            found = first.start()
            start = max(data.rfind(b"\n", position, found) + 1, found - _NEAR, position)
            end = data.find(b"\n", found, found + room)
            position = end if end >= 0 else min(found + room, len(data))
            line = data[start:position]
            if end < 0 and position < len(data):
                part = whole(b"\n" + line)
                line = part if len(part) <= len(line) or not lines else b""
            lines.append(line)
            room -= position - start
    return lines


def _mixed(lines: list[bytes]) -> bool:
    """Whether UTF-8 and something else are in one text, or UTF-8 was damaged."""
    valid = other = broken = 0
    for line in lines:
        try:
            line.decode()
            valid += len(_HIGH.findall(line)) >= 3
        except UnicodeDecodeError:
            rest = _SEQUENCE.sub(b"", line)
            wide = sum(len(found) > 2 for found in _SEQUENCE.findall(line))
            broken += wide > len(_HIGH.findall(rest))
            other += 1
    return other > 0 and (broken * 2 > other or valid >= max(1, other // 50))


def _western(sample: bytes) -> tuple[str, bool]:
    """The encoding of western Europe that would do, and whether the text reads badly in it."""
    plain = re.search(rb"[\x80-\x9f]", sample) is None
    text = sample.decode("latin-1") if plain else sample.decode("cp1252", "replace")
    text += "\n"
    total = len(_WESTERN.findall(text))
    misplaced = sum(len(found) for found in _MISPLACED.findall(text))
    foreign = len(_FOREIGN.findall(text))
    if foreign and not _NOT_ICELANDIC.search(text):
        foreign = max(0, foreign - 2 * len(_ICELANDIC.findall(text)))
    bad = misplaced * _TOLERATED > total or foreign * 10 > total or _hungarian(text)
    return "latin-1" if plain else "cp1252", bad


def _hungarian(text: str) -> bool:
    """Whether these letters are rather those of Hungarian, two of which are read as others."""
    return bool(re.search("[õûÕÛ]", text) and re.search("[öüóáÖÜÓÁ]", text)) and not re.search(
        "[ãçàêâèäîïñÃÇÀÊÂÈÄÎ]", text
    )


def _wide(lines: list[bytes], encoding: str) -> tuple[float, int]:
    """How much sense the text makes in an encoding of two bytes, and by how many characters."""
    common = _WIDE[encoding]
    codec = "gb18030" if encoding == "gbk" else encoding
    try:
        text = "".join(_read(line, codec) for line in lines)
    except UnicodeDecodeError:
        return -9.0, 0
    counts = Counter(text)
    score, total = 0.0, 0
    for character, count in counts.items():
        if character > "\x7f":
            total += count
            score += count * (_COMMON if character in common else _ordinary(character, encoding))
    return score / max(1, total), total


def _read(line: bytes, codec: str) -> str:
    try:
        return line.decode(codec)
    except UnicodeDecodeError as error:
        # A line as long as this was cut, perhaps within a character.
        if len(line) > _LONG and error.start > len(line) - 4:
            return line[: error.start].decode(codec)
        raise


def _ordinary(character: str, encoding: str) -> float:
    if encoding in ("cp932", "euc-jp") and "\u3041" <= character <= "\u30fe":
        return _COMMON
    if encoding == "cp949":
        return _ORDINARY if "가" <= character <= "힣" else _ODD
    if not "一" <= character <= "\u9fff":
        return _ODD
    try:
        written = character.encode(encoding)
    except UnicodeEncodeError:
        return _ODD
    first, last = _EVERYDAY[encoding]
    return (
        _ORDINARY if first <= written <= last and (encoding != "gbk" or written[1] > 0xA0) else _ODD
    )


# Where the characters of daily life are; what is rare comes behind them.
_EVERYDAY = {
    "gbk": (b"\xb0\xa1", b"\xd7\xf9"),
    "big5": (b"\xa4\x40", b"\xc6\x7e"),
    "cp932": (b"\x88\x9f", b"\x98\x72"),
    "euc-jp": (b"\xb0\xa1", b"\xcf\xd3"),
}


def _by_letters(sample: bytes) -> str | None:
    """The encoding of one byte to a letter in which the commonest letters come out."""
    best, found = 0.7, None
    for encoding, letters in BY_BYTE.items():
        counts = Counter(sample.decode(encoding, "replace"))
        total = sum(count for letter, count in counts.items() if letter > "\x7f")
        share = sum(counts[letter] for letter in letters) / max(1, total)
        if share > best:
            best, found = share, encoding
    return found
