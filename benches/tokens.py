"""How near the estimate of tokens comes to real tokenizers, by language.

    python -m benches.tokens tokenizer.json ...

prints estimate ÷ count for each file and kind of text; without files, for the local model's.
Below 1 the estimate is too low.
"""

# ruff: noqa: E501, RUF001 - texts in many scripts are the point

import sys
from pathlib import Path

from mnemic._core import estimate_tokens
from mnemic.context import TokenizerTokens

ROOT = Path(__file__).parent.parent
TEXTS = {
    "English": "The ferry leaves at ten past every hour. Take a warm jacket, because the wind on deck "
    "is colder than it looks from the shore, and buy the ticket before you board.",
    "German": "Die Fähre fährt jede Stunde um zehn nach. Nimm eine warme Jacke mit, denn der Wind an "
    "Deck ist kälter, als er vom Ufer aus wirkt, und kaufe die Fahrkarte vor der Abfahrt.",
    "French": "Le bateau part à dix minutes passées de chaque heure. Prends une veste chaude, car le "
    "vent sur le pont est plus froid qu'il n'y paraît, et achète le billet avant de monter.",
    "Polish": "Prom odpływa dziesięć minut po każdej pełnej godzinie. Weź ciepłą kurtkę, bo wiatr na "
    "pokładzie jest zimniejszy, niż się wydaje z brzegu, i kup bilet przed wejściem.",
    "Russian": "Паром отходит в десять минут каждого часа. Возьми тёплую куртку, потому что ветер на "
    "палубе холоднее, чем кажется с берега, и купи билет до посадки.",
    "Greek": "Το πλοίο φεύγει δέκα λεπτά μετά από κάθε ώρα. Πάρε ένα ζεστό μπουφάν, γιατί ο άνεμος στο "
    "κατάστρωμα είναι πιο κρύος απ' όσο φαίνεται, και αγόρασε το εισιτήριο πριν ανέβεις.",
    "Arabic": "تغادر العبارة بعد عشر دقائق من كل ساعة. خذ معك سترة دافئة لأن الريح على السطح أبرد مما "
    "تبدو من الشاطئ، واشتر التذكرة قبل الصعود.",
    "Hebrew": "המעבורת יוצאת בעשר דקות אחרי כל שעה. קח מעיל חם, כי הרוח על הסיפון קרה יותר ממה שנראה "
    "מהחוף, וקנה כרטיס לפני העלייה.",
    "Hindi": "नाव हर घंटे के दस मिनट बाद चलती है। गरम जैकेट साथ ले जाना, क्योंकि डेक पर हवा किनारे से जितनी "
    "लगती है उससे ज़्यादा ठंडी होती है, और चढ़ने से पहले टिकट खरीद लेना।",
    "Thai": "เรือข้ามฟากออกทุกชั่วโมงหลังผ่านไปสิบนาที เอาเสื้อกันหนาวไปด้วย เพราะลมบนดาดฟ้าเย็นกว่าที่เห็นจากฝั่ง และซื้อตั๋วก่อนขึ้นเรือ",
    "Chinese": "渡轮每小时十分发船。带一件暖和的外套，因为甲板上的风比岸边看起来更冷，上船前先买好票。",
    "Japanese": "フェリーは毎時十分に出ます。甲板の風は岸から見るより冷たいので、暖かい上着を持って行き、乗る前に切符を買ってください。",
    "Korean": "배는 매시 십 분에 떠납니다. 갑판의 바람은 물가에서 보는 것보다 차가우니 따뜻한 겉옷을 챙기고 타기 전에 표를 사세요.",
    "emoji": "🍵🎉👍🏽❤️🇳🇴👩‍💻😀🚢",
}
FILES = {
    "prose": "docs/**/*.md",
    "Python": "python/mnemic/*.py",
    "Rust": "rust/core/src/**/*.rs",
    "JSON": "benches/quality/data/*.jsonl",
}


def samples():
    """Return texts by their kind."""
    files = {
        name: "".join(path.read_text("utf-8") for path in sorted(ROOT.glob(pattern)))[:200_000]
        for name, pattern in FILES.items()
    }
    return TEXTS | files


def tokenizer_files():
    """Return the files named, or the local model's."""
    if sys.argv[1:]:
        return sys.argv[1:]
    import mnemic_minilm  # noqa: PLC0415 - an extra

    return [mnemic_minilm.tokenizer_path()]


def main():
    counters = [TokenizerTokens.from_file(path) for path in tokenizer_files()]
    for name, text in samples().items():
        ratios = [estimate_tokens(text) / counter.count(text) for counter in counters]
        print(f"{name:10}", *(f"{ratio:5.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
