//! The words that make or surround a date.

/// The meaning of a word in dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// 1 to 12, and other meanings of the word.
    Month(i64, Reading),
    /// 0 for Monday to 6, and whether the word needs its capital to be a day.
    Weekday(i64, Reading),
    /// First month of the season.
    Season(i64, Reading),
    Quarter(i64),
    /// A unit, and whether it stands in the plural.
    Unit(Unit, bool),
    Count(i64),
    /// A number that those before and behind it multiply and add to: hundred, dozen.
    Scale(i64),
    /// A word that makes a number one that is not read: thousand, point.
    Uncounted,
    Ordinal(i64),
    Half,
    /// Days from today.
    Relative(i64),
    PartOfDay,
    /// Early, middle or late third; whether "of" must follow.
    Third(i64, bool),
    Last,
    This,
    Next,
    Past,
    Ago,
    From,
    Now,
    Between,
    And,
    Or,
    Until,
    Before,
    After,
    By,
    In,
    During,
    Since,
    On,
    Of,
    The,
    /// A measure that "of" joins to a number: "a budget of 2000".
    Quantity,
    /// A word that makes a number something else than a date: "version 2.1.2023".
    Numbered,
    /// Any other word that may follow a date but is never counted.
    Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Weekend,
    Week,
    Month,
    Quarter,
    Year,
}

/// How easily a word is something else than the date it can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Nothing else.
    Only,
    /// Also a person: June.
    Name,
    /// Also a common word when it has no capital: may, march, sat, fall.
    Common,
    /// Of another language than English.
    Foreign,
    /// French March; also a planet, which has a capital.
    Mars,
}

const LONGEST: usize = 10;

/// Look a word up, whatever its case.
pub(super) fn look_up(word: &str) -> Option<Word> {
    if word.len() > LONGEST {
        return None;
    }
    let mut buffer = [0_u8; 2 * LONGEST];
    let lowered = lower(word, &mut buffer)?;
    let place = WORDS.binary_search_by(|(known, _)| known.as_bytes().cmp(lowered)).ok()?;
    Some(WORDS[place].1)
}

/// `None` where a letter has no single lower-case letter.
fn lower<'buffer>(word: &str, buffer: &'buffer mut [u8]) -> Option<&'buffer [u8]> {
    let mut length = 0;
    for character in word.chars() {
        let mut lowered = character.to_lowercase();
        let one = lowered.next().filter(|_| lowered.next().is_none())?;
        length += one.encode_utf8(buffer.get_mut(length..length + one.len_utf8())?).len();
    }
    Some(&buffer[..length])
}

use Reading::{Common, Foreign, Mars, Name, Only};
use Word::{
    After, Ago, And, Before, Between, By, Count, During, From, Function, Half, In, Last, Month,
    Next, Now, Numbered, Of, On, Or, Ordinal, PartOfDay, Past, Quantity, Quarter, Relative, Scale,
    Season, Since, The, Third, This, Uncounted, Until, Weekday,
};

/// Sorted by bytes.
#[rustfmt::skip]
const WORDS: [(&str, Word); 296] = [
    ("a", Count(1)),
    ("about", Function),
    ("abril", Month(4, Foreign)),
    ("after", After),
    ("afternoon", PartOfDay),
    ("again", Function),
    ("ago", Ago),
    ("agosto", Month(8, Foreign)),
    ("all", Function),
    ("already", Function),
    ("also", Function),
    ("although", Function),
    ("amount", Quantity),
    ("an", Count(1)),
    ("and", And),
    ("any", Function),
    ("aout", Month(8, Foreign)),
    ("août", Month(8, Foreign)),
    ("apr", Month(4, Only)),
    ("april", Month(4, Name)),
    ("are", Function),
    ("as", Function),
    ("at", Function),
    ("aug", Month(8, Only)),
    ("august", Month(8, Name)),
    ("autumn", Season(9, Only)),
    ("average", Quantity),
    ("avril", Month(4, Foreign)),
    ("because", Function),
    ("before", Before),
    ("beginning", Third(0, true)),
    ("between", Between),
    ("both", Function),
    ("budget", Quantity),
    ("build", Numbered),
    ("but", Function),
    ("by", By),
    ("capacity", Quantity),
    ("chapter", Numbered),
    ("cost", Quantity),
    ("couple", Scale(2)),
    ("day", Word::Unit(Unit::Day, false)),
    ("days", Word::Unit(Unit::Day, true)),
    ("de", Of),
    ("dec", Month(12, Common)),
    ("december", Month(12, Only)),
    ("decembre", Month(12, Foreign)),
    ("del", Of),
    ("dezember", Month(12, Foreign)),
    ("diciembre", Month(12, Foreign)),
    ("did", Function),
    ("distance", Quantity),
    ("does", Function),
    ("dozen", Scale(12)),
    ("during", During),
    ("décembre", Month(12, Foreign)),
    ("each", Function),
    ("early", Third(0, false)),
    ("eight", Count(8)),
    ("eighteen", Count(18)),
    ("eighty", Count(80)),
    ("eleven", Count(11)),
    ("en", In),
    ("end", Third(2, true)),
    ("enero", Month(1, Foreign)),
    ("evening", PartOfDay),
    ("ever", Function),
    ("every", Function),
    ("fall", Season(9, Common)),
    ("feb", Month(2, Only)),
    ("feber", Month(2, Foreign)),
    ("febrero", Month(2, Foreign)),
    ("februar", Month(2, Foreign)),
    ("february", Month(2, Only)),
    ("fevrier", Month(2, Foreign)),
    ("fifteen", Count(15)),
    ("fifty", Count(50)),
    ("first", Ordinal(1)),
    ("five", Count(5)),
    ("flight", Numbered),
    ("for", Function),
    ("forty", Count(40)),
    ("four", Count(4)),
    ("fourteen", Count(14)),
    ("fourth", Ordinal(4)),
    ("fourty", Count(40)),
    ("fri", Weekday(4, Common)),
    ("friday", Weekday(4, Only)),
    ("from", From),
    ("février", Month(2, Foreign)),
    ("had", Function),
    ("half", Half),
    ("has", Function),
    ("he", Function),
    ("height", Quantity),
    ("her", Function),
    ("him", Function),
    ("his", Function),
    ("hour", Word::Unit(Unit::Hour, false)),
    ("hours", Word::Unit(Unit::Hour, true)),
    ("how", Function),
    ("hundred", Scale(100)),
    ("i", Function),
    ("if", Function),
    ("im", In),
    ("in", In),
    ("into", Function),
    ("invoice", Numbered),
    ("is", Function),
    ("it", Function),
    ("its", Function),
    ("jan", Month(1, Common)),
    ("januar", Month(1, Foreign)),
    ("january", Month(1, Only)),
    ("janvier", Month(1, Foreign)),
    ("juillet", Month(7, Foreign)),
    ("juin", Month(6, Foreign)),
    ("jul", Month(7, Only)),
    ("juli", Month(7, Foreign)),
    ("julio", Month(7, Foreign)),
    ("july", Month(7, Only)),
    ("jun", Month(6, Only)),
    ("june", Month(6, Name)),
    ("juni", Month(6, Foreign)),
    ("junio", Month(6, Foreign)),
    ("jänner", Month(1, Foreign)),
    ("last", Last),
    ("late", Third(2, false)),
    ("length", Quantity),
    ("limit", Quantity),
    ("maerz", Month(3, Foreign)),
    ("mai", Month(5, Foreign)),
    ("mar", Month(3, Common)),
    ("march", Month(3, Common)),
    ("mars", Month(3, Mars)),
    ("marzo", Month(3, Foreign)),
    ("maximum", Quantity),
    ("may", Month(5, Common)),
    ("mayo", Month(5, Foreign)),
    ("me", Function),
    ("mid", Third(1, false)),
    ("middle", Third(1, true)),
    ("million", Uncounted),
    ("minimum", Quantity),
    ("minute", Word::Unit(Unit::Minute, false)),
    ("minutes", Word::Unit(Unit::Minute, true)),
    ("model", Numbered),
    ("mon", Weekday(0, Common)),
    ("monday", Weekday(0, Only)),
    ("month", Word::Unit(Unit::Month, false)),
    ("months", Word::Unit(Unit::Month, true)),
    ("morning", PartOfDay),
    ("my", Function),
    ("märz", Month(3, Foreign)),
    ("next", Next),
    ("night", PartOfDay),
    ("nine", Count(9)),
    ("nineteen", Count(19)),
    ("ninety", Count(90)),
    ("no", Function),
    ("not", Function),
    ("nov", Month(11, Only)),
    ("november", Month(11, Only)),
    ("novembre", Month(11, Foreign)),
    ("noviembre", Month(11, Foreign)),
    ("now", Now),
    ("number", Quantity),
    ("oct", Month(10, Only)),
    ("october", Month(10, Only)),
    ("octobre", Month(10, Foreign)),
    ("octubre", Month(10, Foreign)),
    ("of", Of),
    ("oktober", Month(10, Foreign)),
    ("on", On),
    ("one", Count(1)),
    ("only", Function),
    ("onto", Function),
    ("or", Or),
    ("order", Numbered),
    ("other", Function),
    ("our", Function),
    ("over", Function),
    ("page", Numbered),
    ("past", Past),
    ("please", Function),
    ("point", Uncounted),
    ("population", Quantity),
    ("price", Quantity),
    ("q1", Quarter(1)),
    ("q2", Quarter(2)),
    ("q3", Quarter(3)),
    ("q4", Quarter(4)),
    ("quarter", Word::Unit(Unit::Quarter, false)),
    ("quarters", Word::Unit(Unit::Quarter, true)),
    ("rate", Quantity),
    ("release", Numbered),
    ("room", Numbered),
    ("route", Numbered),
    ("same", Function),
    ("sat", Weekday(5, Common)),
    ("saturday", Weekday(5, Only)),
    ("score", Quantity),
    ("second", Ordinal(2)),
    ("sep", Month(9, Only)),
    ("sept", Month(9, Only)),
    ("september", Month(9, Only)),
    ("septembre", Month(9, Foreign)),
    ("septiembre", Month(9, Foreign)),
    ("setiembre", Month(9, Foreign)),
    ("seven", Count(7)),
    ("seventeen", Count(17)),
    ("seventy", Count(70)),
    ("she", Function),
    ("since", Since),
    ("six", Count(6)),
    ("sixteen", Count(16)),
    ("sixty", Count(60)),
    ("size", Quantity),
    ("so", Function),
    ("some", Function),
    ("speed", Quantity),
    ("spring", Season(3, Common)),
    ("start", Third(0, true)),
    ("still", Function),
    ("sum", Quantity),
    ("summer", Season(6, Only)),
    ("sun", Weekday(6, Common)),
    ("sunday", Weekday(6, Only)),
    ("ten", Count(10)),
    ("than", Function),
    ("that", Function),
    ("the", The),
    ("their", Function),
    ("them", Function),
    ("then", Function),
    ("there", Function),
    ("these", Function),
    ("they", Function),
    ("third", Ordinal(3)),
    ("thirteen", Count(13)),
    ("thirty", Count(30)),
    ("this", This),
    ("those", Function),
    ("thousand", Uncounted),
    ("three", Count(3)),
    ("through", Until),
    ("thu", Weekday(3, Common)),
    ("thur", Weekday(3, Common)),
    ("thurs", Weekday(3, Common)),
    ("thursday", Weekday(3, Only)),
    ("ticket", Numbered),
    ("till", Until),
    ("to", Until),
    ("today", Relative(0)),
    ("tomorrow", Relative(1)),
    ("tonight", Relative(0)),
    ("too", Function),
    ("total", Quantity),
    ("tue", Weekday(1, Common)),
    ("tues", Weekday(1, Common)),
    ("tuesday", Weekday(1, Only)),
    ("twelve", Count(12)),
    ("twenty", Count(20)),
    ("two", Count(2)),
    ("under", Function),
    ("until", Until),
    ("us", Function),
    ("v", Numbered),
    ("value", Quantity),
    ("version", Numbered),
    ("was", Function),
    ("we", Function),
    ("wed", Weekday(2, Common)),
    ("wednesday", Weekday(2, Only)),
    ("week", Word::Unit(Unit::Week, false)),
    ("weekend", Word::Unit(Unit::Weekend, false)),
    ("weekends", Word::Unit(Unit::Weekend, true)),
    ("weeks", Word::Unit(Unit::Week, true)),
    ("weight", Quantity),
    ("were", Function),
    ("what", Function),
    ("when", Function),
    ("where", Function),
    ("which", Function),
    ("while", Function),
    ("who", Function),
    ("whom", Function),
    ("whose", Function),
    ("why", Function),
    ("winter", Season(12, Only)),
    ("with", Function),
    ("year", Word::Unit(Unit::Year, false)),
    ("years", Word::Unit(Unit::Year, true)),
    ("yesterday", Relative(-1)),
    ("you", Function),
    ("your", Function),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_word_is_found_in_any_case() {
        assert!(WORDS.is_sorted_by(|left, right| left.0.as_bytes() < right.0.as_bytes()));
        for (word, meaning) in WORDS {
            assert!(word.len() <= LONGEST);
            assert_eq!(look_up(word), Some(meaning));
            assert_eq!(look_up(&word.to_uppercase()), Some(meaning));
        }
    }

    #[test]
    fn words_outside_the_table_mean_nothing() {
        for word in ["", "ma", "mayo1", "junes", "Septemberfest", "İİİİİ", "日", "ẞ"] {
            assert_eq!(look_up(word), None, "{word}");
        }
    }
}
