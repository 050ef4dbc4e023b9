//! Finds the days that a question names, and scores how close a moment is to them.

use chronolog::event::stamp::{DAY_MICROS, civil, days_from_civil};

/// The days in which closeness fades after a day, and before it: events are mostly recorded afterwards.
const FADES_AFTER: f64 = 10.0;
const FADES_BEFORE: f64 = 3.0;
/// A day more on either side counts, because of time zones and late evenings.
const MARGIN_DAYS: i64 = 1;
/// The closeness of a moment in a named year, which distinguishes less than a month.
const YEAR_CLOSENESS: f64 = 0.3;
/// A number like these alone is a year.
const YEARS: std::ops::RangeInclusive<i64> = 1900..=2100;

/// English names of months, from January on.
const MONTHS: [&[&str]; 12] = [
    &["january", "jan"],
    &["february", "feb"],
    &["march", "mar"],
    &["april", "apr"],
    &["may"],
    &["june", "jun"],
    &["july", "jul"],
    &["august", "aug"],
    &["september", "sept", "sep"],
    &["october", "oct"],
    &["november", "nov"],
    &["december", "dec"],
];
/// Names of months that are other words as well: they count beside a number, or behind one of `BEFORE_MONTHS`.
const UNSURE_MONTHS: [&str; 5] = ["march", "mar", "may", "august", "jan"];
const BEFORE_MONTHS: [&str; 18] = [
    "in", "on", "of", "during", "since", "until", "till", "by", "before", "after", "from", "to", "early", "late",
    "mid", "last", "this", "next",
];
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
/// Single days, by how many they are from today.
const DAYS: [(&str, i64); 4] = [("today", 0), ("tonight", 0), ("yesterday", -1), ("tomorrow", 1)];
const NUMBERS: [&str; 10] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];
/// The one before this, this one, the one after: by how many they are from now.
const WHICH: [(&str, i64); 5] = [("last", -1), ("previous", -1), ("past", -1), ("this", 0), ("next", 1)];
/// What may stand between the parts of a date.
const JOINTS: [&str; 2] = ["of", "the"];
/// What numbers of days end with.
const ORDINALS: [&str; 4] = ["st", "nd", "rd", "th"];

/// A unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Day,
    /// Seven days from a Monday on.
    Week,
    Month,
    Year,
}

impl Unit {
    fn named(word: Option<&str>) -> Option<Self> {
        match word? {
            "day" | "days" => Some(Self::Day),
            "week" | "weeks" => Some(Self::Week),
            "month" | "months" => Some(Self::Month),
            "year" | "years" => Some(Self::Year),
            _ => None,
        }
    }
}

/// The days that a question names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedDays(Vec<TimeStretch>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum TimeStretch {
    /// From one day to another, both counted since 1970.
    Days(i64, i64),
    /// A month, or a day of it, of whichever year.
    EachYear(u32, Option<u32>),
    /// All of a year.
    Year(i64),
}

/// A word or a number of a question.
#[derive(Clone, Debug, PartialEq)]
enum QuestionPart {
    Word(String),
    /// A number, and how many digits it has.
    Number(i64, usize),
}

impl NamedDays {
    /// The days of a question that is asked at a moment in microseconds since 1970.
    pub fn of(question: &str, now: i64) -> Self {
        let today = now.div_euclid(DAY_MICROS);
        let mut stretches = Vec::new();
        let parts = parts_of(question);
        let mut at = 0;
        while at < parts.len() {
            let reader = QuestionReader { parts: &parts, at };
            match reader.stretch(today) {
                Some((stretch, length)) => {
                    stretches.push(stretch);
                    at += length;
                }
                None => at += 1,
            }
        }
        stretches.dedup();
        Self(stretches)
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How close a moment is to the nearest of them: 1 within, fading to 0.
    pub fn closeness(&self, micros: i64) -> f64 {
        let day = micros.div_euclid(DAY_MICROS);
        let (year, ..) = civil(day);
        let close = |stretch: &TimeStretch| match *stretch {
            TimeStretch::Days(first, last) => faded(day, first, last),
            TimeStretch::EachYear(month, of_month) => (year - 1..=year + 1)
                .filter_map(|year| days_of(year, month, of_month))
                .map(|(first, last)| faded(day, first, last))
                .fold(0.0, f64::max),
            TimeStretch::Year(named) if named == year => YEAR_CLOSENESS,
            TimeStretch::Year(_) => 0.0,
        };
        self.0.iter().map(close).fold(0.0, f64::max)
    }
}

fn faded(day: i64, first: i64, last: i64) -> f64 {
    if day > last + MARGIN_DAYS {
        (-((day - last) as f64) / FADES_AFTER).exp()
    } else if day < first - MARGIN_DAYS {
        (-((first - day) as f64) / FADES_BEFORE).exp()
    } else {
        1.0
    }
}

/// The first and last day of a month, or of a day of it; `None` if the month does not have it.
fn days_of(year: i64, month: u32, day: Option<u32>) -> Option<(i64, i64)> {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let (first, end) = (
        days_from_civil(year, i64::from(month), 1),
        days_from_civil(next.0, i64::from(next.1), 1),
    );
    match day {
        Some(day) => {
            let this = first + i64::from(day) - 1;
            (day >= 1 && this < end).then_some((this, this))
        }
        None => Some((first, end - 1)),
    }
}

fn parts_of(question: &str) -> Vec<QuestionPart> {
    let words = question.split(|letter: char| !letter.is_alphanumeric());
    let part = |word: &str| {
        let word = word.to_lowercase();
        let bare = ORDINALS.iter().find_map(|end| word.strip_suffix(end));
        let digits = bare.filter(|bare| !bare.is_empty()).unwrap_or(&word);
        match digits.parse() {
            Ok(number) if digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                QuestionPart::Number(number, digits.len())
            }
            _ => QuestionPart::Word(word),
        }
    };
    words.filter(|word| !word.is_empty()).map(part).collect()
}

/// Reads what begins at a part of a question.
#[derive(Clone, Copy)]
struct QuestionReader<'a> {
    parts: &'a [QuestionPart],
    at: usize,
}

fn looked_up(table: &[(&str, i64)], word: Option<&str>) -> Option<i64> {
    let word = word?;
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

impl QuestionReader<'_> {
    fn word(&self, ahead: usize) -> Option<&str> {
        match self.parts.get(self.at + ahead)? {
            QuestionPart::Word(word) => Some(word),
            QuestionPart::Number(..) => None,
        }
    }

    fn number(&self, ahead: usize, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
        match *self.parts.get(self.at + ahead)? {
            QuestionPart::Number(number, length) if digits.contains(&length) => Some(number),
            _ => None,
        }
    }

    fn day(&self, ahead: usize) -> Option<u32> {
        let day = self.number(ahead, 1..=2).filter(|day| (1..=31).contains(day));
        day.map(|day| day as u32)
    }

    fn year(&self, ahead: usize) -> Option<i64> {
        self.number(ahead, 4..=4).filter(|year| YEARS.contains(year))
    }

    fn month(&self, ahead: usize) -> Option<u32> {
        let word = self.word(ahead)?;
        let at = MONTHS.iter().position(|names| names.contains(&word))?;
        Some(at as u32 + 1)
    }

    /// Skips one word that only joins.
    fn joint(&self, ahead: usize) -> usize {
        let is_joint = self.word(ahead).is_some_and(|word| JOINTS.contains(&word));
        ahead + usize::from(is_joint)
    }

    /// The stretch that begins here, and its number of parts.
    fn stretch(&self, today: i64) -> Option<(TimeStretch, usize)> {
        self.spelled_out()
            .or_else(|| self.date())
            .or_else(|| self.relative(today))
            .or_else(|| self.year(0).map(|year| (TimeStretch::Year(year), 1)))
    }

    /// `2023-05-08`.
    fn spelled_out(&self) -> Option<(TimeStretch, usize)> {
        let (year, month, day) = (self.year(0)?, self.number(1, 2..=2)?, self.day(2)?);
        let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
        let (first, last) = days_of(year, month, Some(day))?;
        Some((TimeStretch::Days(first, last), 3))
    }

    /// `8 May 2023`, `the 8th of May`, `May 8`, `May 2023`, `in May`.
    fn date(&self) -> Option<(TimeStretch, usize)> {
        let (month, day, mut length) = if let Some(day) = self.day(0) {
            let place = self.joint(1);
            (self.month(place)?, Some(day), place + 1)
        } else {
            let month = self.month(0)?;
            match self.day(self.joint(1)) {
                Some(day) => (month, Some(day), self.joint(1) + 1),
                None => (month, None, 1),
            }
        };
        let year = self.year(self.joint(length));
        if year.is_some() {
            length = self.joint(length) + 1;
        } else if day.is_none() && !self.is_surely_month() {
            return None;
        }
        let stretch = match year {
            Some(year) => days_of(year, month, day).map(|(first, last)| TimeStretch::Days(first, last))?,
            None => TimeStretch::EachYear(month, day),
        };
        Some((stretch, length))
    }

    fn is_surely_month(&self) -> bool {
        let is_unsure = self.word(0).is_some_and(|word| UNSURE_MONTHS.contains(&word));
        let before = self.at.checked_sub(1).map(|at| QuestionReader { at, ..*self });
        let before = before.as_ref().and_then(|before| before.word(0));
        !is_unsure || before.is_some_and(|word| BEFORE_MONTHS.contains(&word))
    }

    /// `yesterday`, `last week`, `last Tuesday`, `three days ago`.
    fn relative(&self, today: i64) -> Option<(TimeStretch, usize)> {
        if let Some(days) = looked_up(&DAYS, self.word(0)) {
            return Some((TimeStretch::Days(today + days, today + days), 1));
        }
        if let Some(which) = looked_up(&WHICH, self.word(0)) {
            if let Some(unit) = Unit::named(self.word(1)) {
                let (first, last) = moved(today, unit, which);
                return Some((TimeStretch::Days(first, last), 2));
            }
            let word = self.word(1)?;
            let weekday = WEEKDAYS.iter().position(|name| *name == word)? as i64;
            let past = (weekday_of(today) - weekday - 1).rem_euclid(7) + 1;
            let day = if which > 0 { today - past + 7 } else { today - past };
            return Some((TimeStretch::Days(day, day), 2));
        }
        let spelled = || match self.word(0)? {
            "a" | "an" => Some(1),
            word => NUMBERS
                .iter()
                .zip(1..)
                .find_map(|(name, number)| (*name == word).then_some(number)),
        };
        let count = self.number(0, 1..=3).or_else(spelled)?;
        let unit = Unit::named(self.word(1))?;
        let is_past = self.word(2) == Some("ago");
        let (first, last) = moved(today, unit, -count);
        is_past.then_some((TimeStretch::Days(first, last), 3))
    }
}

/// Monday is 0.
fn weekday_of(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

/// The stretch of the calendar that holds a day, so many further on.
fn moved(today: i64, unit: Unit, count: i64) -> (i64, i64) {
    let (year, month, _) = civil(today);
    match unit {
        Unit::Day => (today + count, today + count),
        Unit::Week => {
            let monday = today - weekday_of(today) + 7 * count;
            (monday, monday + 6)
        }
        Unit::Month => {
            let months = year * 12 + month - 1 + count;
            let first = |months: i64| days_from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
            (first(months), first(months + 1) - 1)
        }
        Unit::Year => (
            days_from_civil(year + count, 1, 1),
            days_from_civil(year + count + 1, 1, 1) - 1,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::event::stamp::read_short;

    fn at(day: &str) -> i64 {
        read_short(day).expect("a day")
    }

    /// A Wednesday.
    const NOW: &str = "2023-06-14";

    fn named(question: &str) -> NamedDays {
        NamedDays::of(question, at(NOW))
    }

    fn days(first: &str, last: &str) -> NamedDays {
        NamedDays(vec![TimeStretch::Days(at(first) / DAY_MICROS, at(last) / DAY_MICROS)])
    }

    #[test]
    fn days_are_read_as_people_write_them() {
        for question in [
            "What happened on 8 May 2023?",
            "what happened on the 8th of may, 2023",
            "On May 8, 2023 who came?",
            "May the 8th 2023",
            "since 2023-05-08?",
        ] {
            assert_eq!(named(question), days("2023-05-08", "2023-05-08"), "{question}");
        }
        assert_eq!(named("in February 2024"), days("2024-02-01", "2024-02-29"));
        assert_eq!(named("Sept 2022"), days("2022-09-01", "2022-09-30"));
        assert_eq!(named("in May"), NamedDays(vec![TimeStretch::EachYear(5, None)]));
        assert_eq!(named("on 3 June"), NamedDays(vec![TimeStretch::EachYear(6, Some(3))]));
        assert_eq!(named("in 2021"), NamedDays(vec![TimeStretch::Year(2021)]));
        assert_eq!(named("June and 2021").0.len(), 2);
    }

    #[test]
    fn days_are_counted_from_now() {
        for (question, first, last) in [
            ("what did I say yesterday?", "2023-06-13", "2023-06-13"),
            ("two days ago", "2023-06-12", "2023-06-12"),
            ("3 weeks ago", "2023-05-22", "2023-05-28"),
            ("last week", "2023-06-05", "2023-06-11"),
            ("last month", "2023-05-01", "2023-05-31"),
            ("a year ago", "2022-01-01", "2022-12-31"),
            ("last Tuesday", "2023-06-13", "2023-06-13"),
            ("last Wednesday", "2023-06-07", "2023-06-07"),
            ("next Friday", "2023-06-16", "2023-06-16"),
        ] {
            assert_eq!(named(question), days(first, last), "{question}");
        }
    }

    #[test]
    fn other_words_are_no_days() {
        for question in [
            "may I come?",
            "they march on",
            "room 12",
            "1234567",
            "30 February 2023 is none",
            "0 days",
            "an august gathering",
            "",
            "3 days of rain",
            "part 2 of 3",
        ] {
            let named = named(question);
            assert!(
                named.is_empty() || question.contains("February"),
                "{question} {named:?}"
            );
        }
    }
}
