//! Leads from a record to its events, and from an event to its place in the log.

use std::collections::HashMap;
use std::sync::Arc;

use crate::segment::{EventRow, NO_EVENT as NONE, SEVERAL, Sealed, SegmentDraft};
use chronolog::memory::Refused;

/// Marks are given out anew from the beginning when an earlier log has come this far.
const LAST_START: u64 = 1 << 31;

/// Stands for one event of the live log. When the log starts over, all marks mean nothing, without anyone taking them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMark(u32);

impl EventMark {
    /// For a record that no event of the live log speaks of.
    pub const NONE: Self = Self(NONE);

    /// Of the event with an index in a log whose first event has a mark.
    pub(super) fn of_index(first_mark: Option<u32>, index: Option<u32>) -> Self {
        let mark = first_mark.zip(index).map(|(first, index)| first + index);
        mark.map_or(Self::NONE, Self)
    }
}

/// One of several records that an event speaks of.
#[derive(Clone, Copy, Debug)]
struct Further {
    event: u32,
    slot: u32,
    earlier: u32,
}

/// All events of the log in order, each with its record and the event before it that speaks of the same one.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Segments that hold the first events.
    sealed: Option<Arc<Sealed>>,
    /// Slots of mere mentions in sealed events, and the slots of their records.
    renamed: HashMap<u32, u32>,
    /// The offset of each event behind the sealed ones.
    offsets: Vec<u64>,
    earlier: Vec<u32>,
    slots: Vec<u32>,
    /// The records of events that speak of several, in the order of the events.
    further: Vec<Further>,
    /// What the mark of the first event is.
    first_mark: u32,
    /// Runs of consecutive seqs: (index of the first event, its seq).
    runs: Vec<(u32, u64)>,
    next_seq: u64,
}

impl Timeline {
    /// Asks for the memory that so many events need, and those of them that speak of several records for so many further ones.
    pub fn make_room(&mut self, events: usize, further: usize) -> Result<(), Refused> {
        self.offsets.try_reserve(events)?;
        self.earlier.try_reserve(events)?;
        self.further.try_reserve(further)?;
        Ok(self.slots.try_reserve(events)?)
    }

    /// Notes an event, the slot of the record that it speaks of, and what marks the last event that did so.
    pub fn push(&mut self, offset: u64, seq: u64, about: Option<(u32, EventMark)>) -> EventMark {
        let index = self.len() as u32;
        if self.runs.is_empty() || seq != self.next_seq {
            self.runs.push((index, seq));
        }
        self.next_seq = seq + 1;
        self.offsets.push(offset);
        let (slot, earlier) = about.map_or((NONE, None), |(slot, last)| (slot, self.index(last)));
        self.slots.push(slot);
        self.earlier.push(earlier.unwrap_or(NONE));
        EventMark(self.first_mark + index)
    }

    /// Notes an event that speaks of several records, each given once as its slot and what marks the last event that did so.
    pub fn push_several(&mut self, offset: u64, seq: u64, about: impl Iterator<Item = (u32, EventMark)>) -> EventMark {
        let mark = self.push(offset, seq, None);
        let event = self.len() as u32 - 1;
        for (slot, last) in about {
            let earlier = self.index(last).unwrap_or(NONE);
            self.further.push(Further { event, slot, earlier });
            let last = self.slots.len() - 1;
            self.slots[last] = SEVERAL;
        }
        mark
    }

    /// What events up to a marked one said of a slot is said of another now.
    pub fn rename(&mut self, last: EventMark, slot: u32, new: u32) {
        let mut at = self.index(last).unwrap_or(NONE);
        while at != NONE {
            let place = self.place_in_further(at, slot);
            let is_sealed = at < self.sealed_len();
            at = self.before(at, slot);
            if let Some(place) = place {
                self.further[place].slot = new;
            }
            if is_sealed {
                self.renamed.insert(slot, new);
            }
        }
    }

    /// The slot that a sealed event names, as it is called now.
    fn renamed(&self, slot: u32) -> u32 {
        self.renamed.get(&slot).copied().unwrap_or(slot)
    }

    /// How many events are sealed.
    pub fn sealed_len(&self) -> u32 {
        self.sealed.as_ref().map_or(0, |sealed| sealed.events())
    }

    /// An event behind the sealed ones, by its index.
    fn local(&self, index: u32) -> usize {
        (index - self.sealed_len()) as usize
    }

    /// One event.
    fn event(&self, index: u32) -> EventRow {
        match &self.sealed {
            Some(sealed) if index < sealed.events() => sealed.event(index),
            _ => {
                let at = self.local(index);
                EventRow {
                    offset: self.offsets[at],
                    slot: self.slots[at],
                    earlier: self.earlier[at],
                }
            }
        }
    }

    /// Whether an event is the same in another timeline of the same log.
    pub(super) fn is_same_event(&self, other: &Self, index: u32) -> bool {
        let (one, another) = (self.event(index), other.event(index));
        let further = |timeline: &Self| match &timeline.sealed {
            Some(sealed) if index < sealed.events() => {
                let found = sealed.segment_of_event(index).further_of(index);
                found
                    .map(|[_, slot, earlier]| (timeline.renamed(slot), earlier))
                    .collect::<Vec<_>>()
            }
            _ => {
                let first = timeline.further.partition_point(|one| one.event < index);
                let found = timeline.further[first..].iter().take_while(|one| one.event == index);
                found.map(|one| (one.slot, one.earlier)).collect()
            }
        };
        one == another
            && (one.slot != SEVERAL || further(self) == further(other))
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
            for (index, seq) in segment.runs() {
                let last = timeline.runs.last();
                let goes_on = last.is_some_and(|(first, start)| start + u64::from(index - first) == seq);
                if !goes_on {
                    timeline.runs.push((index, seq));
                }
            }
            timeline
                .renamed
                .extend(segment.renames().into_iter().map(|[old, new]| (old, new)));
        }
        timeline
    }

    /// Takes other segments, which hold all events up to a later one.
    pub(super) fn adopt(&mut self, sealed: &Arc<Sealed>) {
        let more = (sealed.events().saturating_sub(self.sealed_len()) as usize).min(self.offsets.len());
        self.offsets.drain(..more);
        self.earlier.drain(..more);
        self.slots.drain(..more);
        self.further.retain(|one| one.event >= sealed.events());
        self.offsets.shrink_to_fit();
        self.earlier.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.sealed = Some(Arc::clone(sealed));
    }

    /// Puts the events behind the sealed ones into a segment: the records of events about several, the runs of seqs and the renamed slots
    /// too.
    pub(super) fn add_unsealed(&self, draft: &mut SegmentDraft) {
        let first = self.sealed_len();
        draft
            .events
            .extend((first..self.len() as u32).map(|index| self.event(index)));
        draft
            .further
            .extend(self.further.iter().map(|one| [one.event, one.slot, one.earlier]));
        draft.runs.push((first, self.seq(first)));
        draft.runs.extend(self.runs.iter().filter(|(index, _)| *index > first));
        draft.renames.extend(self.renamed.iter().map(|(old, new)| [*old, *new]));
    }

    /// The seq that would come next.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The mark of the first event.
    pub(super) fn first_mark(&self) -> u32 {
        self.first_mark
    }

    /// Which event a mark stands for, as a segment keeps it.
    pub(super) fn index_or_none(&self, mark: EventMark) -> u32 {
        self.index(mark).unwrap_or(NONE)
    }

    /// The event before this one that speaks of the same record.
    fn before(&self, index: u32, slot: u32) -> u32 {
        match &self.sealed {
            Some(sealed) if index < sealed.events() => {
                sealed.before(index, |other| other == slot || self.renamed(other) == slot)
            }
            _ => match self.place_in_further(index, slot) {
                Some(place) => self.further[place].earlier,
                None => self.earlier[self.local(index)],
            },
        }
    }

    fn place_in_further(&self, index: u32, slot: u32) -> Option<usize> {
        if index < self.sealed_len() || self.slots[self.local(index)] != SEVERAL {
            return None;
        }
        let first = self.further.partition_point(|one| one.event < index);
        let here = self.further[first..].iter().take_while(|one| one.event == index);
        here.into_iter().position(|one| one.slot == slot).map(|at| first + at)
    }

    /// Which event a mark stands for; `None` if it is not of this log.
    pub fn index(&self, mark: EventMark) -> Option<u32> {
        let index = mark.0.checked_sub(self.first_mark)?;
        ((index as usize) < self.len()).then_some(index)
    }

    /// Forgets all events; false if marks that are still about have to be taken back.
    #[must_use]
    pub fn start_over(&mut self) -> bool {
        let next = u64::from(self.first_mark) + self.len() as u64;
        let goes_on = next <= LAST_START;
        *self = Self {
            first_mark: if goes_on { next as u32 } else { 0 },
            ..Self::default()
        };
        goes_on
    }

    /// The slots that events from some index on speak of, some perhaps several times.
    pub fn slots_from(&self, index: u32) -> impl Iterator<Item = u32> {
        let first = self.further.partition_point(|one| one.event < index);
        let further = self.further[first..].iter().map(|one| one.slot);
        let events = (index..self.len() as u32).map(|index| (index, self.event(index).slot));
        let sealed = self.sealed.iter().flat_map(move |sealed| {
            let several = (index..sealed.events()).filter(|&index| sealed.event(index).slot == SEVERAL);
            let slots = several.flat_map(|index| sealed.segment_of_event(index).further_of(index));
            slots.map(|[_, slot, _]| self.renamed(slot))
        });
        let single = events
            .map(|(_, slot)| slot)
            .filter(|&slot| slot != NONE && slot != SEVERAL);
        single.chain(further).chain(sealed)
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.sealed_len() as usize + self.offsets.len()
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
        let (mut low, mut high) = (0, self.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            match self.event(middle).offset < offset {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The events of the record in a slot whose last one is marked, oldest first.
    pub fn back_from(&self, slot: u32, last: EventMark) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = self.index(last).unwrap_or(NONE);
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

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[test]
    fn events_are_found_by_record_and_by_seq() {
        let mut timeline = Timeline::default();
        let first = timeline.push(0, 5, Some((8, EventMark::NONE)));
        timeline.push(100, 6, None);
        let last = timeline.push(200, 7, Some((8, first)));
        timeline.push(300, 20, Some((9, EventMark::NONE)));
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
        let one = timeline.push(0, 1, Some((1, EventMark::NONE)));
        let both = timeline.push_several(10, 2, [(1, one), (2, EventMark::NONE)].into_iter());
        let nobody = timeline.push_several(20, 3, std::iter::empty());
        let again = timeline.push_several(30, 4, [(2, both), (3, EventMark::NONE)].into_iter());
        let last = timeline.push(40, 5, Some((2, again)));
        assert_eq!(timeline.back_from(1, both), [0, 1]);
        assert_eq!(timeline.back_from(2, last), [1, 3, 4]);
        assert_eq!(timeline.back_from(3, again), [3]);
        assert_eq!(timeline.index(nobody), Some(2));
        assert_eq!(timeline.slots_from(2).collect::<Vec<_>>(), [2, 2, 3]);
        assert_eq!(timeline.since(2), vec![Range { start: 1, end: 5 }]);
        // What was only spoken of becomes a record, under another number.
        timeline.rename(again, 3, 9);
        timeline.rename(last, 2, 8);
        assert_eq!(timeline.back_from(9, again), [3]);
        assert_eq!(timeline.back_from(8, last), [1, 3, 4]);
        assert_eq!(timeline.back_from(1, both), [0, 1]);
    }

    #[test]
    fn marks_of_an_earlier_log_mean_nothing() {
        let mut timeline = Timeline::default();
        let old = timeline.push(0, 1, Some((0, EventMark::NONE)));
        assert!(timeline.start_over());
        let new = timeline.push(0, 2, Some((0, old)));
        assert_eq!(
            [old, new, EventMark::NONE].map(|mark| timeline.index(mark)),
            [None, Some(0), None]
        );
        assert_eq!(timeline.back_from(0, new), [0]);
        timeline.first_mark = LAST_START as u32;
        assert!(!timeline.start_over());
        assert_eq!(timeline.push(0, 3, None), EventMark(0));
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
