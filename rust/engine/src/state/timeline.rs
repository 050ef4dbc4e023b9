//! Which events speak of a record, and where in the log does an event stand?

/// No event.
const NONE: u32 = u32::MAX;

/// All events of the log in order, each with the one before it that speaks of the same record.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    offsets: Vec<u64>,
    earlier: Vec<u32>,
    /// Runs of consecutive seqs: (index of the first event, its seq).
    runs: Vec<(u32, u64)>,
    next_seq: u64,
}

impl Timeline {
    /// Notes an event; `earlier` is the record's last event so far. Gives the event's index.
    pub fn push(&mut self, offset: u64, seq: u64, earlier: Option<u32>) -> u32 {
        let index = self.offsets.len() as u32;
        if self.runs.is_empty() || seq != self.next_seq {
            self.runs.push((index, seq));
        }
        self.next_seq = seq + 1;
        self.offsets.push(offset);
        self.earlier.push(earlier.unwrap_or(NONE));
        index
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Where an event's line begins.
    pub fn offset(&self, index: usize) -> Option<u64> {
        self.offsets.get(index).copied()
    }

    /// The seq of an event.
    pub fn seq(&self, index: u32) -> u64 {
        let run = self.runs.partition_point(|&(first, _)| first <= index);
        match run.checked_sub(1).map(|at| self.runs[at]) {
            Some((first, seq)) => seq + u64::from(index - first),
            None => 0,
        }
    }

    /// Whether seqs only rise, so that a seq says what came later.
    pub fn is_rising(&self) -> bool {
        self.runs
            .is_sorted_by(|one, other| one.1 + u64::from(other.0 - one.0) <= other.1)
    }

    /// The event of a seq in a log whose seqs only rise.
    pub fn index_of(&self, seq: u64) -> Option<u32> {
        let run = self
            .runs
            .partition_point(|&(_, first_seq)| first_seq <= seq)
            .checked_sub(1)?;
        let (first, first_seq) = self.runs[run];
        let index = u64::from(first) + (seq - first_seq);
        let end = self
            .runs
            .get(run + 1)
            .map_or(self.len() as u64, |next| u64::from(next.0));
        (index < end).then_some(index as u32)
    }

    /// The first event whose line does not begin before a place in the log.
    pub fn index_from(&self, offset: u64) -> u32 {
        self.offsets.partition_point(|&start| start < offset) as u32
    }

    /// The events of a record whose last one is `last`, oldest first.
    pub fn back_from(&self, last: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = last;
        while at != NONE {
            found.push(at);
            at = self.earlier[at as usize];
        }
        found.reverse();
        found
    }

    /// Whether events of this seq may have been there before the first one of this log.
    pub fn begins_after(&self, seq: u64) -> bool {
        self.runs.first().is_some_and(|&(_, first)| first > seq)
    }

    /// The ranges of events whose seq is at least `seq`. A log whose seqs only rise has one such range.
    pub fn since(&self, seq: u64) -> Vec<std::ops::Range<usize>> {
        let mut found: Vec<std::ops::Range<usize>> = Vec::new();
        for (at, &(first, first_seq)) in self.runs.iter().enumerate() {
            let first = first as usize;
            let end = self.runs.get(at + 1).map_or(self.len(), |run| run.0 as usize);
            let skip = usize::try_from(seq.saturating_sub(first_seq)).unwrap_or(usize::MAX);
            let start = first.saturating_add(skip);
            if start < end {
                found.push(start..end);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[test]
    fn events_are_found_by_record_and_by_seq() {
        let mut timeline = Timeline::default();
        let first = timeline.push(0, 5, None);
        timeline.push(100, 6, None);
        let last = timeline.push(200, 7, Some(first));
        timeline.push(300, 20, None);
        assert_eq!(timeline.back_from(last), [0, 2]);
        assert_eq!(timeline.since(6), [1..3, 3..4]);
        assert_eq!(timeline.since(8), vec![Range { start: 3, end: 4 }]);
        assert!(timeline.since(21).is_empty());
        assert_eq!(timeline.offset(3), Some(300));
        assert_eq!([0, 2, 3].map(|index| timeline.seq(index)), [5, 7, 20]);
        assert_eq!(
            [4, 5, 7, 8, 20, 21].map(|seq| timeline.index_of(seq)),
            [None, Some(0), Some(2), None, Some(3), None]
        );
    }

    #[test]
    fn a_log_of_another_tool_may_count_back() {
        let mut timeline = Timeline::default();
        [5, 6, 9].into_iter().for_each(|seq| _ = timeline.push(0, seq, None));
        assert!(timeline.is_rising());
        timeline.push(0, 9, None);
        assert!(!timeline.is_rising());
    }
}
