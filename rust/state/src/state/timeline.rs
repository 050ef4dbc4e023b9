//! Leads from a record to its events, and from an event to its place in the log.

use std::collections::HashMap;
use std::sync::Arc;

use crate::first_in;
use crate::segment::{EventRow, NO_EVENT as NONE, SEVERAL, Sealed, SegmentDraft, add_runs};
use chronolog::memory::Refused;

/// All events of the log in order, each with its record and the event before it that speaks of the same one.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Segments that hold the first events.
    sealed: Option<Arc<Sealed>>,
    /// Slots of mentions whose id got another slot: that slot, and the event that wrote its record.
    renamed: HashMap<u32, (u32, u32)>,
    /// The events behind the sealed ones.
    events: Vec<EventRow>,
    /// The records of those that are about several, in their order: event, slot, and the event before it about that record.
    further: Vec<[u32; 3]>,
    /// Runs of consecutive seqs: (index of the first event, its seq).
    pub(super) runs: Vec<(u32, u64)>,
    pub(super) next_seq: u64,
}

impl Timeline {
    /// Asks for the memory that so many events need, and those of them that are about several records for so many further ones.
    pub fn make_room(&mut self, events: usize, further: usize) -> Result<(), Refused> {
        self.further.try_reserve(further)?;
        Ok(self.events.try_reserve(events)?)
    }

    /// Adds an event, the slot of the record that it is about, and the last event about that one; returns its index.
    pub fn push(&mut self, offset: u64, seq: u64, about: Option<(u32, u32)>) -> u32 {
        let index = self.len() as u32;
        if self.runs.is_empty() || seq != self.next_seq {
            self.runs.push((index, seq));
        }
        self.next_seq = seq + 1;
        let (slot, earlier) = about.unwrap_or((NONE, NONE));
        self.events.push(EventRow { offset, slot, earlier });
        index
    }

    /// Adds an event about several records, each given once as its slot and the last event about it.
    pub fn push_several(&mut self, offset: u64, seq: u64, about: impl Iterator<Item = (u32, u32)>) -> u32 {
        let first = self.further.len();
        let event = self.len() as u32;
        self.further.extend(about.map(|(slot, earlier)| [event, slot, earlier]));
        let slot = if self.further.len() > first { SEVERAL } else { NONE };
        self.push(offset, seq, Some((slot, NONE)))
    }

    /// The next event gives the id of a slot another one: earlier events about the old slot are about the new one.
    pub fn rename(&mut self, slot: u32, new: u32) {
        self.renamed.insert(slot, (new, self.len() as u32));
    }

    /// The slot that an id has now which had this one when an event was written.
    fn renamed(&self, slot: u32) -> u32 {
        self.renamed.get(&slot).map_or(slot, |(new, _)| *new)
    }

    /// How many events are sealed.
    pub fn sealed_len(&self) -> u32 {
        self.sealed.as_ref().map_or(0, |sealed| sealed.events())
    }

    fn event(&self, index: u32) -> EventRow {
        match &self.sealed {
            Some(sealed) if index < sealed.events() => sealed.event(index),
            _ => self.events[(index - self.sealed_len()) as usize],
        }
    }

    /// Whether an event is the same in another timeline of the same log.
    pub(super) fn is_same_event(&self, other: &Self, index: u32) -> bool {
        let event = self.event(index);
        event == other.event(index)
            && (event.slot != SEVERAL || self.further_of(index) == other.further_of(index))
            && self.seq(index) == other.seq(index)
    }

    /// A timeline behind sealed events.
    pub(super) fn behind(sealed: &Arc<Sealed>) -> Self {
        let mut timeline = Self {
            sealed: Some(Arc::clone(sealed)),
            next_seq: sealed.head().map_or(0, |head| head.next_seq),
            ..Self::default()
        };
        for segment in sealed.segments() {
            add_runs(&mut timeline.runs, segment.runs());
            let first = segment.head().from;
            let renames = segment.renames().into_iter();
            timeline.renamed.extend(renames.map(|[old, new]| (old, (new, first))));
        }
        timeline
    }

    /// Takes other segments, which hold all events up to a later one.
    pub(super) fn adopt(&mut self, sealed: &Arc<Sealed>) {
        let more = (sealed.events().saturating_sub(self.sealed_len()) as usize).min(self.events.len());
        self.events.drain(..more);
        self.events.shrink_to_fit();
        self.further.retain(|[event, ..]| *event >= sealed.events());
        self.sealed = Some(Arc::clone(sealed));
    }

    /// Puts the events behind the sealed ones into a segment, with their further records, runs of seqs and renamed slots.
    pub(super) fn add_unsealed(&self, draft: &mut SegmentDraft) {
        let first = self.sealed_len();
        draft.events.extend_from_slice(&self.events);
        draft.further.extend_from_slice(&self.further);
        draft
            .runs
            .extend((!self.events.is_empty()).then(|| (first, self.seq(first))));
        draft.runs.extend(self.runs.iter().filter(|(index, _)| *index > first));
        let renames = self.renamed.iter().filter(|(_, (_, event))| *event >= first);
        draft.renames.extend(renames.map(|(old, (new, _))| [*old, *new]));
        draft.renames.sort_unstable();
    }

    /// The event before this one that speaks of the same record.
    fn before(&self, index: u32, slot: u32) -> u32 {
        let event = self.event(index);
        if event.slot != SEVERAL {
            return event.earlier;
        }
        let mut further = self.further_of(index).into_iter();
        let found = further.find(|[_, other, _]| *other == slot);
        found.map_or(NONE, |[.., earlier]| earlier)
    }

    /// The records of one event about several, by the slots that they have now.
    fn further_of(&self, index: u32) -> Vec<[u32; 3]> {
        let mut found: Vec<[u32; 3]> = match &self.sealed {
            Some(sealed) if index < sealed.events() => sealed.segment_of_event(index).further_of(index).collect(),
            _ => {
                let first = self.further.partition_point(|[event, ..]| *event < index);
                let further = self.further[first..].iter();
                further.take_while(|[event, ..]| *event == index).copied().collect()
            }
        };
        found.iter_mut().for_each(|[_, slot, _]| *slot = self.renamed(*slot));
        found
    }

    /// The slots that events from some index on speak of, some perhaps several times.
    pub fn slots_from(&self, index: u32) -> impl Iterator<Item = u32> {
        let slots = (index..self.len() as u32).map(|index| (index, self.event(index).slot));
        slots.filter(|(_, slot)| *slot != NONE).flat_map(|(index, slot)| {
            let further = (slot == SEVERAL).then(|| self.further_of(index));
            let single = (slot != SEVERAL).then(|| self.renamed(slot));
            let further = further.into_iter().flatten().map(|[_, slot, _]| slot);
            single.into_iter().chain(further)
        })
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.sealed_len() as usize + self.events.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where an event's line begins.
    pub fn offset(&self, index: usize) -> Option<u64> {
        (index < self.len()).then(|| self.event(index as u32).offset)
    }

    /// The seq of an event.
    pub fn seq(&self, index: u32) -> u64 {
        seq_in(&self.runs, index)
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
        first_in(0..self.len() as u32, |index| self.event(index).offset < offset)
    }

    /// The events of the record in a slot up to its last one, oldest first.
    pub fn back_from(&self, slot: u32, last: u32) -> Vec<u32> {
        let (mut found, mut at) = (Vec::new(), last);
        while at != NONE {
            found.push(at);
            at = self.before(at, slot);
        }
        found.reverse();
        found
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

/// The seq of an event in runs of consecutive seqs.
pub(super) fn seq_in(runs: &[(u32, u64)], index: u32) -> u64 {
    let run = runs.partition_point(|&(first, _)| first <= index);
    let run = run.checked_sub(1).map(|at| runs[at]);
    run.map_or(0, |(first, seq)| seq + u64::from(index - first))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[test]
    fn events_are_found_by_record_and_by_seq() {
        let mut timeline = Timeline::default();
        let first = timeline.push(0, 5, Some((8, NONE)));
        timeline.push(100, 6, None);
        let last = timeline.push(200, 7, Some((8, first)));
        timeline.push(300, 20, Some((9, NONE)));
        assert_eq!(timeline.back_from(8, last), [0, 2]);
        assert_eq!(timeline.slots_from(1).collect::<Vec<_>>(), [8, 9]);
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
    fn an_event_of_several_records_stands_in_the_history_of_each() {
        let mut timeline = Timeline::default();
        let one = timeline.push(0, 1, Some((1, NONE)));
        let both = timeline.push_several(10, 2, [(1, one), (2, NONE)].into_iter());
        timeline.push_several(20, 3, std::iter::empty());
        let again = timeline.push_several(30, 4, [(2, both), (3, NONE)].into_iter());
        let last = timeline.push(40, 5, Some((2, again)));
        assert_eq!(timeline.back_from(1, both), [0, 1]);
        assert_eq!(timeline.back_from(2, last), [1, 3, 4]);
        assert_eq!(timeline.back_from(3, again), [3]);
        assert_eq!(timeline.slots_from(2).collect::<Vec<_>>(), [2, 3, 2]);
        assert_eq!(timeline.since(2), vec![Range { start: 1, end: 5 }]);
        // What was only spoken of becomes a record, under another number.
        timeline.rename(3, 9);
        timeline.rename(2, 8);
        assert_eq!(timeline.back_from(9, again), [3]);
        assert_eq!(timeline.back_from(8, last), [1, 3, 4]);
        assert_eq!(timeline.back_from(1, both), [0, 1]);
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
