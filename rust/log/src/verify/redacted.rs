//! Follows the lines of a log that were erased, and checks that they stand in their places.

use std::collections::HashSet;

use crate::chain::LinePlace;
use crate::event::erasure::Erasure;

/// An event that tells of an erasure.
#[derive(Clone, Debug)]
pub struct ErasureSeen {
    /// Which event of its log it is, counted from 0.
    pub index: u64,
    /// Where its line stands.
    pub place: LinePlace,
    /// Its moment, as it is spelled.
    pub ts: String,
    /// What it says.
    pub told: Erasure,
}

/// What is left of lines that were erased.
#[derive(Clone, Debug, Default)]
pub struct RedactedLines {
    /// How many there are.
    pub count: u64,
    /// Where the first one stands.
    pub first: Option<LinePlace>,
    /// Their seqs, as ranges.
    pub ranges: Vec<(u64, u64)>,
    /// The seqs of them less their places, wherever that is another than before.
    steps: Vec<(LinePlace, i128)>,
    /// The same of the other lines; `None` before the first.
    step: Option<i128>,
    /// That is not the same for all of those: other tools' seqs may jump.
    is_jumping: bool,
    /// Where lines stand that count as erased, although they are not yet.
    pub going: HashSet<u64>,
}

impl RedactedLines {
    /// Looks at the next line of a log.
    #[inline]
    pub fn pass(&mut self, place: LinePlace, seq: u64, index: u64, is_redacted: bool) {
        let step = i128::from(seq) - i128::from(index);
        if !is_redacted && (self.going.is_empty() || !self.going.contains(&place.offset)) {
            self.is_jumping |= self.step.is_some_and(|before| before != step);
            self.step = Some(step);
            return;
        }
        self.count += 1;
        self.first.get_or_insert(place);
        match self.ranges.last_mut() {
            Some((_, last)) if *last + 1 == seq => *last = seq,
            _ => self.ranges.push((seq, seq)),
        }
        if self.steps.last().is_none_or(|(_, before)| *before != step) {
            self.steps.push((place, step));
        }
    }

    /// The seqs of the other lines tell what those of the erased ones were.
    pub fn is_steady(&self) -> bool {
        !self.is_jumping
    }

    /// Whether each line has the seq of its place, erased or not.
    pub fn is_even(&self) -> bool {
        self.is_steady() && self.stray().is_none()
    }

    /// Where the first one stands whose seq is not that of its place.
    pub fn stray(&self) -> Option<LinePlace> {
        let step = self.step.or(self.steps.first().map(|(_, step)| *step))?;
        let mut others = self.steps.iter().filter(|(_, other)| *other != step);
        others.next().filter(|_| self.is_steady()).map(|(place, _)| *place)
    }
}
