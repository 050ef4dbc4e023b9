//! The words with which a language says when something was.

/// The words of one language, all in small letters. Another language is another table.
pub struct Language {
    /// Months by their names, from 1 on.
    pub months: &'static [(&'static str, u32)],
    /// Names of months that are other words as well: they count beside a number, or behind one of `before_months`.
    pub unsure_months: &'static [&'static str],
    /// See `unsure_months`.
    pub before_months: &'static [&'static str],
    /// Days of the week, from Monday on, which is 0.
    pub weekdays: &'static [(&'static str, i64)],
    /// Single days, by how many they are from today.
    pub days: &'static [(&'static str, i64)],
    /// What is counted.
    pub units: &'static [(&'static str, Unit)],
    /// Numbers as words.
    pub numbers: &'static [(&'static str, i64)],
    /// The one before this, this one, the one after: by how many they are from now.
    pub which: &'static [(&'static str, i64)],
    /// Stands behind a number of units that have passed.
    pub ago: &'static [&'static str],
    /// What may stand between the parts of a date.
    pub joints: &'static [&'static str],
    /// What numbers of days end with.
    pub ordinals: &'static [&'static str],
}

/// A stretch of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A day.
    Day,
    /// Seven days from a Monday on.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

/// All languages that are known. A question is read with each.
pub const LANGUAGES: &[Language] = &[ENGLISH];

const ENGLISH: Language = Language {
    months: &[
        ("january", 1),
        ("jan", 1),
        ("february", 2),
        ("feb", 2),
        ("march", 3),
        ("mar", 3),
        ("april", 4),
        ("apr", 4),
        ("may", 5),
        ("june", 6),
        ("jun", 6),
        ("july", 7),
        ("jul", 7),
        ("august", 8),
        ("aug", 8),
        ("september", 9),
        ("sept", 9),
        ("sep", 9),
        ("october", 10),
        ("oct", 10),
        ("november", 11),
        ("nov", 11),
        ("december", 12),
        ("dec", 12),
    ],
    unsure_months: &["march", "mar", "may", "august", "jan"],
    before_months: &[
        "in", "on", "of", "during", "since", "until", "till", "by", "before", "after", "from", "to", "early", "late",
        "mid", "last", "this", "next",
    ],
    weekdays: &[
        ("monday", 0),
        ("tuesday", 1),
        ("wednesday", 2),
        ("thursday", 3),
        ("friday", 4),
        ("saturday", 5),
        ("sunday", 6),
    ],
    days: &[("today", 0), ("tonight", 0), ("yesterday", -1), ("tomorrow", 1)],
    units: &[
        ("day", Unit::Day),
        ("days", Unit::Day),
        ("week", Unit::Week),
        ("weeks", Unit::Week),
        ("month", Unit::Month),
        ("months", Unit::Month),
        ("year", Unit::Year),
        ("years", Unit::Year),
    ],
    numbers: &[
        ("a", 1),
        ("an", 1),
        ("one", 1),
        ("two", 2),
        ("three", 3),
        ("four", 4),
        ("five", 5),
        ("six", 6),
        ("seven", 7),
        ("eight", 8),
        ("nine", 9),
        ("ten", 10),
    ],
    which: &[("last", -1), ("previous", -1), ("past", -1), ("this", 0), ("next", 1)],
    ago: &["ago"],
    joints: &["of", "the"],
    ordinals: &["st", "nd", "rd", "th"],
};
