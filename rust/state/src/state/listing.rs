//! Lists records in an order, page by page, and tells where a page ended.
//!
//! Records that agree in what they are ordered by come in the order in which they were made, which is that of their slots.
//! So a page ends at a key and at the event that made its last record. No id is part of that: a cursor outlives an erasure.

use std::io;

use super::query::Query;
use super::records::State;
use super::restated::Place;
use crate::condition::key::spell;
use crate::first_in;
use chronolog::error::{Error, Result};
use chronolog::memory::{Refused, gathered};
use chronolog::ordered::in_order;

/// A thread takes so many records at a time: more than one such piece is worth another thread.
const RANKED_AT_ONCE: usize = 16_384;

/// What records are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The event that made them.
    #[default]
    Created,
    /// The last event that spoke of them.
    Updated,
    /// When it happened.
    Happened,
    /// How much they are believed.
    Confidence,
    /// Their ids, by code point.
    Id,
}

/// What a caller wants to have listed.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Which records, and how many at most.
    pub query: Query,
    /// In which order.
    pub by: By,
    /// A field that they are ordered by instead, as a caller writes it.
    pub field: Option<String>,
    /// The other way round. What has no key comes last all the same.
    pub reverse: bool,
    /// Where the last page ended.
    pub after: Option<PageEnd>,
    /// Whether it is to be told how many records were looked at.
    pub explains: bool,
}

/// The last record of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEnd {
    /// What it was ordered by, as a number that sorts alike; `None` if it had none, or if that was its id or its place. If it was
    /// ordered by a field, the seq of the last event about it and the next record: a page end holds no content.
    pub key: Option<i64>,
    /// Where it was made.
    pub made: MadeAt,
    /// Where the record behind it was made, if records are ordered by their ids or a field: it stands in for one that was erased.
    pub next: Option<MadeAt>,
}

/// Identifies a record by the event that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeAt {
    /// The seq of the event, if that is known.
    pub seq: Option<u64>,
    /// Its moment, since a restored log may use a seq again.
    pub micros: Option<i64>,
    /// Which of the records that this event made, and of how many: an act makes several.
    pub nth: u32,
    /// How many records this event made that are still there.
    pub of: u32,
}

/// Says when what a record tells of happened.
type Happened<'a> = dyn Fn(&[u8]) -> Option<i64> + Sync + 'a;

/// A key, turned round if need be: what has none comes last.
type Rank = (bool, i64);

/// The place of a record.
fn place(state: &State, slot: u32) -> Place {
    (state.slots.created(slot).seq(), slot)
}

/// A confidence as a number that sorts alike.
fn sortable(confidence: f64) -> i64 {
    let bits = confidence.to_bits() as i64;
    // Of two negative numbers the one with more bits is the lower.
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl Listing {
    fn rank(&self, key: Option<i64>) -> Rank {
        match key {
            Some(key) if self.reverse => (false, !key),
            Some(key) => (false, key),
            None => (true, 0),
        }
    }

    /// The slots of a page, and where it ends if there are more, `among` some, which ascend, if given. `happened` says when what a
    /// record tells of happened; many are read by several threads.
    ///
    /// # Errors
    /// `OutOfMemory`; `Argument` if the records at the end of the last page were erased and ids give the order.
    pub fn slots(
        &self,
        state: &State,
        among: Option<Vec<u32>>,
        happened: &Happened<'_>,
        threads: usize,
    ) -> Result<(Vec<u32>, Option<PageEnd>)> {
        let limit = self.query.limit.unwrap_or(usize::MAX);
        // One more than is wanted tells whether there is more.
        let most = limit.saturating_add(1);
        let mut slots = match self.by {
            By::Created => self.by_place(state, among, most)?,
            By::Id => return self.slots_by_key(state, among, &|slot| Some(id_key(&state.slots.id(slot)))),
            By::Updated | By::Happened | By::Confidence => {
                let ranked = self.ranked(state, among, happened, threads)?;
                first_of(ranked, most).map(|(_, slot)| slot).collect()
            }
        };
        let has_more = slots.len() > limit;
        slots.truncate(limit);
        let end = slots.last().filter(|_| has_more).map(|&slot| PageEnd {
            key: self.key_of(state, slot, happened),
            made: MadeAt::of(state, slot),
            next: None,
        });
        Ok((slots, end))
    }

    fn key_of(&self, state: &State, slot: u32, happened: &Happened<'_>) -> Option<i64> {
        match self.by {
            By::Created | By::Id => None,
            By::Updated => state.slots.moments(slot).updated.seq().map(|seq| seq as i64),
            By::Happened => {
                let stated = happened(&state.slots.record(slot));
                stated.or_else(|| state.slots.moments(slot).updated.micros())
            }
            By::Confidence => Some(sortable(state.slots.view(slot).confidence)),
        }
    }

    /// The first so many slots in the order in which their records were made.
    pub(super) fn by_place(
        &self,
        state: &State,
        among: Option<Vec<u32>>,
        most: usize,
    ) -> std::result::Result<Vec<u32>, Refused> {
        let sieve = self.query.sieve(state);
        let restated = &state.restated.places;
        let last = self.after.as_ref().filter(|_| !restated.is_empty());
        let found = last.and_then(|end| end.made.find(state));
        let after = last.map(|end| match (found, self.reverse) {
            (Some(slot), _) => (end.made.seq, slot + u32::from(!self.reverse)),
            (None, false) => (end.made.seq, 0),
            (None, true) => (end.made.seq, u32::MAX),
        });
        let is_next = |slot: u32| after.is_none_or(|after| (place(state, slot) < after) == self.reverse);
        let is_restated = |slot: u32| !restated.is_empty() && restated.contains(&place(state, slot));
        let passes = |slot: &u32| sieve.passes(state, *slot) && is_next(*slot) && !is_restated(*slot);
        // The slot of a restated record is not its place: the next page may begin anywhere.
        let after = self.after.as_ref().filter(|_| !found.is_some_and(is_restated));
        let start = after
            .filter(|_| !self.reverse)
            .map_or(0, |end| end.made.slot_in(state, true));
        let end = after.filter(|_| self.reverse);
        let end = end.map_or(u32::MAX, |end| end.made.slot_in(state, false));
        // Whoever sees little goes through that; whoever sees all, through those of a kind and status.
        let wanted = self.query.wanted();
        let among = among.or_else(|| state.scopes.seen(&sieve.sight));
        let is_among = |slot: u32| among.as_ref().is_none_or(|seen| seen.binary_search(&slot).is_ok());
        let mut slots = match (&among, self.reverse) {
            (Some(seen), false) => {
                let first = seen.partition_point(|&slot| slot < start);
                gathered(seen[first..].iter().copied().filter(passes).take(most))
            }
            (Some(seen), true) => {
                let behind = seen.partition_point(|&slot| slot < end);
                gathered(seen[..behind].iter().rev().copied().filter(passes).take(most))
            }
            (None, false) => gathered(state.catalog.slots_from(wanted, start).filter(passes).take(most)),
            (None, true) => gathered(state.catalog.slots_before(wanted, end).filter(passes).take(most)),
        }?;
        if !restated.is_empty() {
            let listed = |slot: &u32| is_among(*slot) && sieve.passes(state, *slot) && is_next(*slot);
            slots.extend(restated.iter().map(|place| place.1).filter(listed));
            slots.sort_unstable_by_key(|&slot| place(state, slot));
            if self.reverse {
                slots.reverse();
            }
            slots.truncate(most);
        }
        Ok(slots)
    }

    /// The slots of a page of records ordered by a field, and where it ends if there are more; `key` spells what one has there as
    /// bytes that sort alike.
    ///
    /// # Errors
    /// `OutOfMemory`; `Argument` if the records at the end of the last page were erased or changed.
    pub fn slots_by_field(
        &self,
        state: &State,
        among: Option<Vec<u32>>,
        key: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<(Vec<u32>, Option<PageEnd>)> {
        self.slots_by_key(state, among, &|slot| key(&state.slots.record(slot)))
    }

    /// The same with any key of a slot. No spelling of a key is the beginning of another.
    fn slots_by_key(
        &self,
        state: &State,
        among: Option<Vec<u32>>,
        key: &dyn Fn(u32) -> Option<Vec<u8>>,
    ) -> Result<(Vec<u32>, Option<PageEnd>)> {
        let limit = self.query.limit.unwrap_or(usize::MAX);
        let rank = |key: Option<Vec<u8>>| match key {
            Some(key) if self.reverse => (false, key.iter().map(|byte| !byte).collect()),
            Some(key) => (false, key),
            None => (true, Vec::new()),
        };
        let ranked_in = |slot: u32| (rank(key(slot)), slot);
        let changed = |slot: u32| state.slots.moments(slot).updated.seq().map(|seq| seq as i64);
        // A forged cursor must not compare with a record that the caller does not see.
        let sieve = self.query.sieve(state);
        let by_field = self.field.is_some();
        let is_same = |slot: u32, end: &PageEnd| !by_field || (sieve.passes(state, slot) && changed(slot) <= end.key);
        let after = self.after.as_ref();
        let after = after.map(|end| end.slot_in(state, |slot| is_same(slot, end)));
        let after = after.transpose()?.map(|(slot, is_included)| {
            let (rank, slot) = ranked_in(slot);
            (rank, slot + u32::from(!is_included))
        });
        let ranked = self
            .query
            .slots(state, among)
            .map(ranked_in)
            .filter(|one| after.as_ref().is_none_or(|after| one >= after));
        let mut slots: Vec<u32> = first_of(gathered(ranked)?, limit.saturating_add(1))
            .map(|(_, slot)| slot)
            .collect();
        let next = slots.get(limit).copied();
        slots.truncate(limit);
        let end = slots.last().zip(next).map(|(&slot, next)| PageEnd {
            key: changed(slot).max(changed(next)).filter(|_| by_field),
            made: MadeAt::of(state, slot),
            next: Some(MadeAt::of(state, next)),
        });
        Ok((slots, end))
    }

    /// The slots behind the last page, in no order, each with its rank.
    fn ranked(
        &self,
        state: &State,
        among: Option<Vec<u32>>,
        happened: &Happened<'_>,
        threads: usize,
    ) -> std::result::Result<Vec<(Rank, u32)>, Refused> {
        let after = self.after.as_ref();
        let after = after.map(|end| (self.rank(end.key), end.made.slot_in(state, true)));
        let slots = gathered(self.query.slots(state, among))?;
        let pieces: Vec<&[u32]> = slots.chunks(RANKED_AT_ONCE).collect();
        let mut all = Vec::new();
        all.try_reserve_exact(slots.len())?;
        let rank = |piece: u64, ranked: &mut Vec<(Rank, u32)>| {
            let keyed = pieces[piece as usize].iter().map(|&slot| {
                let key = self.key_of(state, slot, happened);
                (self.rank(key), slot)
            });
            ranked.clear();
            ranked.try_reserve(keyed.len())?;
            ranked.extend(keyed.filter(|one| after.is_none_or(|after| *one >= after)));
            Ok(())
        };
        let take = |ranked: &mut Vec<(Rank, u32)>| {
            all.extend_from_slice(ranked);
            Ok(true)
        };
        let outcome = in_order(pieces.len() as u64, threads.min(pieces.len()), rank, take);
        // To read records that are in memory fails only where there is no room for what they say.
        outcome.map_err(|_: io::Error| Refused)?;
        Ok(all)
    }
}

impl PageEnd {
    /// The slot behind which the next page begins, and whether the page includes it; only one that is as it was will do.
    fn slot_in(&self, state: &State, is_same: impl Fn(u32) -> bool) -> Result<(u32, bool)> {
        let last = self.made.find(state).map(|slot| (slot, false));
        let next = self.next.and_then(|next| next.find(state)).map(|slot| (slot, true));
        let mut found = last.into_iter().chain(next);
        found.find(|&(slot, _)| is_same(slot)).ok_or_else(|| {
            let reason = "the records at the end of that page were erased or changed; ask again from the start";
            Error::argument("after", reason)
        })
    }
}

impl MadeAt {
    fn of(state: &State, slot: u32) -> Self {
        let stamp = state.slots.created(slot);
        let siblings = made_by(state, stamp.seq());
        Self {
            seq: stamp.seq(),
            micros: stamp.micros(),
            nth: siblings.partition_point(|&sibling| sibling < slot) as u32,
            of: siblings.len() as u32,
        }
    }

    /// The slot of the record, if it is there and its siblings are.
    fn find(&self, state: &State) -> Option<u32> {
        let siblings = made_by(state, self.seq);
        let slot = *siblings.get(self.nth as usize)?;
        (siblings.len() == self.of as usize && state.slots.created(slot).micros() == self.micros).then_some(slot)
    }

    /// The first slot behind the record, or the one of that record itself. If it is gone, the place is that of its event;
    /// where some of its siblings are left, all of them count as not yet listed: better twice than never.
    fn slot_in(&self, state: &State, is_behind: bool) -> u32 {
        if let Some(slot) = self.find(state) {
            return slot + u32::from(is_behind);
        }
        let end = state.slots.len() as u32;
        match (state.slots.is_ordered(), is_behind) {
            (true, true) => first_in(0..end, |slot| state.slots.created(slot).seq() < self.seq),
            (true, false) => first_in(0..end, |slot| state.slots.created(slot).seq() <= self.seq),
            (false, true) => 0,
            (false, false) => end,
        }
    }
}

/// The slots of the records that an event made, ascending; those of which nothing is known count as made together.
fn made_by(state: &State, seq: Option<u64>) -> Vec<u32> {
    let end = state.slots.len() as u32;
    let is_made = |slot: &u32| state.slots.created(*slot).seq() == seq;
    let is_record = |slot: &u32| state.slots.is_record(*slot);
    if !state.slots.is_ordered() {
        return (0..end).filter(is_made).filter(is_record).collect();
    }
    let first = first_in(0..end, |slot| state.slots.created(slot).seq() < seq);
    (first..end).take_while(is_made).filter(is_record).collect()
}

/// An id, which stands as between quotes in canonical JSON, as bytes that sort by code point.
fn id_key(id: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(id.len() + 4);
    spell(&[b"\"", id, b"\""].concat(), &mut key);
    key
}

/// The first so many in order; the others are not sorted.
fn first_of<T: Ord>(mut all: Vec<T>, most: usize) -> impl Iterator<Item = T> {
    if most < all.len() {
        all.select_nth_unstable(most);
        all.truncate(most);
    }
    all.sort_unstable();
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::hears;
    use chronolog::event::Op;

    #[test]
    fn several_threads_come_to_the_same_order() {
        let mut state = State::default();
        let records = 2 * RANKED_AT_ONCE as u64 + 7;
        for seq in 0..records {
            hears(&mut state, Op::Upsert, seq, &format!("r{seq}"));
        }
        // As if each told of something else, some of the same moment, some of none.
        let happened = |record: &[u8]| {
            let sum = record
                .iter()
                .fold(7_i64, |sum, byte| (sum * 31 + i64::from(*byte)) % 9_973);
            (sum > 100).then_some(sum)
        };
        let listed = |threads: usize, reverse: bool, limit: Option<usize>| {
            let listing = Listing {
                by: By::Happened,
                reverse,
                query: Query {
                    limit,
                    ..Query::default()
                },
                ..Listing::default()
            };
            listing.slots(&state, None, &happened, threads).expect("memory")
        };
        for (reverse, limit) in [(false, None), (true, None), (true, Some(50))] {
            let alone = listed(1, reverse, limit);
            assert_eq!(alone.0.len(), limit.unwrap_or(records as usize));
            assert_eq!(listed(3, reverse, limit), alone);
        }
    }

    #[test]
    fn confidences_sort_as_numbers() {
        let numbers = [f64::MIN, -1.0, -0.5, -0.0, 0.0, 1e-300, 0.25, 0.5, 1.0, f64::MAX];
        assert!(numbers.map(sortable).is_sorted());
    }
}
