//! Checks that what events say of the scopes of records holds together.
//!
//! A record keeps the scope that it was born with. Our writers see to that; a line of another tool may say otherwise. The log counts
//! as it is then, and the report names the record.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use foldhash::quality;

use chronolog::event::{Known, Op};
use chronolog::json::members;
use chronolog::memory::Refused;
use chronolog::scope::{Carried, carried};
use chronolog::verify::{ScopeFault, ScopeFinding};
use chronomemory_state::state::unspelled;

/// The scopes of the records that were seen, and what is wrong with them.
#[derive(Default)]
pub struct ScopeWatch {
    /// Hashes ids. If two collide, too much is reported and nothing is missed.
    ids: quality::RandomState,
    /// Hashes scopes, with a key that nobody knows: a collision would hide a change.
    scopes: RandomState,
    /// By the hash of an id: the hash of the scope of its record, 0 for none.
    known: HashMap<u64, u64, foldhash::fast::RandomState>,
    pub found: Vec<ScopeFinding>,
}

/// What an event or a base says about the scope of a record.
struct SaidScope<'a> {
    id: &'a [u8],
    seq: Option<u64>,
    /// The value of `@scope`, if there is one.
    value: Option<&'a [u8]>,
}

impl ScopeWatch {
    /// Reserves memory for further records or events.
    pub fn make_room(&mut self, coming: usize) -> Result<(), Refused> {
        Ok(self.known.try_reserve(coming)?)
    }

    /// Judges a record of a base.
    pub fn base(&mut self, id: &[u8], record: &[u8]) {
        self.judge(&SaidScope {
            id,
            seq: None,
            value: carried(record),
        });
    }

    /// Judges an event that counts.
    pub fn count(&mut self, known: &Known<'_>) {
        if let Some(said) = said(known) {
            self.judge(&said);
        }
    }

    fn judge(&mut self, said: &SaidScope<'_>) {
        let now = said.value.map_or(0, |value| self.scopes.hash_one(value));
        let before = self.known.insert(self.ids.hash_one(said.id), now);
        if before == Some(now) || (before.is_none() && said.value.is_none()) {
            return;
        }
        let mut note = |fault: ScopeFault| {
            self.found.push(ScopeFinding {
                fault,
                id: unspelled(said.id),
                seq: said.seq,
            });
        };
        if before.is_some() {
            note(ScopeFault::Changed);
        }
        let is_malformed = |value: &[u8]| Carried::of_value(value) == Carried::Malformed;
        if said.value.is_some_and(is_malformed) {
            note(ScopeFault::Malformed);
        }
    }
}

fn said<'a>(known: &Known<'a>) -> Option<SaidScope<'a>> {
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
    Some(SaidScope {
        id: known.id,
        seq: Some(known.seq),
        value: value.filter(|value| *value != b"null" || known.op != Op::Patch),
    })
}
