//! Counts the events that a gap of a log has lost.
//!
//! Where the lines on both sides of a gap are of our own form, their sequence numbers tell which events are lost. What a
//! lost event said is never guessed.

use super::gaps::Gap;

/// How many ids of one damaged batch are named.
pub(in crate::store) const MOST_TOLD: usize = 20;

/// Events that could not be restored.
#[derive(Clone, Debug)]
pub(in crate::store) struct Lost {
    /// Where they stood.
    pub offset: u64,
    /// Where that is once the other gaps are filled.
    pub healed_offset: u64,
    /// The first and the last of them, if that is known.
    pub seqs: Option<(u64, u64)>,
    /// What is wrong.
    pub reason: String,
    /// A later line links to the last of them.
    pub is_linked: bool,
}

impl Lost {
    /// What a report says of them.
    pub fn tell(&self) -> String {
        let which = match self.seqs {
            Some((first, last)) => events(first, last),
            None => "an unknown number of events".to_owned(),
        };
        format!("{which} lost at byte {}: {}", self.offset, self.reason)
    }
}

/// Names a range of events.
pub(in crate::store) fn events(first: u64, last: u64) -> String {
    match first == last {
        true => format!("event {first}"),
        false => format!("events {first}–{last}"),
    }
}

impl Gap {
    /// The events that are lost here, with the place that they have in the log as it stands; `None` if all that stands here is
    /// found elsewhere in the chain.
    pub fn lost(&self) -> Option<Lost> {
        let hole = self.hole?;
        let bad: Vec<_> = self.bad.iter().filter(|line| line.is_lost()).collect();
        let between = self.seqs.map(|(before, after)| (before + 1, after.saturating_sub(1)));
        let shown = match bad[..] {
            [line] => line.seq.map(|seq| (seq, seq)),
            _ => None,
        };
        let reason = match bad[..] {
            [] => "the lines are missing".to_owned(),
            [line] => format!("line {} is damaged: {}", line.number, line.reason),
            [first, .., last] => format!(
                "lines {} to {} are damaged, the first because: {}",
                first.number, last.number, first.reason
            ),
        };
        Some(Lost {
            offset: bad.first().map_or(self.start, |line| line.offset),
            healed_offset: 0,
            seqs: between.filter(|(first, last)| first <= last).or(shown),
            reason,
            is_linked: bad.is_empty() || hole.after.is_some() && !self.goes_on_before(),
        })
    }
}
