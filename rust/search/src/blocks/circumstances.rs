//! Columns that say in which conversation a block was said, by whom, when, and after which other.

use super::fields::{number, plain, quoted};
use super::links::Pairs;
use super::names::NumberedNames;
use crate::text::{NamedDays, one_named};
use chronolog::event::stamp::{read_seconds, read_short};

/// No conversation, nobody, or no block.
const NONE: u32 = u32::MAX;
/// No moment.
const NEVER: i64 = i64::MIN;

/// What a record says of it.
#[derive(Default)]
pub struct SaidCircumstances<'a> {
    conversation: &'a [u8],
    speaker: &'a [u8],
    previous: &'a [u8],
    time: Option<i64>,
    created: Option<i64>,
}

impl<'a> SaidCircumstances<'a> {
    /// Takes a field of a record in, if it is one of these.
    pub fn see(&mut self, key: &[u8], value: &'a [u8]) {
        match key {
            b"conversation" => self.conversation = quoted(value).unwrap_or_default(),
            b"created_at" => self.created = moment(value),
            b"previous" => self.previous = quoted(value).unwrap_or_default(),
            b"speaker" => self.speaker = quoted(value).unwrap_or_default(),
            b"time" => self.time = moment(value),
            _ => {}
        }
    }

    /// The id of the record that it was said after.
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

/// The same of all blocks, by their rows.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    conversation: Vec<u32>,
    speaker: Vec<u32>,
    moment: Vec<i64>,
    /// Whether the moment was stated; else it is that of the writing.
    is_stated: Vec<bool>,
    /// The block that each was said after.
    before: Vec<u32>,
    next_to: Pairs,
    conversations: NumberedNames,
    speakers: NumberedNames,
}

impl Circumstances {
    /// Makes room for one more block.
    pub fn add_row(&mut self) {
        self.conversation.push(NONE);
        self.speaker.push(NONE);
        self.moment.push(NEVER);
        self.is_stated.push(false);
        self.before.push(NONE);
    }

    /// Says what is known of a block now, and which one it was said after.
    pub fn set(&mut self, row: u32, said: &SaidCircumstances<'_>, previous: Option<u32>) {
        let at = row as usize;
        let named = |names: &mut NumberedNames, name: &[u8]| match name {
            b"" => NONE,
            name => names.number(&plain(name)),
        };
        self.conversation[at] = named(&mut self.conversations, said.conversation);
        self.speaker[at] = named(&mut self.speakers, said.speaker);
        self.moment[at] = said.time.or(said.created).unwrap_or(NEVER);
        self.is_stated[at] = said.time.is_some();
        let new = previous.filter(|&previous| previous != row).unwrap_or(NONE);
        let old = std::mem::replace(&mut self.before[at], new);
        if old != NONE && old != new && self.before[old as usize] != row {
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

    /// The moment that a block is about or was made at, in microseconds since 1970, if one is known.
    pub fn moment(&self, row: u32) -> Option<i64> {
        Some(self.moment[row as usize]).filter(|&moment| moment != NEVER)
    }

    /// The blocks that were said right before or after this one.
    pub fn next_to(&self, row: u32) -> impl Iterator<Item = u32> {
        self.next_to.of(row)
    }

    /// The conversations of those of these blocks that are of one, by their places.
    pub fn groups(&self, rows: &[u32]) -> Vec<(usize, u32)> {
        let conversations = rows.iter().map(|&row| self.conversation[row as usize]);
        conversations.enumerate().filter(|(_, group)| *group != NONE).collect()
    }

    /// How close these blocks are to days, by their places; those that are not far off.
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

    /// The places of those of these blocks that are said by the one whom a question names.
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

    fn said(conversation: &'static str, speaker: &'static str) -> SaidCircumstances<'static> {
        SaidCircumstances {
            conversation: conversation.as_bytes(),
            speaker: speaker.as_bytes(),
            ..SaidCircumstances::default()
        }
    }

    #[test]
    fn what_is_said_anew_takes_the_place_of_what_was() {
        let mut known = Circumstances::default();
        (0..4).for_each(|_| known.add_row());
        known.set(1, &said("c", "Ann"), Some(0));
        known.set(2, &said("c", "Bob"), Some(1));
        known.set(3, &said("", ""), Some(3));
        assert_eq!(known.next_to(1).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(known.next_to(3).count(), 0);
        assert_eq!(known.groups(&[3, 1, 2]), [(1, 0), (2, 0)]);
        assert_eq!(known.spoken(&[3, 1, 2], &["ann".to_owned()]), [1]);
        assert!(known.spoken(&[1, 2], &["ann".to_owned(), "bob".to_owned()]).is_empty());
        assert!(known.spoken(&[2, 3], &["ann".to_owned()]).is_empty());
        known.set(2, &said("d", "Bob"), None);
        assert_eq!(known.next_to(1).collect::<Vec<_>>(), [0]);
        assert_eq!(known.groups(&[1, 2]), [(0, 0), (1, 1)]);
    }

    #[test]
    fn two_that_name_each_other_stay_together_until_neither_does() {
        let mut known = Circumstances::default();
        (0..2).for_each(|_| known.add_row());
        known.set(0, &said("", ""), Some(1));
        known.set(1, &said("", ""), Some(0));
        known.set(0, &said("", ""), None);
        assert_eq!(known.next_to(0).count(), 1);
        known.set(1, &said("", ""), None);
        assert_eq!(known.next_to(0).count(), 0);
    }

    #[test]
    fn the_time_that_is_told_comes_before_that_of_writing() {
        let mut known = Circumstances::default();
        (0..2).for_each(|_| known.add_row());
        let mut one = SaidCircumstances::default();
        one.see(b"created_at", b"\"2026-01-01T00:00:00+00:00\"");
        known.set(0, &one, None);
        one.see(b"time", b"\"2023-05-08\"");
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
