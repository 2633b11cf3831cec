"""Compare fingerprints with the straightforward `unicodedata` and `hashlib` version.

Run with `python -m benches.fingerprint`. Both run in this process in turns, on fresh strings, so
that neither profits from the other's caches; the answers are compared first.
"""

# ruff: noqa: RUF001 - texts in many scripts are the point

import hashlib
import platform
import random
import re
import statistics
import time
import unicodedata

from mnemic import fingerprint, fingerprint_digests

COUNT = 10_000
ROUNDS = 15
SEED = 20_260_101
BOUNDARY = " .,;:!?'\"()[]{}«»“”„‘’‹›¡¿、。〈〉《》「」『』【】،؛؟۔।॥"
WHITESPACE = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
WORDS = {
    "english": (
        "She prefers metric units and reads Mail before Breakfast the Meeting in Oslo moved to "
        "Friday because of her flight from London never book Hotels near an airport"
    ),
    "latin": (
        "Élodie préfère le café crème à Besançon Grüße aus Köln próxima reunião às três žluťoučký "
        "kůň Zażółć gęślą jaźń Århus Straße naïve façade"
    ),
    "turkish": "Sabahları İstanbul'da çay içiyor ve İzmir'den gelen kardeşiyle Iğdır'ı konuşuyor",
    "vietnamese": "Cô ấy thích uống cà phê sữa đá vào buổi sáng trước khi đến Văn phòng Hà Nội",
    "cyrillic": (
        "Она предпочитает метрическую систему и читает Почту до завтрака Встреча в Москве "
        "перенесена на пятницу из-за её рейса из Лондона"
    ),
    "greek": "Η Ελένη προτιμά το μετρικό σύστημα και διαβάζει την ΑΛΛΗΛΟΓΡΑΦΙΑ πριν το πρωινό",
    "cjk": (
        "她 更喜欢 公制单位， 早餐前 先读邮件。 然后 步行去 办公室 会議は 金曜日に 変更されました "
        "「東京」 カフェ ｶﾌｪ 회의는 금요일로 변경되었습니다"
    ),
    "arabic": "تفضل النظام المتري وتقرأ بريدها قبل الإفطار، الاجتماع في القاهرة تأجل إلى الجمعة",
    "hindi": "वह मीट्रिक प्रणाली पसंद करती है और नाश्ते से पहले ईमेल पढ़ती है बैठक शुक्रवार को होगी",
    "emoji": (
        "Loves 🍕 and ☕ in Zürich 👩‍💻 ships Friday 🚀 naïve ❤️ thanks 👍🏽 Café 😀 “quoted” "
        "lunch 🍜 東京 party 🎉 ok"
    ),
}


def straightforward_digest(text):
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    collapsed = WHITESPACE.sub(" ", folded).strip(" ")
    return hashlib.sha256((collapsed.strip(BOUNDARY) or collapsed).encode()).digest()


def straightforward_digests(texts):
    return [straightforward_digest(text) for text in texts]


def straightforward_fingerprint(text):
    return straightforward_digest(text).hex()[:16]


def build_texts(words, source):
    words = words.split(" ")
    return [
        " ".join(source.choices(words, k=source.randint(4, 14)))
        + source.choice(["", ".", "!", " "])
        for _ in range(COUNT)
    ]


def seconds(run, texts):
    fresh = [text.encode().decode() for text in texts]
    start = time.perf_counter()
    run(fresh)
    return time.perf_counter() - start


def lower_quartiles(ours, theirs, texts):
    ours_seconds, theirs_seconds = [], []
    for _ in range(ROUNDS):
        ours_seconds.append(seconds(ours, texts))
        theirs_seconds.append(seconds(theirs, texts))
    return statistics.quantiles(ours_seconds)[0], statistics.quantiles(theirs_seconds)[0]


def one_by_one(function):
    return lambda texts: [function(text) for text in texts]


def main():
    source = random.Random(SEED)  # noqa: S311 - texts, not secrets
    print(f"{COUNT} texts a script, {ROUNDS} rounds, Python {platform.python_version()}")
    print("microseconds a text (lower quartile)   batch  plain  ratio    single  plain  ratio")
    for script, words in WORDS.items():
        texts = build_texts(words, source)
        digests = straightforward_digests(texts)
        assert fingerprint_digests(texts) == digests
        assert [fingerprint(text) for text in texts] == [digest.hex()[:16] for digest in digests]
        batch, plain = lower_quartiles(fingerprint_digests, straightforward_digests, texts)
        single, plain_single = lower_quartiles(
            one_by_one(fingerprint), one_by_one(straightforward_fingerprint), texts
        )
        microseconds = [1e6 * value / COUNT for value in (batch, plain, single, plain_single)]
        print(
            f"{script:<12}{statistics.mean(map(len, texts)):>5.0f} characters"
            f"{'':>11}{microseconds[0]:>7.2f}{microseconds[1]:>7.2f}{plain / batch:>6.1f}x"
            f"{microseconds[2]:>10.2f}{microseconds[3]:>7.2f}{plain_single / single:>6.1f}x"
        )


if __name__ == "__main__":
    main()
