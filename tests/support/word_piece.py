"""Texts for the tokenizer of the default embedder, and their tokens as `tokenizers` has them.

    python -m tests.support.word_piece

writes `tests/fixtures/word_piece.json` with the library tokenizers.
"""

import hashlib
import json
import unicodedata

import mnemic_minilm
import numpy as np
import tokenizers

from tests.support.paths import FIXTURES

FIXTURE = FIXTURES / "word_piece.json"
BLOCK = 0x1000
SURROGATES = range(0xD800, 0xE000)

TEXTS = (
    "She moved to Bergen in March and opened a bakery near the harbour.",
    "Unaffable electroencephalographers\u2019 e-mail: <a@b.co> — 3.14, $5!",
    "don't U.S.A. C++ C# #1 ##s [unused5] snake_case",
    "",
    " \t\r\n",
    "a\x00b \x07bell\x7f del\x85 nel \x0b vt \x0c ff",
    "soft\u00adhyphen zero\u200bwidth \ufeffbom\u2060join re\ufffdplaced \ue000private",
    "no\u00a0break\u2028line\u2029paragraph\u3000ideographic\u180emongolian",
    "naïve café Zürich Ångström İstanbul ẞ straße ﬁne Ǆ",
    "cafe\u0301 e\u0301\u0302\u0323 \u0301alone \u0345 x\u20dd",
    "K\u212aelvin \u2126hm \u037e greek question \u1fef",
    "我昨天去了上海博物馆。豈 \uf900\U0002f800 \U00020000 ⼀ \u3007",
    "彼は毎朝七時に公園を走ります。が か\u3099 カ\uff9e",
    "우리는 다음 주 금요일에 부산으로 ㄱ 각 \u1100\u1161\u11a8",
    "Она живёт в Казани, йод; Ελληνικά ΣΑΣ; עברית; تفضل القهوة; ฉันรักแมว; मुझे",
    "🎉🎉 we got the flat!! 🏠🔑 👩\u200d👧 1\ufe0f\u20e3 🥳",
    "\U00011938 \ua7cb \u1c89 \U0001e900 \U000e0041 \U0010fffd \U0001d173",
    "[CLS] [SEP][MASK] a[UNK]b [cls] [ CLS] [CLS [[PAD]]",
    "x" * 100 + " " + "x" * 101,
    "é" * 100 + " " + "é" * 101,
    "e\u0301" * 100 + " " + "e\u0301" * 101,
    "a" + "\u0301" * 500 + "b",
    "word " * 254,
    "word " * 255,
    "e\u0301tude " * 300,
    "unaffable " * 100,
    "語" * 5000,
    "\u3000word\u2003" * 3000,
    "x" * 9000,
    "x" * 5000 + " and then a few words",
    "word" + " " * 6000 + "word " * 300,
    "[MASK]" * 300,
)


def reference(max_tokens=mnemic_minilm.MAX_TOKENS):
    """The model's tokenizer, run by the library tokenizers."""
    tokenizer = tokenizers.Tokenizer.from_file(str(mnemic_minilm.tokenizer_path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def tokenizer_file(vocabulary, special=()):
    """The content of a `tokenizer.json` with such a vocabulary and such added tokens."""
    added = [{"content": token} for token in special]
    return json.dumps({"added_tokens": added, "model": {"vocab": vocabulary}}).encode()


def expected(tokenizer, text):
    """The token ids, whether there are more, and how many characters they cover."""
    encoding = tokenizer.encode(text)
    if not encoding.overflowing:
        return encoding.ids, False, len(text)
    end = max(end for _, end in encoding.offsets)
    return encoding.ids, True, _end_in_text(tokenizer, text, end)


def _end_in_text(tokenizer, text, end):
    """The end that the library tokenizers gives a token, by the text's own order of its marks.

    The library puts marks in canonical order, and then takes each for the one whose place it has
    got: `text[:end]` can lack the token's last mark, or go on to one that is dropped.
    """

    def is_dropped(at):
        return not tokenizer.normalizer.normalize_str(text[at])

    def can_move(at):
        return is_dropped(at) or unicodedata.combining(text[at])

    if end == 0 or not can_move(end - 1):
        return end
    while end < len(text) and can_move(end):
        end += 1
    while is_dropped(end - 1):
        end -= 1
    return end


def blocks():
    """Texts in which each code point stands by itself and within a word."""
    for start in range(0, 0x110000, BLOCK):
        codes = (code for code in range(start, start + BLOCK) if code not in SURROGATES)
        yield " ".join(f"{chr(code)} a{chr(code)}b" for code in codes)


def digest(rows):
    """The SHA-256 of lists of token ids."""
    total = hashlib.sha256()
    for row in rows:
        total.update(np.asarray(row, "<i4").tobytes())
    return total.hexdigest()


def main():
    tokenizer, whole = reference(), reference(10**6)
    answers = [expected(tokenizer, text) for text in TEXTS]
    ids = digest(whole.encode(block).ids for block in blocks())
    recorded = {"version": tokenizers.__version__, "code_points": ids, "texts": answers}
    FIXTURE.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
