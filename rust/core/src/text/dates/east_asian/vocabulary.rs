//! The words of Chinese, Japanese and Korean that make or surround a date.

use super::super::vocabulary::Unit;

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// Days from today.
    Day(i64),
    /// A period of the calendar, so many from today's.
    Period(Unit, i64),
    /// A length of time without a number of its own: 半年, 이틀.
    Length(Unit, i64),
    /// 0 for Monday to 6.
    Weekday(i64),
    /// The last, this or the next, before a day of the week.
    Step(i64),
    /// The last of a number of units.
    Recent,
    /// The year before the first of an era.
    Era(i64),
    /// A word that makes a date none of the calendar: every year, of the lunar calendar.
    Void,
}

use Term::{Day, Era, Length, Period, Recent, Step, Void, Weekday};
use Unit::{Hour, Minute, Month, Quarter, Week, Weekend, Year};

/// Sorted by bytes.
#[rustfmt::skip]
const TERMS: &[(&str, Term)] = &[
    ("あさって", Day(2)),
    ("あした", Day(1)),
    ("おととい", Day(-2)),
    ("おととし", Period(Year, -2)),
    ("きのう", Day(-1)),
    ("きょう", Day(0)),
    ("けさ", Day(0)),
    ("ここ", Recent),
    ("ゆうべ", Day(-1)),
    ("一昨年", Period(Year, -2)),
    ("一昨日", Day(-2)),
    ("今夜", Day(0)),
    ("今天", Day(0)),
    ("今年", Period(Year, 0)),
    ("今日", Day(0)),
    ("今早", Day(0)),
    ("今晚", Day(0)),
    ("今晨", Day(0)),
    ("今晩", Day(0)),
    ("今月", Period(Month, 0)),
    ("今朝", Day(0)),
    ("今週", Period(Week, 0)),
    ("今週末", Period(Weekend, 0)),
    ("令和", Era(2018)),
    ("來年", Period(Year, 1)),
    ("來週", Period(Week, 1)),
    ("先々月", Period(Month, -2)),
    ("先々週", Period(Week, -2)),
    ("先先月", Period(Month, -2)),
    ("先先週", Period(Week, -2)),
    ("先月", Period(Month, -1)),
    ("先週", Period(Week, -1)),
    ("先週末", Period(Weekend, -1)),
    ("再来年", Period(Year, 2)),
    ("再来月", Period(Month, 2)),
    ("再来週", Period(Week, 2)),
    ("农历", Void),
    ("前天", Day(-2)),
    ("前年", Period(Year, -2)),
    ("半个月", Length(Unit::Day, 15)),
    ("半個月", Length(Unit::Day, 15)),
    ("半年", Length(Month, 6)),
    ("去年", Period(Year, -1)),
    ("后天", Day(2)),
    ("后年", Period(Year, 2)),
    ("土曜", Weekday(5)),
    ("土曜日", Weekday(5)),
    ("大前天", Day(-3)),
    ("大前年", Period(Year, -3)),
    ("大后天", Day(3)),
    ("大後天", Day(3)),
    ("大正", Era(1911)),
    ("平成", Era(1988)),
    ("後天", Day(2)),
    ("後年", Period(Year, 2)),
    ("日曜", Weekday(6)),
    ("日曜日", Weekday(6)),
    ("旧暦", Void),
    ("明天", Day(1)),
    ("明年", Period(Year, 1)),
    ("明後日", Day(2)),
    ("明日", Day(1)),
    ("明晚", Day(1)),
    ("昨夜", Day(-1)),
    ("昨天", Day(-1)),
    ("昨年", Period(Year, -1)),
    ("昨日", Day(-1)),
    ("昨晚", Day(-1)),
    ("昨晩", Day(-1)),
    ("昭和", Era(1925)),
    ("最近", Recent),
    ("月曜", Weekday(0)),
    ("月曜日", Weekday(0)),
    ("木曜", Weekday(3)),
    ("木曜日", Weekday(3)),
    ("来年", Period(Year, 1)),
    ("来月", Period(Month, 1)),
    ("来週", Period(Week, 1)),
    ("来週末", Period(Weekend, 1)),
    ("毎年", Void),
    ("毎日", Void),
    ("毎月", Void),
    ("毎週", Void),
    ("每个星期", Void),
    ("每个月", Void),
    ("每个礼拜", Void),
    ("每個星期", Void),
    ("每個月", Void),
    ("每周", Void),
    ("每天", Void),
    ("每年", Void),
    ("每日", Void),
    ("每星期", Void),
    ("每月", Void),
    ("每礼拜", Void),
    ("每禮拜", Void),
    ("每逢", Void),
    ("每週", Void),
    ("水曜", Weekday(2)),
    ("水曜日", Weekday(2)),
    ("火曜", Weekday(1)),
    ("火曜日", Weekday(1)),
    ("直近", Recent),
    ("舊曆", Void),
    ("農曆", Void),
    ("过去", Recent),
    ("近", Recent),
    ("過去", Recent),
    ("金曜", Weekday(4)),
    ("金曜日", Weekday(4)),
    ("阴历", Void),
    ("陰曆", Void),
    ("隔週", Void),
    ("격주", Void),
    ("그끄저께", Day(-3)),
    ("그저께", Day(-2)),
    ("그제", Day(-2)),
    ("글피", Day(3)),
    ("금년", Period(Year, 0)),
    ("금요일", Weekday(4)),
    ("나흘", Length(Unit::Day, 4)),
    ("내년", Period(Year, 1)),
    ("내일", Day(1)),
    ("내일모레", Day(2)),
    ("내후년", Period(Year, 2)),
    ("다다음 달", Period(Month, 2)),
    ("다다음 주", Period(Week, 2)),
    ("다다음달", Period(Month, 2)),
    ("다다음주", Period(Week, 2)),
    ("다음", Step(1)),
    ("다음 달", Period(Month, 1)),
    ("다음 주", Period(Week, 1)),
    ("다음 주말", Period(Weekend, 1)),
    ("다음달", Period(Month, 1)),
    ("다음주", Period(Week, 1)),
    ("다음주말", Period(Weekend, 1)),
    ("닷새", Length(Unit::Day, 5)),
    ("매년", Void),
    ("매달", Void),
    ("매월", Void),
    ("매일", Void),
    ("매주", Void),
    ("모레", Day(2)),
    ("목요일", Weekday(3)),
    ("반년", Length(Month, 6)),
    ("보름", Length(Unit::Day, 15)),
    ("사흘", Length(Unit::Day, 3)),
    ("수요일", Weekday(2)),
    ("아흐레", Length(Unit::Day, 9)),
    ("어제", Day(-1)),
    ("어제밤", Day(-1)),
    ("어젯밤", Day(-1)),
    ("여드레", Length(Unit::Day, 8)),
    ("열흘", Length(Unit::Day, 10)),
    ("엿새", Length(Unit::Day, 6)),
    ("오늘", Day(0)),
    ("오늘밤", Day(0)),
    ("올해", Period(Year, 0)),
    ("월요일", Weekday(0)),
    ("음력", Void),
    ("이레", Length(Unit::Day, 7)),
    ("이번", Step(0)),
    ("이번 달", Period(Month, 0)),
    ("이번 주", Period(Week, 0)),
    ("이번 주말", Period(Weekend, 0)),
    ("이번달", Period(Month, 0)),
    ("이번주", Period(Week, 0)),
    ("이번주말", Period(Weekend, 0)),
    ("이틀", Length(Unit::Day, 2)),
    ("일요일", Weekday(6)),
    ("일주일", Length(Week, 1)),
    ("작년", Period(Year, -1)),
    ("재작년", Period(Year, -2)),
    ("저번", Step(-1)),
    ("저번 달", Period(Month, -1)),
    ("저번 주", Period(Week, -1)),
    ("저번달", Period(Month, -1)),
    ("저번주", Period(Week, -1)),
    ("지난", Step(-1)),
    ("지난 달", Period(Month, -1)),
    ("지난 분기", Period(Quarter, -1)),
    ("지난 주", Period(Week, -1)),
    ("지난 주말", Period(Weekend, -1)),
    ("지난 해", Period(Year, -1)),
    ("지난달", Period(Month, -1)),
    ("지난분기", Period(Quarter, -1)),
    ("지난주", Period(Week, -1)),
    ("지난주 주말", Period(Weekend, -1)),
    ("지난주말", Period(Weekend, -1)),
    ("지난해", Period(Year, -1)),
    ("지지난 달", Period(Month, -2)),
    ("지지난 주", Period(Week, -2)),
    ("지지난달", Period(Month, -2)),
    ("지지난주", Period(Week, -2)),
    ("최근", Recent),
    ("토요일", Weekday(5)),
    ("하루", Length(Unit::Day, 1)),
    ("화요일", Weekday(1)),
];

/// Units behind a number; sorted by bytes.
#[rustfmt::skip]
const UNITS: &[(&str, Unit)] = &[
    ("か月", Month),
    ("カ月", Month),
    ("ケ月", Month),
    ("ヵ月", Month),
    ("ヶ月", Month),
    ("个季度", Quarter),
    ("个小时", Hour),
    ("个星期", Week),
    ("个月", Month),
    ("个礼拜", Week),
    ("個季度", Quarter),
    ("個小時", Hour),
    ("個星期", Week),
    ("個月", Month),
    ("個禮拜", Week),
    ("分", Minute),
    ("分鐘", Minute),
    ("分钟", Minute),
    ("周", Week),
    ("四半期", Quarter),
    ("天", Unit::Day),
    ("季度", Quarter),
    ("小时", Hour),
    ("小時", Hour),
    ("年", Year),
    ("日", Unit::Day),
    ("星期", Week),
    ("時間", Hour),
    ("礼拜", Week),
    ("禮拜", Week),
    ("週", Week),
    ("週間", Week),
    ("개월", Month),
    ("년", Year),
    ("달", Month),
    ("분", Minute),
    ("분기", Quarter),
    ("시간", Hour),
    ("일", Unit::Day),
    ("주", Week),
    ("주간", Week),
    ("주일", Week),
    ("해", Year),
];

/// The longest word that begins a text, and its length.
pub(super) fn term(text: &str) -> Option<(Term, usize)> {
    longest(TERMS, text)
}

/// Whether any word begins with a character.
pub(super) fn begins(first: char) -> bool {
    let place = TERMS.partition_point(|(word, _)| word.chars().next() < Some(first));
    TERMS.get(place).is_some_and(|(word, _)| word.starts_with(first))
}

/// The longest unit that begins a text, and its length.
pub(super) fn unit(text: &str) -> Option<(Unit, usize)> {
    longest(UNITS, text)
}

/// A word sorts before all that it begins, so the last that begins the text is the longest.
fn longest<T: Copy>(table: &[(&str, T)], text: &str) -> Option<(T, usize)> {
    let first = text.chars().next()?;
    let start = table.partition_point(|(word, _)| word.chars().next() < Some(first));
    let same = table[start..].iter().take_while(|(word, _)| word.starts_with(first));
    let longest = same.filter(|(word, _)| text.starts_with(word)).last()?;
    Some((longest.1, longest.0.len()))
}

/// The longest of some words that begins a text, and its length.
pub(super) fn begins_with(text: &str, words: &[&str]) -> Option<usize> {
    words.iter().filter(|word| text.starts_with(**word)).map(|word| word.len()).max()
}

/// Whether the character behind a word makes a name or another word of it: 明日香, 日曜大工.
pub(super) fn goes_on(word: &str, behind: char) -> bool {
    let others = match word {
        "明日" => "香菜葉",
        "今日" => "子",
        "前年" => "比",
        "日曜" => "大洋",
        "오늘" => "날",
        "그제" => "야서",
        _ => "",
    };
    others.contains(behind)
}

/// Whether a word is only the end of another and the begin of a third: 以前 天气 has 前天.
pub(super) fn is_torn(word: &str, before: char) -> bool {
    let others = match word {
        "前天" | "前年" => "以之目当當从從先生",
        "去年" => "过過出失",
        "明天" | "明年" | "明日" | "明晚" => "说說声聲证證表文光发發透聪聰",
        "后天" | "後天" | "后年" | "後年" => "然以之背最前今随隨",
        "来年" | "來年" => "未从從原本近历歷将將出起回到以往",
        "今天" | "今年" | "今日" => "如至当當迄现現",
        "近" => "附最接靠邻鄰",
        _ => "",
    };
    others.contains(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_every_word_is_found() {
        assert!(TERMS.is_sorted_by(|left, right| left.0 < right.0));
        assert!(UNITS.is_sorted_by(|left, right| left.0 < right.0));
        for (word, meaning) in TERMS {
            assert_eq!(term(word), Some((*meaning, word.len())), "{word}");
        }
        for (word, meaning) in UNITS {
            assert_eq!(unit(word), Some((*meaning, word.len())), "{word}");
        }
    }

    #[test]
    fn the_longest_word_counts() {
        assert_eq!(term("先週末に"), Some((Period(Weekend, -1), "先週末".len())));
        assert_eq!(unit("個星期前"), Some((Week, "個星期".len())));
        assert_eq!(term("東京"), None);
        assert_eq!(term(""), None);
    }
}
