//! One list of the records that changed, which all who follow the state read from their own watermark.
//!
//! Whatever is derived from the state and kept in memory follows it with a [`Watermark`]: text, embeddings, blocks, indexes,
//! and which rows are on disk. The list does not grow for ever: a follower that is so far behind that the list has begun anew
//! reads the whole state, which is no more work than the list was.

use std::sync::Arc;

use chronolog::memory::Refused;

/// A shorter list is never begun anew.
const LEAST_CHANGES: usize = 64 * 1024;
/// The list is begun anew when it is so many times as long as there are records.
const LONGEST_LIST: usize = 2;

/// The slots that events touched, in order, and whose changes these are.
#[derive(Debug, Default)]
pub struct Changes {
    state_id: StateId,
    /// How many were forgotten.
    forgotten: usize,
    slots: Vec<u32>,
}

/// Identifies one state from its loading to its end: numbers of slots and changes mean nothing in another one.
#[derive(Clone, Debug, Default)]
pub struct StateId(Arc<()>);

impl PartialEq for StateId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What somebody sees, at one moment of one state: two of these differ if any of it changed in between.
#[derive(Debug, PartialEq)]
pub struct Edition {
    pub(super) state_id: StateId,
    /// The number of the last change of any of it.
    pub(super) changes: usize,
}

/// How far a follower knows a state; at first not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watermark(Option<(StateId, usize)>);

impl Watermark {
    /// Whether this state is another one, or has gone on.
    pub fn is_behind(&self, changes: &Changes) -> bool {
        let is_it = |(state_id, count): &(StateId, usize)| *state_id == changes.state_id && *count == changes.count();
        !self.0.as_ref().is_some_and(is_it)
    }

    /// Whether this is the state that is known: only then slots mean the same.
    pub fn is_of(&self, state_id: &StateId) -> bool {
        self.0.as_ref().is_some_and(|(own, _)| own == state_id)
    }

    /// Whether these are places in one state.
    pub fn is_of_same_state(&self, other: &Self) -> bool {
        other.0.as_ref().is_some_and(|(state_id, _)| self.is_of(state_id))
    }

    /// Of two places in one state the one that knows less.
    pub fn earlier<'a>(&'a self, other: &'a Self) -> &'a Self {
        if self.is_before(other) { self } else { other }
    }

    /// Whether the other place knows more, or another state.
    pub fn is_before(&self, other: &Self) -> bool {
        let count = |mark: &Self| mark.0.as_ref().map(|(_, count)| *count);
        other.0.is_some() && (!self.is_of_same_state(other) || count(self) < count(other))
    }
}

impl Changes {
    /// Notes a change in a state of so many slots.
    #[inline]
    pub(super) fn note(&mut self, slot: u32, slots: usize) {
        if self.slots.len() >= LEAST_CHANGES.max(LONGEST_LIST * slots) {
            self.forgotten += self.slots.len();
            self.slots.clear();
        }
        self.slots.push(slot);
    }

    pub(super) fn make_room(&mut self, events: usize) -> Result<(), Refused> {
        Ok(self.slots.try_reserve(events)?)
    }

    /// Whose changes these are.
    pub fn state_id(&self) -> &StateId {
        &self.state_id
    }

    /// Where one is who knows everything.
    pub fn watermark(&self) -> Watermark {
        Watermark(Some((self.state_id.clone(), self.count())))
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.forgotten + self.slots.len()
    }

    /// The slots that were touched since then, some perhaps several times; `None` if the whole state is to be read.
    pub fn since(&self, mark: &Watermark) -> Option<&[u32]> {
        let (_, known) = mark.0.as_ref().filter(|(state_id, _)| *state_id == self.state_id)?;
        self.slots.get(known.checked_sub(self.forgotten)?..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_far_behind_hears_what_changed() {
        let mut changes = Changes::default();
        assert_eq!(changes.since(&Watermark::default()), None);
        let start = changes.watermark();
        assert!(!start.is_behind(&changes));
        for slot in [7, 8, 7] {
            changes.note(slot, 10);
        }
        assert!(start.is_behind(&changes));
        assert_eq!(changes.since(&start), Some(&[7, 8, 7][..]));
        assert_eq!(changes.since(&changes.watermark()), Some(&[][..]));
        assert_eq!(Changes::default().since(&start), None);
    }

    #[test]
    fn places_are_told_apart() {
        let (nowhere, mut changes) = (Watermark::default(), Changes::default());
        let start = changes.watermark();
        changes.note(7, 10);
        let later = changes.watermark();
        assert!(start.is_before(&later) && !later.is_before(&start) && !later.is_before(&later));
        assert!(nowhere.is_before(&start) && !start.is_before(&nowhere));
        assert!(later != start && nowhere == Watermark::default() && nowhere != start);
        let other = Changes::default().watermark();
        assert!(later.is_before(&other));
        assert!(
            later.is_of_same_state(&start) && !later.is_of_same_state(&other) && !nowhere.is_of_same_state(&nowhere)
        );
        assert!(*start.earlier(&later) == start && *later.earlier(&start) == start);
    }

    #[test]
    fn who_is_far_behind_reads_everything() {
        let mut changes = Changes::default();
        let start = changes.watermark();
        (0..LEAST_CHANGES).for_each(|_| changes.note(1, 10));
        assert_eq!(changes.since(&start).map(<[u32]>::len), Some(LEAST_CHANGES));
        let middle = changes.watermark();
        changes.note(2, 10);
        assert_eq!(changes.since(&start), None);
        assert_eq!(changes.since(&middle), Some(&[2][..]));
        assert_eq!(changes.count(), LEAST_CHANGES + 1);
        assert!(changes.slots.len() < LEAST_CHANGES);
    }
}
