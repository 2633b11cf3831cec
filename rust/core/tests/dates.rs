//! Which dates a question names, and which words and numbers name none.

mod calendar;

use calendar::{DAY, day, days, iso, now};
use mnemic_core::text::{Granularity, date_ranges};
use proptest::prelude::*;

/// Check that `text` names exactly the day ranges in `expected`, "from until" with `until` behind.
#[track_caller]
fn names(text: &str, expected: &[&str]) {
    let expected: Vec<(i64, i64)> = expected
        .iter()
        .map(|range| {
            let (start, end) = range.split_once(' ').expect("two dates");
            (iso(start), iso(end))
        })
        .collect();
    assert_eq!(days(text, now()), expected, "{text}");
}

#[test]
fn a_day_is_found_however_it_is_written() {
    for text in [
        "What happened on 7 May 2023?",
        "What happened on May 7, 2023?",
        "What happened on May 7th, 2023?",
        "What happened on May 7 2023?",
        "what happened on may 7 2023",
        "what happened on 7 may 2023",
        "What happened on the 7th of May 2023?",
        "What happened on the 7th of May, 2023?",
        "What happened on Sunday, 7 May 2023?",
        "What happened on Sunday the 7th of May 2023?",
        "What happened on 7-May-2023?",
        "What happened on 7 May '23?",
        "What happened at 1:56 pm on 7 May, 2023?",
        "May 7th?",
        "May 7",
        "the 7th of May",
        "on 7 May",
        "On May 7 she went",
        "7.5.2023",
        "07.05.2023",
        "05/07/2023",
        "5/7/23",
        "5-7-2023",
        "2023-05-07",
        "2023-5-7",
        "2023/05/07",
        "2023.05.07",
        "(2023-05-07)",
        "2023-05-07T10:30:00Z",
        "2023-05-07T10:30:00.123+02:00",
        "\u{201c}2023-05-07\u{201d}",
        "Was geschah am 7. Mai 2023?",
        "Was geschah am 7. Mai?",
        "Qu'est-ce qui s'est passé le 7 mai 2023 ?",
        "¿Qué pasó el 7 de mayo de 2023?",
        "¿Qué pasó el 7 de mayo?",
    ] {
        names(text, &["2023-05-07 2023-05-08"]);
    }
}

#[test]
fn the_order_of_day_and_month_in_digits_follows_the_sign_and_the_size() {
    names("07/05/2023", &["2023-07-05 2023-07-06"]);
    names("13/05/2023", &["2023-05-13 2023-05-14"]);
    names("05/13/2023", &["2023-05-13 2023-05-14"]);
    names("07.05.2023", &["2023-05-07 2023-05-08"]);
    names("31/12/1999", &["1999-12-31 2000-01-01"]);
}

#[test]
fn a_date_without_its_year_is_the_latest_one_up_to_today() {
    names("on 18 October", &["2023-10-18 2023-10-19"]);
    names("on 19 October", &["2022-10-19 2022-10-20"]);
    names("on December 24th", &["2022-12-24 2022-12-25"]);
    names("on 29 February", &["2020-02-29 2020-03-01"]);
}

/// The day ranges in `text` where the newest memory is of `newest`, today being 18 October 2023.
fn days_with(text: &str, newest: &str) -> Vec<(i64, i64)> {
    let newest = iso(newest) * DAY + 1;
    let found = date_ranges(text, now(), &|| Some(newest));
    found.iter().map(|range| (range.start / DAY, range.end / DAY)).collect()
}

#[test]
fn a_date_without_its_year_is_the_latest_one_up_to_the_newest_memory() {
    for (text, newest, expected) in [
        ("on May 6th", "2021-08-03", "2021-05-06 2021-05-07"),
        ("on May 6th", "2021-05-06", "2021-05-06 2021-05-07"),
        ("on May 6th", "2021-05-05", "2020-05-06 2020-05-07"),
        ("on 29 February", "2021-08-03", "2020-02-29 2020-03-01"),
        ("in May", "2021-05-01", "2021-05-01 2021-06-01"),
        ("in May", "2021-04-30", "2020-05-01 2020-06-01"),
        ("in Q4", "2021-11-03", "2021-10-01 2022-01-01"),
        ("mid June", "2021-11-03", "2021-06-11 2021-06-21"),
        ("from 28 December to 3 January", "2021-01-02", "2020-12-28 2021-01-04"),
        ("between May and July", "2021-11-03", "2021-05-01 2021-08-01"),
        ("since June", "2021-11-03", "2021-06-01 2023-10-19"),
        // Of a memory that is to come.
        ("on December 3rd", "2023-12-24", "2023-12-03 2023-12-04"),
    ] {
        let (start, end) = expected.split_once(' ').expect("two dates");
        assert_eq!(days_with(text, newest), [(iso(start), iso(end))], "{text}, {newest}");
    }
}

#[test]
fn the_newest_memory_moves_no_date_that_has_a_year_or_is_counted_from_today() {
    for text in [
        "7 May 2023",
        "in May 2022",
        "yesterday",
        "last week",
        "on Friday",
        "last Friday",
        "last May",
        "this May",
        "next May",
        "two months ago",
        "last summer",
        "3 May and 8 June 2022",
    ] {
        assert_eq!(days_with(text, "2021-08-03"), days(text, now()), "{text}");
    }
}

#[test]
fn while_memories_are_a_week_old_or_newer_the_latest_year_is_that_of_today() {
    for newest in ["2023-10-11", "2023-10-15", "2023-10-18"] {
        for text in ["on 16 October", "on 18 October", "on 19 October", "in October", "in November"]
        {
            assert_eq!(days_with(text, newest), days(text, now()), "{text}, {newest}");
        }
    }
    assert_eq!(days_with("on 16 October", "2023-10-10"), [(iso("2022-10-16"), iso("2022-10-17"))]);
}

#[test]
fn the_newest_memory_is_computed_once_and_only_for_a_date_without_its_year() {
    for (text, calls) in [
        ("", 0),
        ("What did I paint?", 0),
        ("yesterday and last week", 0),
        ("on 7 May 2023", 0),
        ("on 7 May and 8 June 2023", 0),
        ("on 7 May", 1),
        ("on 7 May, on 8 May, in June or in July", 1),
    ] {
        let count = std::cell::Cell::new(0);
        let newest = || {
            count.set(count.get() + 1);
            None
        };
        date_ranges(text, now(), &newest);
        assert_eq!(count.get(), calls, "{text}");
    }
}

#[test]
fn a_day_that_no_calendar_has_is_no_date() {
    for text in [
        "29 February 2023",
        "February 29, 2023",
        "29 Feb 1900",
        "31 April 2023",
        "30 February",
        "2023-02-29",
        "2023-13-01",
        "31/31/2023",
        "32.01.2023",
        "2023-00-10",
        "between 30 February and 3 March 2023",
    ] {
        names(text, &[]);
    }
    names("29 February 2024", &["2024-02-29 2024-03-01"]);
    names("29 Feb 2000", &["2000-02-29 2000-03-01"]);
}

#[test]
fn months_reach_to_their_last_day_and_over_the_year() {
    names("in December 2023", &["2023-12-01 2024-01-01"]);
    names("February 2024", &["2024-02-01 2024-03-01"]);
    names("february 2023", &["2023-02-01 2023-03-01"]);
    names("Sept. 2022", &["2022-09-01 2022-10-01"]);
    names("2023-05", &["2023-05-01 2023-06-01"]);
    names("05/2023", &["2023-05-01 2023-06-01"]);
    names("in the month of May 2023", &["2023-05-01 2023-06-01"]);
    names("im März 2022", &["2022-03-01 2022-04-01"]);
    names("en août 2022", &["2022-08-01 2022-09-01"]);
    names("en mars 2022", &["2022-03-01 2022-04-01"]);
    names("en septiembre de 2022", &["2022-09-01 2022-10-01"]);
}

#[test]
fn a_month_alone_is_the_latest_up_to_the_current_one() {
    names("Where did she go in May?", &["2023-05-01 2023-06-01"]);
    names("where did she go in may", &["2023-05-01 2023-06-01"]);
    names("In June Anna moved", &["2023-06-01 2023-07-01"]);
    names("In October?", &["2023-10-01 2023-11-01"]);
    names("in November", &["2022-11-01 2022-12-01"]);
    names("during December", &["2022-12-01 2023-01-01"]);
    names("in March and April", &["2023-03-01 2023-04-01", "2023-04-01 2023-05-01"]);
    names("en mai", &["2023-05-01 2023-06-01"]);
    names("en marzo", &["2023-03-01 2023-04-01"]);
    names("im Januar", &["2023-01-01 2023-02-01"]);
}

#[test]
fn years_count_behind_words_that_stand_before_years() {
    for text in [
        "in 2022",
        "In 2022, where did she live?",
        "in 2022 did she move",
        "What did Anna do in 2022?",
        "during 2022",
        "the year 2022",
        "in the year 2022",
        "the conference of 2022",
        "photos from 2022",
        "2022",
        "2022?",
    ] {
        names(text, &["2022-01-01 2023-01-01"]);
    }
    names("in 2021 and 2022", &["2021-01-01 2022-01-01", "2022-01-01 2023-01-01"]);
    names("by 1999", &["1999-01-01 2000-01-01"]);
}

#[test]
fn words_and_numbers_that_only_look_like_dates_are_none() {
    for text in [
        "",
        " ",
        "?",
        "May I ask who may come?",
        "You may 2 times try.",
        "The 7 may be wrong.",
        "Only 7 may enter.",
        "the state it is in may change",
        "This may help.",
        "They march 5 miles in march order.",
        "March 5 miles!",
        "Give me a second; may the second one win?",
        "What does version 2.0.1 fix?",
        "version 2.1.2023",
        "192.168.1.1",
        "2.0.1.2023",
        "It costs $2010.",
        "It costs 2010 dollars.",
        "€2,023",
        "2,023 people in 2,023 rooms",
        "a budget of 2010",
        "a total of 2023 people",
        "fell by 2000",
        "in 2000 steps",
        "in 2023 words",
        "between 1990 and 2010 calories",
        "from 3 to 9 people",
        "between 3 and 9",
        "room 2010",
        "Which room is 2010?",
        "flight 2023?",
        "Call 555-2010 or +1 2023 555 2010 or 555-123-2023.",
        "The id is A2023-05-07 or 2023-05-07b or x_2023_05 or 12-2023-05-07.",
        "order #2023 and 2023%",
        "at 10:30, 20:23 and 5:07:2023",
        "24/7/365",
        "1/2 of it",
        "3-9 of them",
        "Blade Runner 2049",
        "in 1899",
        "in 2101",
        "Did June call April and May?",
        "Who is in June's class?",
        "the talk between April and June",
        "a letter from June",
        "a book by April",
        "the message from April to June",
        "Julian, Marcus, Augusta, Decembrist, maybe, Sunday",
        "She sat in the sun, wed and fri.",
        "information fripple",
        "every Friday, on Fridays",
        "on monday.com",
        "see may.txt and june/july",
        "the Mars 2020 rover on Mars",
        "in Mai Tai",
        "the last week of the course",
        "the last year of college",
        "her last year of school",
        "the last day, the next day, this day",
        "the next week",
        "How long did it last weeks?",
        "Will this fall apart?",
        "Does this spring break?",
        "the summer, in the winter",
        "the end of the year",
        "mid-term, late arrival, early bird",
        "long ago and many days ago",
        "recently",
        "a few weeks ago",
        "half past two",
        "quarter of it",
        "q3",
        "the second quarter of the game",
        "He is in his 90s.",
        "May May May may may",
        "one-year-old",
        "two weeks before the party",
        "the day before",
        "since then",
        "since since since",
    ] {
        names(text, &[]);
    }
}

#[test]
fn what_is_counted_from_today_moves_with_it() {
    names("today", &["2023-10-18 2023-10-19"]);
    names("What is today's plan?", &["2023-10-18 2023-10-19"]);
    names("this morning", &["2023-10-18 2023-10-19"]);
    names("two hours ago", &["2023-10-18 2023-10-19"]);
    names("yesterday", &["2023-10-17 2023-10-18"]);
    names("last night", &["2023-10-17 2023-10-18"]);
    names("the day before yesterday", &["2023-10-16 2023-10-17"]);
    names("tomorrow", &["2023-10-19 2023-10-20"]);
    names("the day after tomorrow", &["2023-10-20 2023-10-21"]);
    names("two days ago", &["2023-10-16 2023-10-17"]);
    names("10 days ago", &["2023-10-08 2023-10-09"]);
    names("in three days from now", &["2023-10-21 2023-10-22"]);
    names("a week ago", &["2023-10-08 2023-10-15"]);
    names("3 weeks ago", &["2023-09-24 2023-10-01"]);
    names("a couple of weeks ago", &["2023-10-01 2023-10-08"]);
    names("a month ago", &["2023-09-01 2023-10-01"]);
    names("ten months ago", &["2022-12-01 2023-01-01"]);
    names("4 years ago", &["2019-01-01 2020-01-01"]);
}

#[test]
fn numbers_in_words_count_as_those_in_digits() {
    let ones = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
                fifteen sixteen seventeen eighteen nineteen";
    let tens = "twenty thirty forty fifty sixty seventy eighty ninety";
    let ones: Vec<&str> = ones.split_whitespace().collect();
    let mut words: Vec<String> = ones.iter().map(|word| (*word).to_owned()).collect();
    for ten in tens.split(' ') {
        words.push(ten.to_owned());
        words.extend(ones[..9].iter().map(|one| format!("{ten}-{one}")));
    }
    words.extend(["a hundred".to_owned()]);
    words.extend(ones.iter().map(|one| format!("one hundred and {one}")));
    for (word, number) in words.iter().zip(1_i64..) {
        for (one, other) in [("days ago", "-"), ("weeks from now", "-"), ("months ago", " ")] {
            let text = format!("What did I say {} {one}?", word.replace('-', other));
            assert_eq!(days(&text, now()), days(&format!("{number} {one}"), now()), "{text}");
            let window = format!("the last {} days", word.replace('-', other));
            let expected = days(&format!("the last {number} days"), now());
            assert!(days(&window, now()) == expected || number == 1, "{window}");
        }
    }
    names("a dozen days ago", &["2023-10-06 2023-10-07"]);
    names("two dozen days ago", &["2023-09-24 2023-09-25"]);
    names("fourty-five days ago", &["2023-09-03 2023-09-04"]);
    names("Twenty One Days Ago", &["2023-09-27 2023-09-28"]);
    names("forty-five days before 11 August 2023", &["2023-06-27 2023-08-12"]);
}

#[test]
fn halves_and_sums_are_exact_to_their_finest_unit() {
    for text in ["half a year ago", "a half year ago", "half-a-year ago", "half of a year ago"] {
        names(text, &["2023-04-01 2023-05-01"]);
    }
    names("three quarters of a year ago", &["2023-01-01 2023-02-01"]);
    names("a quarter of a year ago", &["2023-07-01 2023-08-01"]);
    names("three quarters ago", &["2023-01-01 2023-04-01"]);
    names("a year and a half ago", &["2022-04-01 2022-05-01"]);
    names("one and a half years ago", &["2022-04-01 2022-05-01"]);
    names("two-and-a-half years ago", &["2021-04-01 2021-05-01"]);
    names("2 and a half years ago", &["2021-04-01 2021-05-01"]);
    names("a month and a half ago", &["2023-08-31 2023-09-07"]);
    names("half a month ago", &["2023-09-30 2023-10-07"]);
    names("a week and a half ago", &["2023-10-05 2023-10-12"]);
    names("half an hour ago", &["2023-10-18 2023-10-19"]);
    names("half a day ago", &["2023-10-17 2023-10-18"]);
    names("two weeks and three days ago", &["2023-10-01 2023-10-02"]);
    names("two weeks, three days ago", &["2023-10-01 2023-10-02"]);
    names("1 month 2 weeks ago", &["2023-09-01 2023-09-08"]);
    names("1 year, 2 months and 3 days ago", &["2022-08-15 2022-08-16"]);
    names("a year and a month ago", &["2022-09-01 2022-10-01"]);
    names("1 yr 2 mos ago", &["2022-08-01 2022-09-01"]);
    names("2 wks and 3 days ago", &["2023-10-01 2023-10-02"]);
    names("in two weeks and a day from now", &["2023-11-02 2023-11-03"]);
    names("the last two and a half years", &["2021-04-18 2023-10-19"]);
    names("over the last year and a half", &["2022-04-18 2023-10-19"]);
    names("in the past two weeks and three days", &["2023-10-01 2023-10-19"]);
    names("in the last two weeks or on 3 May", &["2023-10-04 2023-10-19", "2023-05-03 2023-05-04"]);
    names("two days from today", &["2023-10-20 2023-10-21"]);
    names("two days before yesterday", &["2023-10-15 2023-10-16"]);
    names("a day before yesterday", &["2023-10-16 2023-10-17"]);
}

#[test]
fn a_length_that_is_not_read_whole_is_no_time() {
    for text in [
        "two thousand and five days ago",
        "one point five years ago",
        "1.5 years ago",
        "1.5 years and three months ago",
        "1,000 days ago",
        "1/2 a year ago",
        "½ a year ago",
        "2 1/2 years ago",
        "2½ years ago",
        "five or six days ago",
        "two to three weeks ago",
        "two-three weeks ago",
        "2-3 weeks ago",
        "between two and three weeks ago",
        "three, four days ago",
        "ninety-something-five days ago",
        "umpty-five days ago",
        "three days and two weeks ago",
        "half a week ago",
        "a quarter of a month ago",
        "two weekends and a day ago",
        "twenty twenty days ago",
        "one five days ago",
        "half a dozen days ago",
        "a hundred thousand days ago",
        "a decade and two years ago",
        "a week and a fortnight ago",
        "two thirds of a year ago",
        "a third of a year ago",
        "four fifths of a year ago",
        "twice five days ago",
    ] {
        names(text, &[]);
    }
}

#[test]
fn hours_ago_may_be_of_an_earlier_day() {
    let nine = day(2023, 10, 18) * DAY + 9 * DAY / 24;
    for (text, expected) in [
        ("nine hours ago", 18),
        ("ten hours ago", 17),
        ("thirty-three hours ago", 17),
        ("thirty-four hours ago", 16),
        ("ninety minutes ago", 18),
        ("a day and a half ago", 16),
        ("fifteen hours from now", 19),
    ] {
        let number = day(2023, 10, expected);
        assert_eq!(days(text, nine), [(number, number + 1)], "{text}");
    }
}

#[test]
fn last_this_and_next_go_by_the_calendar() {
    names("last week", &["2023-10-09 2023-10-16"]);
    names("this week", &["2023-10-16 2023-10-23"]);
    names("next week", &["2023-10-23 2023-10-30"]);
    names("last month", &["2023-09-01 2023-10-01"]);
    names("this month", &["2023-10-01 2023-11-01"]);
    names("next month", &["2023-11-01 2023-12-01"]);
    names("last quarter", &["2023-07-01 2023-10-01"]);
    names("Last year?", &["2022-01-01 2023-01-01"]);
    names("next year", &["2024-01-01 2025-01-01"]);
    names("last weekend", &["2023-10-14 2023-10-16"]);
    names("this past weekend", &["2023-10-14 2023-10-16"]);
    names("this weekend", &["2023-10-21 2023-10-23"]);
    names("last October", &["2022-10-01 2022-11-01"]);
    names("last may", &["2023-05-01 2023-06-01"]);
    names("this May", &["2023-05-01 2023-06-01"]);
    names("next May", &["2024-05-01 2024-06-01"]);
    names("last May 2022", &["2022-05-01 2022-06-01"]);
    names("last summer", &["2023-06-01 2023-09-01"]);
    names("this fall", &["2023-09-01 2023-12-01"]);
    names("last fall", &["2022-09-01 2022-12-01"]);
    names("last winter", &["2022-12-01 2023-03-01"]);
    names("next winter", &["2023-12-01 2024-03-01"]);
}

#[test]
fn weekdays_are_the_nearest_on_their_side_of_today() {
    names("on Friday", &["2023-10-13 2023-10-14"]);
    names("on Wednesday", &["2023-10-18 2023-10-19"]);
    names("last Wednesday", &["2023-10-11 2023-10-12"]);
    names("last Friday", &["2023-10-13 2023-10-14"]);
    names("this Friday", &["2023-10-20 2023-10-21"]);
    names("next friday", &["2023-10-20 2023-10-21"]);
    names("next Wednesday", &["2023-10-25 2023-10-26"]);
    names("on Sat", &["2023-10-14 2023-10-15"]);
}

#[test]
fn the_last_weeks_end_today() {
    names("the last week", &["2023-10-11 2023-10-19"]);
    names("over the past month", &["2023-09-18 2023-10-19"]);
    names("in the last 3 days", &["2023-10-15 2023-10-19"]);
    names("past two weeks", &["2023-10-04 2023-10-19"]);
    names("next 5 days", &["2023-10-18 2023-10-24"]);
    names("the last 8 months", &["2023-02-18 2023-10-19"]);
    assert_eq!(
        days("the past month", day(2023, 3, 31) * DAY),
        [(day(2023, 2, 28), day(2023, 4, 1))]
    );
}

#[test]
fn seasons_quarters_and_decades_have_their_months() {
    names("summer 2022", &["2022-06-01 2022-09-01"]);
    names("the summer of 2022", &["2022-06-01 2022-09-01"]);
    names("winter 2022", &["2022-12-01 2023-03-01"]);
    names("fall 2021", &["2021-09-01 2021-12-01"]);
    names("Q3 2023", &["2023-07-01 2023-10-01"]);
    names("q4 of 2022", &["2022-10-01 2023-01-01"]);
    names("in Q4", &["2023-10-01 2024-01-01"]);
    names("the third quarter of 2022", &["2022-07-01 2022-10-01"]);
    names("the 1990s", &["1990-01-01 2000-01-01"]);
    names("the '90s", &["1990-01-01 2000-01-01"]);
    names("in the early 1990s", &["1990-01-01 1993-05-01"]);
}

#[test]
fn parts_of_months_and_years_are_thirds_halves_and_weeks() {
    names("early June 2023", &["2023-06-01 2023-06-11"]);
    names("mid-June 2023", &["2023-06-11 2023-06-21"]);
    names("mid June", &["2023-06-11 2023-06-21"]);
    names("late February 2024", &["2024-02-21 2024-03-01"]);
    names("in the beginning of November 2022", &["2022-11-01 2022-11-11"]);
    names("the end of 2022", &["2022-09-01 2023-01-01"]);
    names("mid-2022", &["2022-05-01 2022-09-01"]);
    names("early 2022", &["2022-01-01 2022-05-01"]);
    names("the end of last month", &["2023-09-21 2023-10-01"]);
    names("the first half of September 2022", &["2022-09-01 2022-09-16"]);
    names("the second half of 2022", &["2022-07-01 2023-01-01"]);
    names("the second week of November", &["2022-11-08 2022-11-15"]);
    names("the last week of May 2023", &["2023-05-25 2023-06-01"]);
    names("the week of 3 July 2023", &["2023-07-03 2023-07-10"]);
    names("the week of July 9", &["2023-07-03 2023-07-10"]);
}

#[test]
fn spans_share_what_one_of_their_ends_names() {
    names("between May and July 2023", &["2023-05-01 2023-08-01"]);
    names("between May and July", &["2023-05-01 2023-08-01"]);
    names("from November to February 2023", &["2022-11-01 2023-03-01"]);
    names("from November 2021 to February", &["2021-11-01 2022-03-01"]);
    names("from November to February", &["2022-11-01 2023-03-01"]);
    names("between August 11 and August 15 2023", &["2023-08-11 2023-08-16"]);
    names("from 3 to 9 May", &["2023-05-03 2023-05-10"]);
    names("from the 3rd to the 9th of May 2022", &["2022-05-03 2022-05-10"]);
    names("3-9 May 2022", &["2022-05-03 2022-05-10"]);
    names("3–9 May", &["2023-05-03 2023-05-10"]);
    names("May 3-9, 2022", &["2022-05-03 2022-05-10"]);
    names("May 3 to 9", &["2023-05-03 2023-05-10"]);
    names("28 December 2022 - 3 January 2023", &["2022-12-28 2023-01-04"]);
    names("from 28 December to 3 January 2023", &["2022-12-28 2023-01-04"]);
    names("between 2019 and 2021", &["2019-01-01 2022-01-01"]);
    names("from 2019 to 2021", &["2019-01-01 2022-01-01"]);
    names("in 2019-2021", &["2019-01-01 2022-01-01"]);
    names("May-June 2022", &["2022-05-01 2022-07-01"]);
    names("2022-05-03 to 2022-05-09", &["2022-05-03 2022-05-10"]);
    names("from 9 May 2023 to 3 May 2023", &[]);
}

#[test]
fn since_reaches_to_today_and_before_to_the_day_it_was_told() {
    names("since June", &["2023-06-01 2023-10-19"]);
    names("since 2021", &["2021-01-01 2023-10-19"]);
    names("since last week", &["2023-10-09 2023-10-19"]);
    names("since Monday", &["2023-10-16 2023-10-19"]);
    names("since 3 May 2024", &["2024-05-03 2024-05-04"]);
    names("before 10 April 2023", &["2023-04-10 2023-04-11"]);
    names("two weeks before August 11, 2023", &["2023-07-28 2023-08-12"]);
    names("the week before August 3, 2023", &["2023-07-27 2023-08-04"]);
    names("the Sunday before October 25, 2022", &["2022-10-23 2022-10-26"]);
    names("the day after 3 May 2022", &["2022-05-03 2022-05-05"]);
}

#[test]
fn several_dates_come_in_their_order_and_lend_each_other_the_year() {
    names(
        "Was it on 3 May or on 8 June 2022, or in 2020?",
        &["2022-05-03 2022-05-04", "2022-06-08 2022-06-09", "2020-01-01 2021-01-01"],
    );
    names("in May and June 2022", &["2022-05-01 2022-06-01", "2022-06-01 2022-07-01"]);
    names("yesterday or last week", &["2023-10-17 2023-10-18", "2023-10-09 2023-10-16"]);
}

#[test]
fn a_day_with_its_year_overrules_what_is_counted_from_today() {
    names("last week, as told on 3 May 2022", &["2022-05-03 2022-05-04"]);
    names("last Friday on 23 January, 2022", &["2022-01-23 2022-01-24"]);
    names("last week or in May", &["2023-10-09 2023-10-16", "2023-05-01 2023-06-01"]);
}

#[test]
fn each_range_says_how_exactly_it_was_named() {
    for (text, granularity) in [
        ("yesterday", Granularity::Day),
        ("last weekend", Granularity::Weekend),
        ("last week", Granularity::Week),
        ("in May", Granularity::Month),
        ("Q1 2023", Granularity::Quarter),
        ("summer 2023", Granularity::Season),
        ("in 2022", Granularity::Year),
        ("the 1990s", Granularity::Decade),
        ("from May to July", Granularity::Span),
        ("early May", Granularity::Span),
        ("since May", Granularity::Span),
    ] {
        let found: Vec<_> =
            date_ranges(text, now(), &|| None).iter().map(|range| range.granularity).collect();
        assert_eq!(found, [granularity], "{text}");
    }
}

#[test]
fn relative_dates_cross_the_ends_of_years() {
    let new_year = day(2024, 1, 1) * DAY;
    assert_eq!(days("yesterday", new_year), [(iso("2023-12-31"), iso("2024-01-01"))]);
    assert_eq!(days("yesterday", new_year - 1), [(iso("2023-12-30"), iso("2023-12-31"))]);
    assert_eq!(days("last month", new_year), [(iso("2023-12-01"), iso("2024-01-01"))]);
    assert_eq!(days("this winter", new_year), [(iso("2023-12-01"), iso("2024-03-01"))]);
    assert_eq!(days("last quarter", new_year), [(iso("2023-10-01"), iso("2024-01-01"))]);
    assert_eq!(days("in January", new_year), [(iso("2024-01-01"), iso("2024-02-01"))]);
    assert_eq!(days("last week", new_year), [(iso("2023-12-25"), iso("2024-01-01"))]);
}

#[test]
fn a_long_text_of_nothing_but_beginnings_is_read_in_linear_time() {
    for phrase in [
        "since ",
        "early ",
        "last week of ",
        "between 3 and ",
        "may 7 ",
        "from May to ",
        "one ",
        "the last two ",
        "half a year and ",
    ] {
        let text = phrase.repeat(20_000);
        assert!(date_ranges(&text, now(), &|| None).len() <= 40_000);
    }
}

const PIECES: [&str; 66] = [
    "may",
    "May",
    "march",
    "June",
    "mars",
    "7",
    "07",
    "31",
    "2023",
    "2,023",
    "1990s",
    "7th",
    "3-9",
    "2019-2021",
    "2023-05-07",
    "07/05/23",
    "5.",
    "Friday",
    "on",
    "in",
    "since",
    "last",
    "this",
    "next",
    "past",
    "week",
    "weeks",
    "month",
    "year",
    "weekend",
    "of",
    "the",
    "between",
    "from",
    "to",
    "and",
    "ago",
    "a",
    "two",
    "couple",
    "early",
    "mid",
    "end",
    "first",
    "half",
    "quarter",
    "Q3",
    "summer",
    "fall",
    "before",
    "after",
    "yesterday",
    "day",
    ",",
    "-",
    ".",
    "?",
    "'",
    "–",
    "İ",
    "février",
    "à",
    "日",
    "people",
    "%",
    "T10:00",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn any_now() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -3_000_000_000_000_000..4_000_000_000_000_000_i64]
}

fn any_text() -> impl Strategy<Value = String> {
    let word = (prop::sample::select(&PIECES[..]), prop::bool::weighted(0.8));
    let words = prop::collection::vec(word, 0..14).prop_map(|words| {
        let spaced =
            |(word, is_spaced): &(&str, bool)| [*word, if *is_spaced { " " } else { "" }].concat();
        words.iter().map(spaced).collect::<Vec<_>>().concat()
    });
    prop_oneof![3 => words, 1 => any::<String>(), 1 => "[0-9./:, -]{0,20}"]
}

/// Half a day is twelve hours, and hours are counted from the time of day.
fn has_part_of_day(text: &str) -> bool {
    text.contains("day") && (text.contains("half") || text.contains("quarter"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_ranges_of_whole_days_that_end_after_they_begin(
        text in any_text(),
        now in any_now(),
        newest in prop::option::of(any_now()),
    ) {
        for range in date_ranges(&text, now, &|| newest) {
            prop_assert!(range.start < range.end);
            prop_assert_eq!((range.start % DAY, range.end % DAY), (0, 0));
        }
    }

    #[test]
    fn the_time_of_day_does_not_matter(text in any_text(), today in -30_000..40_000_i64, time in 0..DAY) {
        prop_assume!(!has_part_of_day(&text));
        prop_assert_eq!(days(&text, today * DAY), days(&text, today * DAY + time));
    }

    #[test]
    fn ranges_counted_in_days_move_with_now(
        text in prop::sample::select(&["yesterday", "two days ago", "3 weeks ago", "the past 9 days", "the last week"][..]),
        today in -30_000..40_000_i64,
        shift in 0..10_000_i64,
    ) {
        let moved: Vec<_> = days(text, today * DAY).iter().map(|(start, end)| (start + shift, end + shift)).collect();
        prop_assert_eq!(moved.len(), 1);
        prop_assert_eq!(days(text, (today + shift) * DAY), moved);
    }

    #[test]
    fn ranges_counted_in_weeks_move_with_whole_weeks(
        text in prop::sample::select(&["last week", "this weekend", "next Friday", "on Monday", "last Sunday"][..]),
        today in -30_000..40_000_i64,
        weeks in 0..1_000_i64,
    ) {
        let shift = 7 * weeks;
        let moved: Vec<_> = days(text, today * DAY).iter().map(|(start, end)| (start + shift, end + shift)).collect();
        prop_assert_eq!(moved.len(), 1);
        prop_assert_eq!(days(text, (today + shift) * DAY), moved);
    }

    #[test]
    fn a_date_is_found_in_every_format(
        year in 1900..=2100_i64,
        month in 1..=12_usize,
        date in 1..=28_i64,
        now in -3_000_000_000_000_000..4_000_000_000_000_000_i64,
    ) {
        let (name, number) = (MONTHS[month - 1], day(year, month, date));
        let short = &name[..3];
        for text in [
            format!("Where was she on {date} {name} {year}?"),
            format!("Where was she on {name} {date}, {year}?"),
            format!("where was she on {} {date} {year}", name.to_lowercase()),
            format!("The {date}th of {name}, {year}."),
            format!("{short} {date}, {year}"),
            format!("{date} {short}. {year}"),
            format!("{date}-{short}-{year}"),
            format!("{year}-{month:02}-{date:02}"),
            format!("{year}/{month}/{date}"),
            format!("{month:02}/{:02}/{year}", 13.max(date)),
            format!("{date}.{month}.{year}"),
        ] {
            let number = if text.contains("/13/") { day(year, month, 13) } else { number };
            prop_assert_eq!(days(&text, now), [(number, number + 1)], "{}", text);
        }
        let first = day(year, month, 1);
        let next = if month == 12 { day(year + 1, 1, 1) } else { day(year, month + 1, 1) };
        for text in [format!("in {name} {year}"), format!("{year}-{month:02}"), format!("{name} of {year}?")] {
            prop_assert_eq!(days(&text, now), [(first, next)], "{}", text);
        }
    }

    #[test]
    fn a_date_without_its_year_lies_within_the_year_up_to_today(
        month in 1..=12_usize,
        date in 1..=28_i64,
        today in -20_000..40_000_i64,
    ) {
        let found = days(&format!("on {} {date}", MONTHS[month - 1]), today * DAY);
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].0 <= today && today - found[0].0 < 366);
    }

    #[test]
    fn a_date_without_its_year_lies_within_the_year_up_to_the_newest_memory(
        month in 1..=12_usize,
        date in 1..=28_i64,
        today in -20_000..40_000_i64,
        newest in -20_000..40_000_i64,
    ) {
        let text = format!("on {} {date}", MONTHS[month - 1]);
        let found = date_ranges(&text, today * DAY, &|| Some(newest * DAY));
        let latest = if (today - 7..=today).contains(&newest) { today } else { newest };
        prop_assert_eq!(found.len(), 1);
        let start = found[0].start / DAY;
        prop_assert!(start <= latest && latest - start < 366);
    }
}
