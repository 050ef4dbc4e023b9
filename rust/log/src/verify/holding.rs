//! Holds back events until their batch is whole.

use std::ops::Range;

use crate::event::act::beyond;
use crate::event::{IncomingEvents, Known, Op};
use crate::json::RecordSpans;
use crate::memory::Refused;

/// Events kept until their batch is whole.
#[derive(Debug, Default)]
pub struct HeldEvents {
    text: Vec<u8>,
    items: Vec<Item>,
    /// No event that was announced is longer.
    longest: usize,
    /// What they ask for beyond what their lines do.
    beyond: IncomingEvents,
}

#[derive(Debug)]
struct Item {
    op: Op,
    id: Range<usize>,
    record: Range<usize>,
    fields: RecordSpans,
    offset: u64,
    seq: u64,
    ts: i64,
}

impl HeldEvents {
    /// Asks for the memory that some events need, should they be kept.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        self.text.try_reserve(coming.bytes)?;
        self.items.try_reserve(coming.events)?;
        self.longest = self.longest.max(coming.longest);
        Ok(())
    }

    /// What is kept.
    pub fn kept(&self) -> IncomingEvents {
        IncomingEvents {
            events: self.items.len(),
            bytes: self.text.len(),
            longest: self.longest,
            further: 0,
        }
        .and(self.beyond)
    }

    /// Keeps a copy of an event.
    pub fn push(&mut self, known: Known<'_>, ts: i64) {
        let mut keep = |bytes: &[u8]| {
            let start = self.text.len();
            self.text.extend_from_slice(bytes);
            start..self.text.len()
        };
        let (id, record) = (keep(known.id), keep(known.record));
        self.beyond = self.beyond.and(beyond(known.op, known.id, known.record));
        self.items.push(Item {
            op: known.op,
            id,
            record,
            fields: known.fields,
            offset: known.offset,
            seq: known.seq,
            ts,
        });
    }

    /// Gives the events back in order and is empty again.
    pub fn release(&mut self, mut each: impl FnMut(Known<'_>, i64)) {
        for item in self.items.drain(..) {
            let known = Known {
                op: item.op,
                id: &self.text[item.id],
                record: &self.text[item.record],
                fields: item.fields,
                hash: b"",
                offset: item.offset,
                seq: item.seq,
            };
            each(known, item.ts);
        }
        self.clear();
    }

    /// The seq of the last event held.
    pub fn last_seq(&self) -> Option<u64> {
        self.items.last().map(|item| item.seq)
    }

    /// Where the first event held begins.
    pub fn first_offset(&self) -> Option<u64> {
        self.items.first().map(|item| item.offset)
    }

    /// Forgets the events.
    pub fn clear(&mut self) {
        self.items.clear();
        self.text.clear();
        self.beyond = IncomingEvents::default();
    }
}
