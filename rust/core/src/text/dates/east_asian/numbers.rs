//! Numbers in digits and in Chinese numerals.

/// A whole number as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) value: i64,
    pub(super) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// So many digits.
    Digits(usize),
    /// 七, 二十七.
    Numerals,
    /// So many numerals one after the other: 二〇二三; also two neighbours, as in 三四天.
    Sequence(usize),
}

/// A year has four digits, and so has the longest number with a meaning here: 一百二十三 has five
/// characters.
const MAX_DIGITS: usize = 4;
const MAX_NUMERALS: usize = 5;

impl Number {
    /// Read the number that begins a text, and its length; `None` for a longer one.
    pub(super) fn read(text: &str) -> Option<(Self, usize)> {
        let digits = text.bytes().take(MAX_DIGITS + 1).take_while(u8::is_ascii_digit).count();
        match digits {
            0 => numerals(text),
            1..=MAX_DIGITS if !continues(&text[digits..]) => {
                let value = text[..digits].parse().ok()?;
                Some((Self { value, form: Form::Digits(digits) }, digits))
            }
            _ => None,
        }
    }

    /// The number of a month, a day or a unit; `None` for others.
    pub(super) fn counted(self) -> Option<i64> {
        match self.form {
            Form::Digits(1..=3) | Form::Numerals => Some(self.value),
            _ => None,
        }
    }
}

/// Whether the text behind digits makes them a part of an id, a price, a share or a time.
fn continues(behind: &str) -> bool {
    let mut next = behind.chars();
    let (first, second) = (next.next().unwrap_or(' '), next.next().unwrap_or(' '));
    first.is_ascii_alphanumeric()
        || "_%°€$£¥@/\\+=#".contains(first)
        || ".,:".contains(first) && second.is_ascii_digit()
}

/// The value of a numeral, or of a unit of ten and more.
fn value_of(character: char) -> Option<i64> {
    Some(match character {
        '〇' | '零' | '○' => 0,
        '一' => 1,
        '二' | '两' | '兩' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        '十' => 10,
        '廿' => 20,
        '卅' => 30,
        '百' => 100,
        _ => return None,
    })
}

pub(super) fn is_numeral(character: char) -> bool {
    value_of(character).is_some()
}

fn numerals(text: &str) -> Option<(Number, usize)> {
    let length = |count| text.chars().take(count).map(char::len_utf8).sum();
    let values: Vec<i64> = text.chars().take(MAX_NUMERALS + 1).map_while(value_of).collect();
    let number = match values[..] {
        [] => return None,
        _ if values.len() > MAX_NUMERALS => return None,
        [value] => Number { value, form: Form::Numerals },
        _ if values.iter().all(|value| *value < 10) => {
            let value = values.iter().fold(0, |value, digit| 10 * value + digit);
            Number { value, form: Form::Sequence(values.len()) }
        }
        _ => Number { value: sum(&values)?, form: Form::Numerals },
    };
    Some((number, length(values.len())))
}

/// The sum of numerals and the units behind them, which fall: 一百二十三.
fn sum(values: &[i64]) -> Option<i64> {
    let (mut total, mut ones, mut least) = (0, None, 1_000);
    for value in values {
        match value {
            0 => {}
            1..10 if ones.is_none() => ones = Some(*value),
            10 | 100 if *value < least => {
                total += ones.take().unwrap_or(1) * value;
                least = *value;
            }
            20 | 30 if least > 10 && ones.is_none() => {
                total += value;
                least = 10;
            }
            _ => return None,
        }
    }
    Some(total + ones.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<i64> {
        Number::read(text).map(|(number, _)| number.value)
    }

    #[test]
    fn numerals_are_added_up_and_sequences_are_digits() {
        for (text, expected) in [
            ("7月", 7),
            ("07", 7),
            ("2023年", 2023),
            ("一", 1),
            ("十", 10),
            ("十二", 12),
            ("二十", 20),
            ("二十七日", 27),
            ("廿七", 27),
            ("卅一", 31),
            ("一百", 100),
            ("一百零五", 105),
            ("一百二十三", 123),
            ("二〇二三", 2023),
            ("三四天", 34),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        assert_eq!(Number::read("三四天").map(|(number, _)| number.counted()), Some(None));
        assert_eq!(Number::read("二十七日").map(|(_, length)| length), Some(9));
    }

    #[test]
    fn no_number_is_read_of_longer_ones_and_of_parts() {
        for text in
            ["", "年", "12345", "2023a", "1.5", "3%", "10:30", "一二三四五六", "十十", "三四十"]
        {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
