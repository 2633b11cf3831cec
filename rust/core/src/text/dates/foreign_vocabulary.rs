//! The words of German, French, Spanish and Italian that count days and lengths of time from today.

use super::vocabulary::Unit;
use super::vocabulary::Word::{self, And, Count, Half, Or, Scale, Uncounted};

/// The meaning of a word in these languages. They stand apart, because some mean something else in
/// English: "due" is a two of Italian, "once" an eleven of Spanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// Before a length of time: "vor drei Tagen", "hace tres días".
    Ago,
    /// The same behind it: "tre giorni fa".
    Behind,
    /// The first word of "il y a trois jours".
    Il,
    /// Makes it a length up to now: "desde hace tres días".
    Since,
    /// Before yesterday it is the day before: "l'altro ieri", "antes de ayer".
    Other,
    /// Days from today.
    Day(i64),
    /// Yesterday in French, here in German.
    Hier,
    /// −1, 0 or 1 beside a unit: "letzte Woche", "la semaine dernière".
    Turn(i64, Side, Gender),
    /// A part of a length of time, as the English word.
    Part(Word),
}

/// Where a word may stand beside its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
    Either,
}

/// A week is feminine in all four languages: "el fin de semana pasado" is no week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gender {
    Feminine,
    Masculine,
    Any,
}

use Foreign::{Ago, Behind, Day, Hier, Il, Other, Part, Since, Turn};
use Gender::{Feminine, Masculine};
use Side::{After, Before, Either};

/// "siebenunddreissig"; longer words are not made lower-case.
const LONGEST: usize = 18;

/// Look a word up, whatever its case. Numbers have two parts: "fünfundvierzig", "ventotto",
/// "treintaicinco".
pub(super) fn look_up(word: &str) -> Option<Foreign> {
    let word = (word.len() <= LONGEST).then(|| word.to_lowercase())?;
    let known = |word: &str| {
        let place =
            WORDS.binary_search_by(|(known, _)| known.as_bytes().cmp(word.as_bytes())).ok()?;
        Some(WORDS[place].1)
    };
    let count = |word: &str| match known(word) {
        Some(Part(Count(count))) => Some(count),
        _ => None,
    };
    known(&word).or_else(|| german_turn(&word)).or_else(|| {
        let (tens, ones) = match word.split_once("und") {
            Some((ones, tens)) => (count(tens)?, count(ones)?),
            None => southern_parts(&word, &count)?,
        };
        ((20..).contains(&tens) && (1..=9).contains(&ones)).then_some(Part(Count(tens + ones)))
    })
}

/// "vent-uno", "trenta-due", "treinta-i-cinco": all tens have "nt" before their vowel, which is lost
/// before another one.
fn southern_parts(word: &str, count: &impl Fn(&str) -> Option<i64>) -> Option<(i64, i64)> {
    let at = word.find("nt")? + 2;
    let (stem, rest) = word.split_at(at);
    if let Some(ones) = rest.strip_prefix(['a', 'i']) {
        return Some((count(&word[..=at])?, count(ones.strip_prefix('i').unwrap_or(ones))?));
    }
    let ones = count(rest).filter(|ones| matches!(ones, 1 | 8))?;
    let tens = ["a", "i"].iter().find_map(|vowel| count(&[stem, vowel].concat()))?;
    Some((tens, ones))
}

/// "letzte", "vorigen", "dieser", whatever their endings.
fn german_turn(word: &str) -> Option<Foreign> {
    let stem = ["e", "en", "er", "es", "em"].iter().find_map(|ending| word.strip_suffix(ending))?;
    let step = match stem {
        "vorletzt" => -2,
        "letzt" | "vergangen" | "vorig" => -1,
        "dies" => 0,
        "nächst" | "naechst" | "kommend" => 1,
        _ => return None,
    };
    Some(Turn(step, Before, Gender::Any))
}

/// Sorted by bytes.
#[rustfmt::skip]
const WORDS: [(&str, Foreign); 254] = [
    ("acht", Part(Count(8))),
    ("achtzehn", Part(Count(18))),
    ("achtzig", Part(Count(80))),
    ("altro", Other),
    ("annee", Part(Word::Unit(Unit::Year, false))),
    ("annees", Part(Word::Unit(Unit::Year, true))),
    ("anni", Part(Word::Unit(Unit::Year, true))),
    ("anno", Part(Word::Unit(Unit::Year, false))),
    ("année", Part(Word::Unit(Unit::Year, false))),
    ("années", Part(Word::Unit(Unit::Year, true))),
    ("ans", Part(Word::Unit(Unit::Year, true))),
    ("anteayer", Day(-2)),
    ("antes", Other),
    ("antier", Day(-2)),
    ("aujourd", Day(0)),
    ("avant", Other),
    ("avantieri", Day(-2)),
    ("ayer", Day(-1)),
    ("año", Part(Word::Unit(Unit::Year, false))),
    ("años", Part(Word::Unit(Unit::Year, true))),
    ("catorce", Part(Count(14))),
    ("ce", Turn(0, Before, Masculine)),
    ("cent", Part(Scale(100))),
    ("cento", Part(Scale(100))),
    ("cents", Part(Scale(100))),
    ("cette", Turn(0, Before, Feminine)),
    ("cien", Part(Scale(100))),
    ("ciento", Part(Scale(100))),
    ("cinco", Part(Count(5))),
    ("cincuenta", Part(Count(50))),
    ("cinq", Part(Count(5))),
    ("cinquanta", Part(Count(50))),
    ("cinquante", Part(Count(50))),
    ("cinque", Part(Count(5))),
    ("cuarenta", Part(Count(40))),
    ("cuatro", Part(Count(4))),
    ("demi", Part(Half)),
    ("demie", Part(Half)),
    ("dernier", Turn(-1, After, Masculine)),
    ("derniere", Turn(-1, After, Feminine)),
    ("dernière", Turn(-1, After, Feminine)),
    ("desde", Since),
    ("deux", Part(Count(2))),
    ("dia", Part(Word::Unit(Unit::Day, false))),
    ("dias", Part(Word::Unit(Unit::Day, true))),
    ("diciannove", Part(Count(19))),
    ("diciassette", Part(Count(17))),
    ("diciotto", Part(Count(18))),
    ("dieci", Part(Count(10))),
    ("diecinueve", Part(Count(19))),
    ("dieciocho", Part(Count(18))),
    ("dieciseis", Part(Count(16))),
    ("diecisiete", Part(Count(17))),
    ("dieciséis", Part(Count(16))),
    ("diez", Part(Count(10))),
    ("dix", Part(Count(10))),
    ("doce", Part(Count(12))),
    ("dodici", Part(Count(12))),
    ("dos", Part(Count(2))),
    ("douze", Part(Count(12))),
    ("drei", Part(Count(3))),
    ("dreissig", Part(Count(30))),
    ("dreizehn", Part(Count(13))),
    ("dreißig", Part(Count(30))),
    ("due", Part(Count(2))),
    ("día", Part(Word::Unit(Unit::Day, false))),
    ("días", Part(Word::Unit(Unit::Day, true))),
    ("dós", Part(Count(2))),
    ("e", Part(And)),
    ("ed", Part(And)),
    ("ein", Part(Count(1))),
    ("eine", Part(Count(1))),
    ("einem", Part(Count(1))),
    ("einen", Part(Count(1))),
    ("einer", Part(Count(1))),
    ("elf", Part(Count(11))),
    ("esta", Turn(0, Before, Feminine)),
    ("este", Turn(0, Before, Masculine)),
    ("et", Part(And)),
    ("fa", Behind),
    ("fünf", Part(Count(5))),
    ("fünfzehn", Part(Count(15))),
    ("fünfzig", Part(Count(50))),
    ("gestern", Day(-1)),
    ("giorni", Part(Word::Unit(Unit::Day, true))),
    ("giorno", Part(Word::Unit(Unit::Day, false))),
    ("hace", Ago),
    ("halb", Part(Half)),
    ("halbe", Part(Half)),
    ("halben", Part(Half)),
    ("halber", Part(Half)),
    ("halbes", Part(Half)),
    ("heure", Part(Word::Unit(Unit::Hour, false))),
    ("heures", Part(Word::Unit(Unit::Hour, true))),
    ("heute", Day(0)),
    ("hier", Hier),
    ("hora", Part(Word::Unit(Unit::Hour, false))),
    ("horas", Part(Word::Unit(Unit::Hour, true))),
    ("hoy", Day(0)),
    ("huit", Part(Count(8))),
    ("hundert", Part(Scale(100))),
    ("ieri", Day(-1)),
    ("il", Il),
    ("jahr", Part(Word::Unit(Unit::Year, false))),
    ("jahre", Part(Word::Unit(Unit::Year, true))),
    ("jahren", Part(Word::Unit(Unit::Year, true))),
    ("jour", Part(Word::Unit(Unit::Day, false))),
    ("jours", Part(Word::Unit(Unit::Day, true))),
    ("media", Part(Half)),
    ("medio", Part(Half)),
    ("mes", Part(Word::Unit(Unit::Month, false))),
    ("mese", Part(Word::Unit(Unit::Month, false))),
    ("meses", Part(Word::Unit(Unit::Month, true))),
    ("mesi", Part(Word::Unit(Unit::Month, true))),
    ("mezza", Part(Half)),
    ("mezzo", Part(Half)),
    ("mil", Part(Uncounted)),
    ("mille", Part(Uncounted)),
    ("minuten", Part(Word::Unit(Unit::Minute, true))),
    ("minuti", Part(Word::Unit(Unit::Minute, true))),
    ("minuto", Part(Word::Unit(Unit::Minute, false))),
    ("minutos", Part(Word::Unit(Unit::Minute, true))),
    ("mois", Part(Word::Unit(Unit::Month, false))),
    ("monat", Part(Word::Unit(Unit::Month, false))),
    ("monate", Part(Word::Unit(Unit::Month, true))),
    ("monaten", Part(Word::Unit(Unit::Month, true))),
    ("neuf", Part(Count(9))),
    ("neun", Part(Count(9))),
    ("neunzehn", Part(Count(19))),
    ("neunzig", Part(Count(90))),
    ("novanta", Part(Count(90))),
    ("nove", Part(Count(9))),
    ("noventa", Part(Count(90))),
    ("nueve", Part(Count(9))),
    ("o", Part(Or)),
    ("ochenta", Part(Count(80))),
    ("ocho", Part(Count(8))),
    ("oder", Part(Or)),
    ("oggi", Day(0)),
    ("once", Part(Count(11))),
    ("onze", Part(Count(11))),
    ("ora", Part(Word::Unit(Unit::Hour, false))),
    ("ore", Part(Word::Unit(Unit::Hour, true))),
    ("ottanta", Part(Count(80))),
    ("otto", Part(Count(8))),
    ("ou", Part(Or)),
    ("pasada", Turn(-1, Either, Feminine)),
    ("pasado", Turn(-1, Either, Masculine)),
    ("passata", Turn(-1, Either, Feminine)),
    ("passato", Turn(-1, Either, Masculine)),
    ("passé", Turn(-1, After, Masculine)),
    ("passée", Turn(-1, After, Feminine)),
    ("prochain", Turn(1, Either, Masculine)),
    ("prochaine", Turn(1, Either, Feminine)),
    ("prossima", Turn(1, Either, Feminine)),
    ("prossimo", Turn(1, Either, Masculine)),
    ("proxima", Turn(1, Either, Feminine)),
    ("proximo", Turn(1, Either, Masculine)),
    ("próxima", Turn(1, Either, Feminine)),
    ("próximo", Turn(1, Either, Masculine)),
    ("quaranta", Part(Count(40))),
    ("quarante", Part(Count(40))),
    ("quatorze", Part(Count(14))),
    ("quatre", Part(Count(4))),
    ("quattordici", Part(Count(14))),
    ("quattro", Part(Count(4))),
    ("quest", Turn(0, Before, Masculine)),
    ("questa", Turn(0, Before, Feminine)),
    ("questo", Turn(0, Before, Masculine)),
    ("quince", Part(Count(15))),
    ("quindici", Part(Count(15))),
    ("quinze", Part(Count(15))),
    ("scorsa", Turn(-1, Either, Feminine)),
    ("scorso", Turn(-1, Either, Masculine)),
    ("sechs", Part(Count(6))),
    ("sechzehn", Part(Count(16))),
    ("sechzig", Part(Count(60))),
    ("sedici", Part(Count(16))),
    ("sei", Part(Count(6))),
    ("seis", Part(Count(6))),
    ("seize", Part(Count(16))),
    ("semaine", Part(Word::Unit(Unit::Week, false))),
    ("semaines", Part(Word::Unit(Unit::Week, true))),
    ("semana", Part(Word::Unit(Unit::Week, false))),
    ("semanas", Part(Word::Unit(Unit::Week, true))),
    ("sesenta", Part(Count(60))),
    ("sessanta", Part(Count(60))),
    ("setenta", Part(Count(70))),
    ("settanta", Part(Count(70))),
    ("sette", Part(Count(7))),
    ("settimana", Part(Word::Unit(Unit::Week, false))),
    ("settimane", Part(Word::Unit(Unit::Week, true))),
    ("sieben", Part(Count(7))),
    ("siebzehn", Part(Count(17))),
    ("siebzig", Part(Count(70))),
    ("siete", Part(Count(7))),
    ("soixante", Part(Count(60))),
    ("stunde", Part(Word::Unit(Unit::Hour, false))),
    ("stunden", Part(Word::Unit(Unit::Hour, true))),
    ("séis", Part(Count(6))),
    ("tag", Part(Word::Unit(Unit::Day, false))),
    ("tage", Part(Word::Unit(Unit::Day, true))),
    ("tagen", Part(Word::Unit(Unit::Day, true))),
    ("tausend", Part(Uncounted)),
    ("tre", Part(Count(3))),
    ("trece", Part(Count(13))),
    ("tredici", Part(Count(13))),
    ("treinta", Part(Count(30))),
    ("treize", Part(Count(13))),
    ("trenta", Part(Count(30))),
    ("trente", Part(Count(30))),
    ("tres", Part(Count(3))),
    ("trois", Part(Count(3))),
    ("tré", Part(Count(3))),
    ("trés", Part(Count(3))),
    ("u", Part(Or)),
    ("un", Part(Count(1))),
    ("una", Part(Count(1))),
    ("und", Part(And)),
    ("undici", Part(Count(11))),
    ("une", Part(Count(1))),
    ("uno", Part(Count(1))),
    ("veinte", Part(Count(20))),
    ("veinticinco", Part(Count(25))),
    ("veinticuatro", Part(Count(24))),
    ("veintidos", Part(Count(22))),
    ("veintidós", Part(Count(22))),
    ("veintinueve", Part(Count(29))),
    ("veintiocho", Part(Count(28))),
    ("veintiseis", Part(Count(26))),
    ("veintisiete", Part(Count(27))),
    ("veintiséis", Part(Count(26))),
    ("veintitres", Part(Count(23))),
    ("veintitrés", Part(Count(23))),
    ("veintiuna", Part(Count(21))),
    ("veintiuno", Part(Count(21))),
    ("veintiún", Part(Count(21))),
    ("venti", Part(Count(20))),
    ("vier", Part(Count(4))),
    ("vierzehn", Part(Count(14))),
    ("vierzig", Part(Count(40))),
    ("vingt", Part(Count(20))),
    ("vingts", Part(Count(20))),
    ("vor", Ago),
    ("vorgestern", Day(-2)),
    ("woche", Part(Word::Unit(Unit::Week, false))),
    ("wochen", Part(Word::Unit(Unit::Week, true))),
    ("wochenende", Part(Word::Unit(Unit::Weekend, false))),
    ("y", Part(And)),
    ("zehn", Part(Count(10))),
    ("zwanzig", Part(Count(20))),
    ("zwei", Part(Count(2))),
    ("zwölf", Part(Count(12))),
    ("ún", Part(Count(1))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_no_word_of_it_is_an_english_one() {
        assert!(WORDS.is_sorted_by(|left, right| left.0.as_bytes() < right.0.as_bytes()));
        for (word, meaning) in WORDS {
            assert!(word.len() <= LONGEST);
            assert_eq!(look_up(word), Some(meaning));
            assert_eq!(super::super::vocabulary::look_up(word), None, "{word}");
        }
    }

    #[test]
    fn numbers_are_read_in_two_parts() {
        for (word, number) in [
            ("einundzwanzig", 21),
            ("fünfundvierzig", 45),
            ("neunundneunzig", 99),
            ("ventun", 21),
            ("ventotto", 28),
            ("trentatré", 33),
            ("quarantadue", 42),
            ("novantanove", 99),
            ("treintaiuno", 31),
            ("cuarentaiséis", 46),
        ] {
            assert_eq!(look_up(word), Some(Part(Count(number))));
        }
        for word in [
            "und",
            "zwanzigundeins",
            "zwanzigeins",
            "ventdue",
            "ventidieci",
            "diecidue",
            "trentacento",
            "wanted",
            "zehnundzwanzig",
            "einundzehn",
            "hundert und",
            "hundertundeins",
        ] {
            assert!(!matches!(look_up(word), Some(Part(Count(_)))), "{word}");
        }
    }
}
