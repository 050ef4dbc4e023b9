//! Does what events say of the scopes of records hold together?
//!
//! A record keeps the scope that it was born with, and what it carries is one. Our writers see to it; a line of another tool
//! may say otherwise. The log counts as it stands then, and whoever verifies it is told.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::event::{Known, Op};
use crate::json::members;
use crate::memory::Refused;
use crate::scope::{Carried, carried};
use crate::state::unspelled;
use crate::verify::{ScopeFault, ScopeFinding};

/// What the records carry, as far as it was told, and what is wrong with it.
#[derive(Default)]
pub struct ScopeWatch {
    hasher: RandomState,
    /// By the hash of an id: the hash of what its record carries.
    known: HashMap<u64, u64>,
    /// What events of a batch say that may still be dropped.
    held: Vec<Said>,
    found: Vec<ScopeFinding>,
}

/// What an event says of the scope of a record.
struct Said {
    id: Vec<u8>,
    /// The event; none if a base says it.
    seq: Option<u64>,
    /// The value of `@scope`, if there is one.
    value: Option<Vec<u8>>,
}

impl ScopeWatch {
    /// Asks for the memory that so many further records or events need, and those that are held.
    ///
    /// # Errors
    /// `Refused` if there is not so much.
    pub fn make_room(&mut self, coming: usize) -> Result<(), Refused> {
        self.held.try_reserve(coming)?;
        Ok(self.known.try_reserve(self.held.len() + coming)?)
    }

    /// Hears of a record that a base holds.
    pub fn base(&mut self, id: &[u8], record: &[u8]) {
        self.judge(Said {
            id: id.to_vec(),
            seq: None,
            value: carried(record).map(<[u8]>::to_vec),
        });
    }

    /// Hears of an event that counts.
    pub fn count(&mut self, known: &Known<'_>) {
        if let Some(said) = said(known) {
            self.judge(said);
        }
    }

    /// Hears of an event that may count.
    pub fn hold(&mut self, known: &Known<'_>) {
        self.held.extend(said(known));
    }

    /// Hears whether those held count.
    pub fn settle(&mut self, counts: bool) {
        for said in std::mem::take(&mut self.held) {
            if counts {
                self.judge(said);
            }
        }
    }

    /// What is wrong.
    pub fn findings(&self) -> Vec<ScopeFinding> {
        self.found.clone()
    }

    fn judge(&mut self, said: Said) {
        let Said { id, seq, value } = said;
        let (key, now) = (self.hasher.hash_one(&id), self.hasher.hash_one(&value));
        let before = self.known.insert(key, now);
        let is_malformed = |value: &Vec<u8>| Carried::of_value(value) == Carried::Malformed;
        let mut note = |fault: ScopeFault| {
            self.found.push(ScopeFinding {
                fault,
                id: unspelled(&id),
                seq,
            });
        };
        if before.is_some_and(|before| before != now) {
            note(ScopeFault::Changed);
        }
        if before != Some(now) && value.as_ref().is_some_and(is_malformed) {
            note(ScopeFault::Malformed);
        }
    }
}

fn said(known: &Known<'_>) -> Option<Said> {
    let value = match known.op {
        Op::Upsert | Op::Migrate => carried(known.record),
        // A patch speaks of the scope only if it names it, or puts something else in the place of all data.
        Op::Patch => match members(known.record).find(|(key, _)| *key == b"data") {
            Some((_, data)) if data.first() == Some(&b'{') => Some(carried(known.record)?),
            Some(_) => None,
            None => return None,
        },
        _ => return None,
    };
    Some(Said {
        id: known.id.to_vec(),
        seq: Some(known.seq),
        value: value
            .filter(|value| *value != b"null" || known.op != Op::Patch)
            .map(<[u8]>::to_vec),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_announced_asks_for_no_more_memory() {
        let mut watch = ScopeWatch::default();
        for begin in [0_u32, 1000] {
            assert!(watch.make_room(1000).is_ok());
            let room = watch.known.capacity();
            for number in begin..begin + 1000 {
                watch.base(&number.to_le_bytes(), b"{}");
            }
            assert_eq!(watch.known.capacity(), room);
        }
    }
}
