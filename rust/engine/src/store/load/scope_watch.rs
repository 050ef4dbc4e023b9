//! Checks that what events say of the scopes of records holds together.
//!
//! A record keeps the scope that it was born with, and what it carries is one. Our writers see to it; a line of another tool
//! may say otherwise. The log counts as it stands then, and whoever verifies it is told.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use foldhash::quality;

use chronolog::event::{IncomingEvents, Known, Op};
use chronolog::json::members;
use chronolog::memory::Refused;
use chronolog::scope::{Carried, carried};
use chronolog::verify::{ScopeFault, ScopeFinding};
use chronomemory_state::state::unspelled;

/// What the records carry, as far as it was told, and what is wrong with it.
#[derive(Default)]
pub struct ScopeWatch {
    /// Tells ids apart. Should two be taken for one, too much is reported and nothing is passed over.
    ids: quality::RandomState,
    /// Tells scopes apart: nobody may make two that seem to be one.
    scopes: RandomState,
    /// By the hash of an id: the hash of what its record carries, 0 for nothing.
    known: HashMap<u64, u64, foldhash::fast::RandomState>,
    /// What events of a batch say that may still be dropped.
    held: Vec<KeptScope>,
    /// The ids and scopes that they speak of, end to end.
    text: Vec<u8>,
    found: Vec<ScopeFinding>,
}

/// What an event says of the scope of a record.
struct SaidScope<'a> {
    id: &'a [u8],
    /// The event; none if a base says it.
    seq: Option<u64>,
    /// The value of `@scope`, if there is one.
    value: Option<&'a [u8]>,
}

/// The same, kept: where it stands in the text.
struct KeptScope {
    id: Range<usize>,
    seq: Option<u64>,
    value: Option<Range<usize>>,
}

impl ScopeWatch {
    /// Asks for the memory that further records or events need, and those that are held.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        self.held.try_reserve(coming.events)?;
        // They say what stands in them.
        self.text.try_reserve(coming.bytes)?;
        Ok(self.known.try_reserve(self.held.len() + coming.events)?)
    }

    /// Hears of a record that a base holds.
    pub fn base(&mut self, id: &[u8], record: &[u8]) {
        self.judge(&SaidScope {
            id,
            seq: None,
            value: carried(record),
        });
    }

    /// Hears of an event that counts.
    pub fn count(&mut self, known: &Known<'_>) {
        if let Some(said) = said(known) {
            self.judge(&said);
        }
    }

    /// Hears of an event that may count.
    pub fn hold(&mut self, known: &Known<'_>) {
        if let Some(said) = said(known) {
            let mut keep = |bytes: &[u8]| {
                let start = self.text.len();
                self.text.extend_from_slice(bytes);
                start..self.text.len()
            };
            let (id, value) = (keep(said.id), said.value.map(keep));
            let seq = said.seq;
            self.held.push(KeptScope { id, seq, value });
        }
    }

    /// Hears whether those held count.
    pub fn settle(&mut self, counts: bool) {
        let (mut held, mut text) = (std::mem::take(&mut self.held), std::mem::take(&mut self.text));
        for KeptScope { id, seq, value } in held.drain(..) {
            if counts {
                self.judge(&SaidScope {
                    id: &text[id],
                    seq,
                    value: value.map(|value| &text[value]),
                });
            }
        }
        text.clear();
        (self.held, self.text) = (held, text);
    }

    /// What is wrong.
    pub fn findings(&self) -> Vec<ScopeFinding> {
        self.found.clone()
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

#[cfg(test)]
mod tests {
    use super::*;
    use chronolog::json::RecordSpans;

    #[test]
    fn what_was_announced_asks_for_no_more_memory() {
        let mut watch = ScopeWatch::default();
        for begin in [0_u32, 1000] {
            let coming = IncomingEvents {
                events: 1000,
                bytes: 4000,
                ..IncomingEvents::default()
            };
            assert!(watch.make_room(coming).is_ok());
            let room = |watch: &ScopeWatch| (watch.known.capacity(), watch.held.capacity(), watch.text.capacity());
            let before = room(&watch);
            for number in begin..begin + 500 {
                watch.base(&number.to_le_bytes(), b"{}");
            }
            for number in begin + 500..begin + 1000 {
                watch.hold(&upsert(&number.to_le_bytes(), b"{}"));
            }
            watch.settle(true);
            assert_eq!(room(&watch), before);
            assert_eq!(watch.known.len(), begin as usize + 1000);
        }
    }

    #[test]
    fn what_is_held_is_judged_once_it_counts() {
        let (own, other) = (br#"{"data":{"@scope":{"user":"a"}}}"#, br#"{"data":{"@scope":1}}"#);
        let mut watch = ScopeWatch::default();
        watch.count(&upsert(b"x", own));
        watch.hold(&upsert(b"x", b"{}"));
        watch.settle(false);
        assert!(watch.findings().is_empty());
        watch.hold(&upsert(b"x", own));
        watch.hold(&upsert(b"y", other));
        watch.hold(&upsert(b"x", b"{}"));
        watch.settle(true);
        let found = watch.findings().into_iter().map(|found| (found.fault, found.id));
        let expected = [(ScopeFault::Malformed, "y"), (ScopeFault::Changed, "x")];
        assert_eq!(
            found.collect::<Vec<_>>(),
            expected.map(|(fault, id)| (fault, id.to_owned()))
        );
    }

    fn upsert<'a>(id: &'a [u8], record: &'a [u8]) -> Known<'a> {
        Known {
            op: Op::Upsert,
            id,
            record,
            fields: RecordSpans::default(),
            hash: b"",
            offset: 0,
            seq: 1,
        }
    }
}
