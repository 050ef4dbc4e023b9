//! Reads from a record the fields that a rule goes by, where its face says that they stand.

use std::sync::Arc;

use chronolog::event::faces::Sorting;
use chronolog::event::stamp;
use chronolog::json::{Cursor, Quoted, elements};
use chronolog::scope::KEY;

/// A record as its face declares it.
#[derive(Default)]
pub struct DeltaFields<'a> {
    pub id: Option<Quoted<'a>>,
    pub scope: Option<&'a [u8]>,
    pub content: Option<Quoted<'a>>,
    pub stated: Option<Stated<'a>>,
    pub source: Option<Quoted<'a>>,
    pub time: Option<Quoted<'a>>,
}

fn quoted(value: &[u8]) -> Option<Quoted<'_>> {
    Cursor::new(value).string()
}

/// Whether a text says nothing: as Python strips it, to which four separators are white space as well.
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter))
}

/// Whether a text is a moment with its time zone, in the spellings that `datetime.isoformat` has: the offset of a local mean
/// time has seconds.
pub fn is_instant(text: &str) -> bool {
    let (Some(day), Some(time)) = (text.get(..10), text.get(11..)) else {
        return false;
    };
    let (clock, offset) = match time.find(['+', '-']) {
        Some(at) => (&time[..at], &time[at + 1..]),
        None => (time.strip_suffix(['Z', 'z']).unwrap_or_default(), "00:00"),
    };
    is_clock(clock) && is_clock(offset) && stamp::read_short(day).is_some()
}

/// Whether a text is hours and minutes, and seconds with what is less than one if it goes on.
fn is_clock(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_part = |part: &str, most: &str| part.len() == 2 && is_number(part) && part <= most;
    let mut parts = whole.split(':');
    parts.next().is_some_and(|hours| is_part(hours, "23"))
        && parts.next().is_some_and(|minutes| is_part(minutes, "59"))
        && match parts.next() {
            Some(seconds) => is_part(seconds, "59") && is_number(fraction) && parts.next().is_none(),
            None => whole == text,
        }
}

impl<'a> DeltaFields<'a> {
    /// Reads a record in one go; what is not as it should be is not there.
    pub fn read(record: &'a [u8], sorting: &Sorting) -> Option<Self> {
        let mut read = Self::default();
        let mut cursor = Cursor::new(record);
        cursor.pass(b"{")?;
        while cursor.has_more(b'}')? {
            match cursor.key()?.inner {
                b"data" if cursor.pass(b"{").is_some() => read.read_data(&mut cursor, sorting)?,
                b"id" => {
                    // Nothing behind it is of interest.
                    read.id = cursor.string();
                    break;
                }
                _ => drop(cursor.value()?),
            }
        }
        Some(read)
    }

    fn read_data(&mut self, cursor: &mut Cursor<'a>, sorting: &Sorting) -> Option<()> {
        while cursor.has_more(b'}')? {
            let key = cursor.key()?.inner;
            let is = |name: &str| key == name.as_bytes();
            match cursor.peek()? {
                _ if is(KEY) => self.scope = cursor.value(),
                b'"' if is(sorting.content) => self.content = cursor.string(),
                b'"' if is(sorting.source) => self.source = cursor.string(),
                b'"' if is(sorting.time) => self.time = cursor.string(),
                b'{' if is(sorting.meaning) => self.stated = Some(Stated::read(cursor, sorting)?),
                _ => drop(cursor.value()?),
            }
        }
        Some(())
    }
}

/// What a record says it means.
#[derive(Default)]
pub struct Stated<'a> {
    pub intent: Option<&'a [u8]>,
    pub replaces: Option<&'a [u8]>,
    pub confidence: Option<f64>,
    pub said: [Option<&'a [u8]>; 3],
}

impl<'a> Stated<'a> {
    /// Reads the object that a cursor stands at.
    fn read(cursor: &mut Cursor<'a>, sorting: &Sorting) -> Option<Self> {
        let mut told = Self::default();
        cursor.pass(b"{")?;
        while cursor.has_more(b'}')? {
            let (key, value) = (cursor.key()?.inner, cursor.value()?);
            let there = Some(value).filter(|value| *value != b"null");
            let is = |name: &str| key == name.as_bytes();
            if is(sorting.confidence) {
                told.confidence = certainty(value);
            } else if is(sorting.intent) {
                told.intent = there;
            } else if is(sorting.replaces) {
                told.replaces = there;
            } else if let Some(place) = sorting.said.iter().position(|name| is(name)) {
                told.said[place] = there;
            }
        }
        Some(told)
    }

    /// What it says it replaces, each once; none if it does not say so in words.
    pub fn replaced(&self) -> Vec<Arc<str>> {
        let word = |value: &[u8]| {
            let text = quoted(value)?.text()?;
            (!is_blank(&text)).then(|| Arc::from(&*text))
        };
        let Some(value) = self.replaces else { return Vec::new() };
        let words: Option<Vec<Arc<str>>> = match value.first() {
            Some(b'[') => elements(value).map(word).collect(),
            _ => word(value).map(|word| vec![word]),
        };
        let mut once: Vec<Arc<str>> = Vec::new();
        for word in words.unwrap_or_default() {
            if !once.contains(&word) {
                once.push(word);
            }
        }
        once
    }
}

/// A number from 0 to 1.
fn certainty(value: &[u8]) -> Option<f64> {
    let is_number = matches!(value.first(), Some(b'-' | b'0'..=b'9'));
    let number: f64 = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
    (0.0..=1.0).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_zone_is_an_instant() {
        for whole in [
            "2026-05-18T09:00:00+00:00",
            "2026-05-18T09:00:00.000001-11:30",
            "2026-05-18 09:00:00Z",
            "2026-05-18T09:00+02:00",
            "1880-05-18T09:00:00+00:53:28",
            "1880-05-18T09:00:00+00:53:28.000005",
        ] {
            assert!(is_instant(whole), "{whole}");
        }
        for other in [
            "",
            "yesterday",
            "2026-05-18",
            "2026-05-18T09:00:00",
            "2026-05-18T09:00:00.5",
            "2026-02-30T09:00:00+00:00",
            "2026-05-18T25:00:00+00:00",
            "2026-05-18T09:00:00+",
            "2026-05-18T09:00:00.+00:00",
            "2026-05-18T09:00:00+2",
            "2026-05-18T09:00:00:00+00:00",
            "2026-05-18T+00:00",
            "2026-05-1é09:00:00+00:00",
        ] {
            assert!(!is_instant(other), "{other}");
        }
    }

    #[test]
    fn only_a_number_from_0_to_1_is_a_confidence() {
        for (value, expected) in [
            ("0.25", Some(0.25)),
            ("1", Some(1.0)),
            ("0", Some(0.0)),
            ("1.5", None),
            ("-0.5", None),
            ("true", None),
            ("\"0.5\"", None),
            ("null", None),
        ] {
            assert_eq!(certainty(value.as_bytes()), expected, "{value}");
        }
    }
}
