"""Text encodings: detect the charset, decode and encode files, decode console output."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from typing import Literal


if TYPE_CHECKING:
    Newline = Literal["\n", "\r\n", "\r", "mixed"]

# The longer marks come first: one starts with another.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WIDTHS = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_SPACES = str.maketrans(
    "", "", "\t\n\r\f\v\x1b\b\x85\xa0\u2028\u2029\u3000\ufeff\u200b\u200e\u200f"
)
_SAMPLE = 1 << 16
_ESCAPED = "backslashreplace"


class Text:
    """A text, and how it is written; `tail` has the bytes at the end that are no character."""

    __slots__ = ("bom", "certain", "encoding", "errors", "newline", "tail", "text")

    def __init__(
        self,
        text: str,
        encoding: str = "utf-8",
        *,
        bom: bytes = b"",
        certain: bool = True,
        errors: str = "strict",
        tail: bytes = b"",
    ) -> None:
        self.text = text
        self.encoding = encoding
        self.bom = bom
        self.certain = certain
        self.errors = errors
        self.tail = tail
        self.newline = newline_of(text)

    @property
    def shown(self) -> str:
        """The text as it can be printed: bytes that mean nothing are replaced."""
        if self.errors == "strict":
            return self.text
        return self.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def __repr__(self) -> str:
        doubt = "" if self.certain else ", uncertain"
        return f"Text({len(self.text)} characters, {self.encoding}{doubt}, {self.newline!r})"


def decode(data: bytes) -> Text:
    """The text of a whole file in any encoding; never fails."""
    encoding, bom, certain = detect(data)
    if certain and encoding == "utf-8":
        return Text(data.decode())
    body = data[len(bom) :]
    whole = len(body) - len(body) % width_of(encoding)
    tail = body[whole:]
    for errors in ("strict", "surrogatepass" if encoding in _WIDTHS else "surrogateescape"):
        try:
            text = body[:whole].decode(codec_of(encoding), errors)
            # Some characters have two codes in the encodings of the East; only one comes back.
            if text.encode(codec_of(encoding), errors) == body[:whole]:
                sure = certain and errors == "strict" and not tail
                return Text(text, encoding, bom=bom, certain=sure, errors=errors, tail=tail)
        except UnicodeError:
            continue
    text = data.decode("utf-8", "surrogateescape")
    return Text(text, certain=False, errors="surrogateescape")


def encode(text: str, like: Text) -> bytes:
    """A text as bytes, in the encoding and with the byte order mark of another one.

    Raises:
        ToolError: The encoding lacks a character of the text; or it is not certain, and the
            text has a character that the other one does not show the bytes of.
    """
    if not like.certain and text != like.text:
        known = set(like.text)
        for position, character in enumerate(text):
            if character > "\x7f" and character not in known:
                raise _unwritable(text, position, "an encoding that is not known for certain")
    try:
        return like.bom + text.encode(codec_of(like.encoding), like.errors) + like.tail
    except UnicodeEncodeError as error:
        raise _unwritable(text, error.start, like.encoding) from None


def newline_of(text: str) -> Newline:
    """How the lines of a text end; that of a new line where there is none yet."""
    if "\r" not in text:
        return "\n"
    both = text.count("\r\n")
    returns, feeds = text.count("\r"), text.count("\n")
    if both == returns == feeds:
        return "\r\n"
    if not feeds:
        return "\r"
    return "mixed"


def detect(data: bytes) -> tuple[str, bytes, bool]:
    """The encoding of a file, its byte order mark, and whether that is certain."""
    encoding, bom = unicode_of(data)
    if encoding:
        return encoding, bom, encoding in _WIDTHS or b"\0" not in data

    found = guess(data)
    return found.encoding, b"", found.certain and b"\0" not in data


def unicode_of(data: bytes, *, whole: bool = True) -> tuple[str, bytes]:
    """The form of Unicode that bytes are written in, and their mark; "" when it is none.

    Args:
        data: A file, or its start.
        whole: Whether these are all bytes, so that a character cut at the end is a flaw.
    """
    if data.isascii() and b"\0" not in data:
        return "utf-8", b""
    for mark, encoding in _MARKS:
        if data.startswith(mark) and _marked(data, mark, encoding):
            return encoding, mark
    if b"\0" in data and (wide := _wide(data)):
        return wide, b""
    try:
        codecs.utf_8_decode(data, "strict", whole)
    except UnicodeDecodeError:
        return "", b""
    return "utf-8", b""


def codec_of(encoding: str) -> str:
    """The name that Python knows an encoding without byte order mark by."""
    return "utf-8" if encoding == "utf-8-sig" else encoding


def width_of(encoding: str) -> int:
    """The bytes that the characters of an encoding are multiples of."""
    return _WIDTHS.get(encoding, 1)


def _marked(data: bytes, mark: bytes, encoding: str) -> bool:
    """Whether a mark is one: two of them may be the start of an older or shorter encoding."""
    if encoding == "utf-8-sig":
        return True
    body = data[len(mark) : _SAMPLE]
    body = body[: len(body) - len(body) % width_of(encoding)]
    if width_of(encoding) == 4:
        try:
            return "\0" not in body.decode(encoding)
        except UnicodeDecodeError:
            return False
    return True


def _wide(data: bytes) -> str | None:
    """The encoding of two or four bytes that a text without mark is written in."""
    sample = data[: _SAMPLE & ~3]
    best: tuple[float, str] | None = None
    for encoding, width in _WIDTHS.items():
        if len(data) % width and len(data) <= _SAMPLE:
            continue
        try:
            text = sample[: len(sample) - len(sample) % width].decode(encoding)
        except UnicodeDecodeError as error:
            if error.start < len(sample) - width:
                continue
            text = sample[: error.start].decode(encoding)
        plain = text.translate(_SPACES)
        if not plain.isprintable() or not text or _pairs(text):
            continue
        # ASCII, or at least the spaces and line ends between other letters.
        share = sum(character < "\x80" for character in text) / len(text)
        if share >= (0.4 if len(text) < 8 else 0.02) and (best is None or share > best[0]):
            best = share, encoding
    return best[1] if best else None


def _pairs(text: str) -> bool:
    """Whether characters of two bytes are rather two letters each, with a zero here and there."""
    beyond = [divmod(ord(character), 256) for character in text if character > "\xff"]
    letters = sum(32 <= high < 127 and 32 <= low < 127 for high, low in beyond)
    return letters * 5 > len(beyond) * 3 and letters > len(text) - len(beyond)


def _unwritable(text: str, position: int, encoding: str) -> ToolError:
    import unicodedata

    character = text[position]
    name = unicodedata.name(character, "half of a character" if _half(character) else "no name")
    shown = "" if _half(character) else f"{character!r}, "
    line = text.count("\n", 0, position) + 1
    return ToolError(
        f"line {line} has {shown}U+{ord(character):04X} ({name}), which can't be written in "
        f"{encoding}, the encoding of the file",
        hint="Use characters that the file has already or plain ASCII, or convert it to UTF-8.",
    )


def _half(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


# -- console output -----------------------------------------------------------------------------


def decode_console(data: bytes, *, cut: bool = False) -> str:
    """Output of a command as text: UTF-8, else by a guess; undecodable bytes become `\\xNN`.

    With `cut`, the data may begin or end in the middle of a character.
    """
    if data.isascii() and b"\0" not in data:
        return data.decode("ascii")
    encoding, bom = unicode_of(data, whole=not cut)
    wide = encoding in _WIDTHS
    if wide and not cut and len(data) % width_of(encoding):
        encoding = ""
    # Text of two or four bytes a character has a zero byte somewhere; other data hardly.
    if encoding and (not wide or b"\0" in data):
        body = data[len(bom) :]
        if wide:
            body = body[: len(body) - len(body) % width_of(encoding)]
        elif cut:
            body = _trimmed(body)
        return body.decode(codec_of(encoding), _ESCAPED)
    return _decode_lines(_trimmed(data) if cut else data)


def live_decoder() -> codecs.IncrementalDecoder:
    """UTF-8 decoder for output as it arrives: a character split between two reads survives."""
    return codecs.getincrementaldecoder("utf-8")(_ESCAPED)


def _decode_lines(data: bytes) -> str:
    """Each line by itself: the programs of one pipeline may write different encodings."""
    lines: list[bytes | str] = []
    foreign: list[bytes] = []
    for line in data.splitlines(keepends=True):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            lines.append(line)
            foreign.append(line)
    encoding = _console_encoding(b"".join(foreign)) if foreign else ""
    return "".join(
        line if isinstance(line, str) else _decode_line(line, encoding) for line in lines
    )


def _decode_line(line: bytes, encoding: str) -> str:
    try:
        return line.decode(encoding or "ascii")
    except UnicodeDecodeError:
        return line.decode("utf-8", _ESCAPED)


def _console_encoding(data: bytes) -> str:
    """The charset of lines that are not UTF-8: this machine's own, or a certain guess."""
    import locale

    try:
        name = codecs.lookup(locale.getencoding()).name
        if name not in ("utf-8", "ascii"):
            data.decode(name)
            return name
    except (LookupError, UnicodeDecodeError):
        pass  # unknown, or not that one
    best = guess(data)
    # 255 is the last letter of the western page, in hardly any word, and common in other data.
    western = best.encoding in ("latin-1", "cp1252")
    return best.encoding if best.certain and not (western and b"\xff" in data) else ""


def _trimmed(data: bytes) -> bytes:
    """UTF-8 without the incomplete characters at both ends."""
    start = 0
    while start < 3 and start < len(data) and 0x80 <= data[start] < 0xC0:
        start += 1
    end = len(data)
    for back in range(1, 4):
        if back > len(data) - start:
            break
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            end = end - back if length > back else end
            break
        if byte < 0x80:
            break
    return data[start:end]


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


_JUDGED_BYTES = 32 << 10  # bytes that are judged
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
    wide = sorted(((*_double_byte_score(lines, name), name) for name in _WIDE), reverse=True)
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
    if len(data) <= _JUDGED_BYTES:
        starts = [0]
    else:
        starts = [len(data) * part // _SPREAD for part in range(_SPREAD)]
    lines: list[bytes] = []
    position = 0
    for begin in starts:
        room = _JUDGED_BYTES // len(starts)
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


def _double_byte_score(lines: list[bytes], encoding: str) -> tuple[float, int]:
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
