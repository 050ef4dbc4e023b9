//! Columns with the conversation, speaker, time and previous block of each block.

use super::fields::{number, plain, quoted};
use super::links::Pairs;
use super::names::NumberedNames;
use crate::text::{NamedDays, one_named};
use chronolog::event::stamp::{read_seconds, read_short};

/// No conversation, speaker or block.
const NONE: u32 = u32::MAX;
/// No moment.
const NEVER: i64 = i64::MIN;

/// The same fields as a record contains them.
#[derive(Default)]
pub struct CircumstanceFields<'a> {
    conversation: &'a [u8],
    speaker: &'a [u8],
    previous: &'a [u8],
    time: Option<i64>,
    created: Option<i64>,
}

impl<'a> CircumstanceFields<'a> {
    /// Reads a field of a record, if it is one of these.
    pub fn read(&mut self, key: &[u8], value: &'a [u8]) {
        match key {
            b"conversation" => self.conversation = quoted(value).unwrap_or_default(),
            b"created_at" => self.created = moment(value),
            b"previous" => self.previous = quoted(value).unwrap_or_default(),
            b"speaker" => self.speaker = quoted(value).unwrap_or_default(),
            b"time" => self.time = moment(value),
            _ => {}
        }
    }

    /// The id of the record of the previous block.
    pub fn previous(&self) -> Option<&'a [u8]> {
        Some(self.previous).filter(|id| !id.is_empty())
    }
}

fn moment(value: &[u8]) -> Option<i64> {
    match quoted(value) {
        Some(inner) => read_short(&plain(inner)),
        None => number(value).and_then(|_| read_seconds(std::str::from_utf8(value).ok()?)),
    }
}

/// The circumstances of all blocks, by row.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    conversation: Vec<u32>,
    speaker: Vec<u32>,
    moment: Vec<i64>,
    /// Whether the record states the moment; otherwise it is the time of writing.
    is_stated: Vec<bool>,
    /// The previous block of each.
    previous: Vec<u32>,
    /// The blocks before and after each.
    next_to: Pairs,
    conversations: NumberedNames,
    speakers: NumberedNames,
}

impl Circumstances {
    /// Adds an empty row.
    pub fn add_row(&mut self) {
        self.conversation.push(NONE);
        self.speaker.push(NONE);
        self.moment.push(NEVER);
        self.is_stated.push(false);
        self.previous.push(NONE);
    }

    /// Replaces the circumstances of a block.
    pub fn set(&mut self, row: u32, fields: &CircumstanceFields<'_>, previous: Option<u32>) {
        let at = row as usize;
        let named = |names: &mut NumberedNames, name: &[u8]| match name {
            b"" => NONE,
            name => names.number(&plain(name)),
        };
        self.conversation[at] = named(&mut self.conversations, fields.conversation);
        self.speaker[at] = named(&mut self.speakers, fields.speaker);
        self.moment[at] = fields.time.or(fields.created).unwrap_or(NEVER);
        self.is_stated[at] = fields.time.is_some();
        let new = previous.filter(|&previous| previous != row).unwrap_or(NONE);
        let old = std::mem::replace(&mut self.previous[at], new);
        if old != NONE && old != new && self.previous[old as usize] != row {
            self.next_to.set(row, old, false);
        }
        if new != NONE {
            self.next_to.set(row, new, true);
        }
    }

    /// Whether a block states the time that it is about.
    pub fn states_time(&self, row: u32) -> bool {
        self.is_stated[row as usize]
    }

    /// The time that a block states or was written at, in microseconds since 1970, if known.
    pub fn moment(&self, row: u32) -> Option<i64> {
        Some(self.moment[row as usize]).filter(|&moment| moment != NEVER)
    }

    /// The blocks directly before and after this one in its conversation.
    pub fn next_to(&self, row: u32) -> impl Iterator<Item = u32> {
        self.next_to.of(row)
    }

    /// The place and conversation of each of these rows that belongs to one.
    pub fn groups(&self, rows: &[u32]) -> Vec<(usize, u32)> {
        let conversations = rows.iter().map(|&row| self.conversation[row as usize]);
        conversations.enumerate().filter(|(_, group)| *group != NONE).collect()
    }

    /// The place and closeness of each of these rows whose time is close to one of these days.
    pub fn times(&self, rows: &[u32], days: &NamedDays) -> Vec<(usize, f64)> {
        if days.is_empty() {
            return Vec::new();
        }
        let moments = rows.iter().map(|&row| self.moment[row as usize]).enumerate();
        let close = |(at, moment): (usize, i64)| (moment != NEVER).then(|| (at, days.closeness(moment)));
        moments
            .filter_map(close)
            .filter(|(_, closeness)| *closeness > 0.0)
            .collect()
    }

    /// The places of the rows whose speaker the question names.
    pub fn spoken(&self, rows: &[u32], asked: &[String]) -> Vec<usize> {
        let speakers: std::collections::BTreeSet<u32> = rows
            .iter()
            .map(|&row| self.speaker[row as usize])
            .filter(|&speaker| speaker != NONE)
            .collect();
        let named = one_named(speakers.into_iter().map(|one| (self.speakers.name(one), one)), asked);
        let is_meant = |(_, row): &(usize, &u32)| Some(self.speaker[**row as usize]) == named;
        rows.iter().enumerate().filter(is_meant).map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(conversation: &'static str, speaker: &'static str) -> CircumstanceFields<'static> {
        CircumstanceFields {
            conversation: conversation.as_bytes(),
            speaker: speaker.as_bytes(),
            ..CircumstanceFields::default()
        }
    }

    #[test]
    fn set_replaces_earlier_circumstances() {
        let mut known = Circumstances::default();
        (0..4).for_each(|_| known.add_row());
        known.set(1, &fields("c", "Ann"), Some(0));
        known.set(2, &fields("c", "Bob"), Some(1));
        known.set(3, &fields("", ""), Some(3));
        assert_eq!(known.next_to(1).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(known.next_to(3).count(), 0);
        assert_eq!(known.groups(&[3, 1, 2]), [(1, 0), (2, 0)]);
        assert_eq!(known.spoken(&[3, 1, 2], &["ann".to_owned()]), [1]);
        assert!(known.spoken(&[1, 2], &["ann".to_owned(), "bob".to_owned()]).is_empty());
        assert!(known.spoken(&[2, 3], &["ann".to_owned()]).is_empty());
        known.set(2, &fields("d", "Bob"), None);
        assert_eq!(known.next_to(1).collect::<Vec<_>>(), [0]);
        assert_eq!(known.groups(&[1, 2]), [(0, 0), (1, 1)]);
    }

    #[test]
    fn blocks_stay_neighbours_while_either_names_the_other() {
        let mut known = Circumstances::default();
        (0..2).for_each(|_| known.add_row());
        known.set(0, &fields("", ""), Some(1));
        known.set(1, &fields("", ""), Some(0));
        known.set(0, &fields("", ""), None);
        assert_eq!(known.next_to(0).count(), 1);
        known.set(1, &fields("", ""), None);
        assert_eq!(known.next_to(0).count(), 0);
    }

    #[test]
    fn a_stated_time_replaces_the_time_of_writing() {
        let mut known = Circumstances::default();
        (0..2).for_each(|_| known.add_row());
        let mut one = CircumstanceFields::default();
        one.read(b"created_at", b"\"2026-01-01T00:00:00+00:00\"");
        known.set(0, &one, None);
        one.read(b"time", b"\"2023-05-08\"");
        known.set(1, &one, None);
        let days = NamedDays::of("on 8 May 2023", 0);
        assert_eq!(known.times(&[1], &days), [(0, 1.0)]);
        assert!(
            known
                .times(&[0, 1], &days)
                .iter()
                .all(|&(at, close)| at == 1 || close < 1e-9)
        );
    }
}
