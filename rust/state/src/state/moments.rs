//! A column of the moments at which records were made and spoken of last.
//!
//! A column beside the slots, in small pieces that are shared with whoever froze the state and copied when they change: to
//! freeze it copies nothing. Most records are never spoken of again, so the second half of a piece is only there if one of
//! its records was: 16 bytes a record, and 16 more where records change.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::snapshot::{Doubt, Moments, Stamp};
use chronolog::memory::{self, Refused};

/// How many records a piece is of: what is copied for one change stays small.
const PIECE: usize = 256;
/// So much may be copied without asking.
const COPIED_UNASKED: usize = 1024 * 1024;

/// The moments of all slots.
#[derive(Clone, Debug, Default)]
pub struct MomentColumn {
    created: Vec<Arc<Vec<Stamp>>>,
    /// As long; `None` where nothing was spoken of again.
    updated: Vec<Option<Arc<Vec<Stamp>>>>,
    /// Pieces for what was announced.
    spare: Vec<Vec<Stamp>>,
    /// How many slots are older than the one before them.
    inversions: usize,
    /// Which records a lost line of the log may have been about; `None` if no line is lost.
    pub doubts: Option<Arc<Doubts>>,
}

/// Which records lines of the log may have been about that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Doubts {
    /// Slots of records that such a line names, or that were only changed in part since.
    pub named: BTreeSet<u32>,
    /// Behind this event a line is lost that names no record.
    pub lost_behind: Option<u64>,
}

impl Doubts {
    fn of(&self, slot: u32, updated: Stamp) -> Doubt {
        let is_before = |seq| updated.seq().is_none_or(|updated| updated <= seq);
        match self.named.contains(&slot) {
            true => Doubt::Named,
            false if self.lost_behind.is_some_and(is_before) => Doubt::Possible,
            false => Doubt::None,
        }
    }
}

fn piece() -> Result<Vec<Stamp>, Refused> {
    let mut piece = Vec::new();
    piece.try_reserve_exact(PIECE)?;
    Ok(piece)
}

/// A piece of one's own, to be changed.
fn own(piece: &mut Arc<Vec<Stamp>>) -> &mut Vec<Stamp> {
    // Whoever else has it only gives it back: nobody takes it from here meanwhile.
    if Arc::strong_count(piece) > 1 {
        let mut copy = Vec::with_capacity(PIECE);
        copy.extend_from_slice(piece);
        *piece = Arc::new(copy);
    }
    // It is one's own by now, so nothing is copied here.
    Arc::make_mut(piece)
}

impl MomentColumn {
    /// How many slots it knows.
    fn len(&self) -> usize {
        let last = self.created.last().map_or(0, |piece| piece.len());
        self.created.len().saturating_sub(1) * PIECE + last
    }

    /// Asks for the memory that so many slots need, new ones or others.
    pub fn make_room(&mut self, slots: usize) -> Result<(), Refused> {
        let left = (PIECE - self.len() % PIECE) % PIECE;
        let pieces = slots.saturating_sub(left).div_ceil(PIECE);
        self.created.try_reserve(pieces)?;
        self.updated.try_reserve(pieces)?;
        self.spare.try_reserve(pieces.saturating_sub(self.spare.len()))?;
        while self.spare.len() < pieces {
            self.spare.push(piece()?);
        }
        // Whatever is changed may have to be copied first, and may get its second half.
        let copied = slots
            .min(self.created.len())
            .saturating_mul(2 * PIECE * size_of::<Stamp>());
        if copied > COPIED_UNASKED {
            memory::could_have(copied)?;
        }
        Ok(())
    }

    /// The moments of a slot.
    pub fn get(&self, slot: u32) -> Moments {
        let (piece, at) = (slot as usize / PIECE, slot as usize % PIECE);
        let stamp = |piece: Option<&Arc<Vec<Stamp>>>| piece.and_then(|piece| piece.get(at).copied());
        let created = stamp(self.created.get(piece)).unwrap_or(Stamp::UNKNOWN);
        let updated = stamp(self.updated.get(piece).and_then(Option::as_ref)).unwrap_or(created);
        Moments {
            created,
            updated,
            doubt: self
                .doubts
                .as_ref()
                .map_or(Doubt::None, |doubts| doubts.of(slot, updated)),
        }
    }

    /// The doubts, to be changed.
    pub fn doubts_mut(&mut self) -> &mut Doubts {
        Arc::make_mut(self.doubts.get_or_insert_default())
    }

    /// What made the record of a slot.
    pub fn created(&self, slot: u32) -> Stamp {
        let piece = self.created.get(slot as usize / PIECE);
        let stamp = piece.and_then(|piece| piece.get(slot as usize % PIECE));
        stamp.copied().unwrap_or(Stamp::UNKNOWN)
    }

    /// Whether no slot is older than one before it: then an event can be looked for by halves.
    pub fn is_ordered(&self) -> bool {
        self.inversions == 0
    }

    /// Whether a slot is older than the one before it.
    fn is_inverted(&self, slot: usize) -> bool {
        let before = (slot > 0 && slot < self.len()).then(|| self.created(slot as u32 - 1));
        before.is_some_and(|before| before.seq() > self.created(slot as u32).seq())
    }

    /// The next slot, made by an event.
    pub fn push(&mut self, stamp: Stamp) {
        // No piece is empty.
        let before = self.created.last().and_then(|piece| piece.last()).copied();
        if self.created.last().is_none_or(|piece| piece.len() == PIECE) {
            let piece = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PIECE));
            self.created.push(Arc::new(piece));
            self.updated.push(None);
        }
        if let Some(piece) = self.created.last_mut() {
            own(piece).push(stamp);
        }
        if let Some(Some(piece)) = self.updated.last_mut() {
            own(piece).push(stamp);
        }
        self.inversions += usize::from(before.is_some_and(|before| before.seq() > stamp.seq()));
    }

    /// All that is known of a slot.
    pub fn set(&mut self, slot: u32, moments: Moments) {
        let (piece, at) = (slot as usize / PIECE, slot as usize % PIECE);
        if self.created(slot) != moments.created {
            // Where there is no second half, what was made is also what was spoken of last.
            let around = [slot as usize, slot as usize + 1];
            let inverted = |column: &Self| around.iter().filter(|&&slot| column.is_inverted(slot)).count();
            self.inversions -= inverted(self);
            own(&mut self.created[piece])[at] = moments.created;
            self.inversions += inverted(self);
        }
        let half = &mut self.updated[piece];
        if half.is_none() && moments.updated != moments.created {
            // Until now all of them were as they were made.
            let mut copy = Vec::with_capacity(PIECE);
            copy.extend_from_slice(&self.created[piece]);
            *half = Some(Arc::new(copy));
        }
        if let Some(half) = half {
            own(half)[at] = moments.updated;
        }
    }

    /// An event spoke of the record of a slot. One that restates all of it ends any doubt; one that changes a part does not.
    pub fn speak(&mut self, slot: u32, stamp: Stamp, restates: bool) {
        if self.doubts.is_some() && (restates || self.get(slot).doubt != Doubt::None) {
            let named = &mut self.doubts_mut().named;
            _ = if restates {
                named.remove(&slot)
            } else {
                named.insert(slot)
            };
        }
        let created = self.created(slot);
        let updated = stamp.not_before(created);
        // So it is with a record that was just made.
        if updated == created && self.updated[slot as usize / PIECE].is_none() {
            return;
        }
        self.set(slot, Moments::of_stamps(created, updated));
    }

    /// A view that stays as it is.
    pub fn freeze(&self) -> Result<Self, Refused> {
        let mut frozen = Self::default();
        frozen.created.try_reserve_exact(self.created.len())?;
        frozen.updated.try_reserve_exact(self.updated.len())?;
        frozen.created.extend(self.created.iter().map(Arc::clone));
        frozen.updated.extend(self.updated.iter().cloned());
        frozen.inversions = self.inversions;
        frozen.doubts.clone_from(&self.doubts);
        Ok(frozen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(created: u64, updated: u64) -> Moments {
        let stamp = |seq: u64| Stamp::new(seq, seq as i64 * 10);
        Moments::of_stamps(stamp(created), stamp(updated))
    }

    #[test]
    fn a_column_knows_every_slot() {
        let mut column = MomentColumn::default();
        let many = 3 * PIECE as u64 + 7;
        column.make_room(many as usize).expect("memory");
        for seq in 0..many {
            column.push(Stamp::new(seq, seq as i64 * 10));
        }
        assert!(column.is_ordered() && column.spare.is_empty());
        assert!(
            column.updated.iter().all(Option::is_none),
            "nothing was spoken of again"
        );
        let frozen = column.freeze().expect("memory");
        for slot in [0, 5, PIECE as u32, many as u32 - 1] {
            column.speak(slot, Stamp::new(many + u64::from(slot), 0), true);
        }
        // Later slots of a piece that has its second half are as they were made, too.
        column.push(Stamp::new(9999, 99_990));
        for slot in 0..many {
            let spoken = [0, 5, PIECE as u64, many - 1].contains(&slot);
            let updated = if spoken { Some(many + slot) } else { Some(slot) };
            assert_eq!(column.get(slot as u32).created, Stamp::new(slot, slot as i64 * 10));
            assert_eq!(column.get(slot as u32).updated.seq(), updated, "{slot}");
            assert_eq!(frozen.get(slot as u32), moments(slot, slot), "what is frozen stays");
        }
        assert_eq!(column.get(many as u32), moments(9999, 9999));
        assert_eq!(frozen.get(many as u32), Moments::UNKNOWN);
    }

    #[test]
    fn what_was_made_before_is_not_known_to_be_updated_earlier() {
        let mut column = MomentColumn::default();
        column.push(Stamp::UNKNOWN);
        column.set(0, moments(7, 9));
        column.speak(0, Stamp::new(3, 1000), true);
        assert_eq!(column.get(0).updated, Stamp::new(7, 1000));
        column.push(Stamp::UNKNOWN);
        column.speak(1, Stamp::new(3, 20), true);
        assert_eq!(
            (column.get(1).created, column.get(1).updated),
            (Stamp::UNKNOWN, Stamp::new(3, 20))
        );
        assert!(
            !column.is_ordered(),
            "a slot of which nothing is known came behind one that is known"
        );
        column.set(1, moments(8, 8));
        assert!(column.is_ordered());
    }
}
