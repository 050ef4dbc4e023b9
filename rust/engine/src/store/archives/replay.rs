//! Replays retired logs into a state without erased records, and compares the state with a base.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::iter::Peekable;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::archive_index::Mentions;
use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::event::act::each_named;
use chronolog::event::{IncomingEvents, Known, Op};
use chronolog::json::RecordSpans;
use chronolog::memory::{self, Refused};
use chronolog::verify::{HeldEvents, Sink};
use chronomemory_state::snapshot::{self, Moments, RecordSink};
use chronomemory_state::state::State;

/// Takes in retired logs, one after the other; without a state it only looks.
#[derive(Default)]
pub(in crate::store) struct Replay {
    without: Option<Arc<Doomed>>,
    /// What the logs so far add up to, if what they start from is known.
    pub state: Option<State>,
    pub mentions: Option<Mentions>,
    pub gave_up: bool,
    /// What the next log starts from accounts for its events up to here.
    pub settled_until: Option<u64>,
    holding: HeldEvents,
}

impl Replay {
    pub fn without(doomed: &Arc<Doomed>) -> Self {
        Self {
            without: Some(Arc::clone(doomed)),
            ..Self::default()
        }
    }

    pub fn begin(&mut self) {
        self.state = (!self.gave_up).then(State::default);
    }

    pub fn begin_with(&mut self, file: &dyn DiskFile, sha256: &Hex) {
        if self.gave_up {
            return;
        }
        let mut state = State::default();
        self.state = match snapshot::read(file, &mut state) {
            Ok(contents) => (contents.sha256 == *sha256 && contents.header.is_ok()).then_some(state),
            Err(fault) => {
                self.gave_up = fault.kind() == io::ErrorKind::OutOfMemory;
                None
            }
        };
    }

    /// The next log is another one: the places of events mean nothing there.
    pub fn leave_segment(&mut self) {
        if let Some(state) = &mut self.state {
            state.forget_events();
        }
        self.settled_until = None;
        self.holding.clear();
    }

    /// Whether a base with this digest holds what the logs add up to; `None` if that cannot be told.
    pub fn is_like(&mut self, file: &dyn DiskFile, sha256: &Hex) -> Option<bool> {
        let state = self.state.as_ref()?;
        let mut compared = Compared::with(state);
        // The digest is checked elsewhere; it only matters here if something differs.
        if snapshot::read_undigested(file, &mut compared).ok()? && compared.ends_same() {
            return Some(true);
        }
        // A record that stands twice counts once, so whole states are compared.
        let mut other = State::default();
        match snapshot::read(file, &mut other) {
            Ok(contents) if contents.sha256 != *sha256 || contents.header.is_err() => None,
            Ok(_) => Some(other.in_order().eq(state.in_order())),
            Err(fault) => {
                self.gave_up = fault.kind() == io::ErrorKind::OutOfMemory;
                None
            }
        }
    }

    fn take(&mut self, known: Known<'_>, ts: i64) {
        if let Some(mentions) = &mut self.mentions {
            mentions.take(known);
        }
        if self.without.as_ref().is_some_and(|doomed| doomed.takes(&known)) {
            return;
        }
        if let Some(state) = &mut self.state {
            state.take_in(known, ts, self.settled_until);
        }
    }
}

impl Sink for Replay {
    fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        memory::check()?;
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let room = self.holding.make_room(coming);
        if room
            .and_then(|()| state.make_room(coming.and(self.holding.kept())))
            .is_err()
        {
            (self.state, self.gave_up) = (None, true);
            // Mentions of held events still count.
            if self.mentions.is_none() {
                self.holding.clear();
            }
        }
        Ok(())
    }

    fn count(&mut self, known: Known<'_>, ts: i64) {
        self.take(known, ts);
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        if self.state.is_some() || self.mentions.is_some() {
            self.holding.push(known, ts);
        }
    }

    fn settle(&mut self, held: BatchFate) {
        let mut holding = std::mem::take(&mut self.holding);
        if held == BatchFate::Count {
            holding.release(|known, ts| self.take(known, ts));
        }
        holding.clear();
        self.holding = holding;
    }
}

/// Holds the records of a base against those of a state, one after the other: neither is copied.
struct Compared<'a> {
    state: &'a State,
    next: Peekable<Box<dyn Iterator<Item = Cow<'a, [u8]>> + 'a>>,
    differs: bool,
}

impl<'a> Compared<'a> {
    fn with(state: &'a State) -> Self {
        Self {
            state,
            next: (Box::new(state.in_order()) as Box<dyn Iterator<Item = Cow<'a, [u8]>> + 'a>).peekable(),
            differs: false,
        }
    }

    fn ends_same(mut self) -> bool {
        !self.differs && self.next.next().is_none()
    }
}

impl RecordSink for Compared<'_> {
    fn knows(&mut self, record: &[u8]) -> bool {
        // What a state holds has a name, and no salt: nothing about it is left to find out.
        !self.differs && self.next.next_if(|next| **next == *record).is_some()
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
        if !self.differs && !id.is_empty() {
            self.differs = self.next.next().is_none_or(|next| *next != *record);
        }
    }

    fn start_over(&mut self) {
        *self = Self::with(self.state);
    }
}

/// Records that are to be erased, by their ids as they stand between quotes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::store) struct Doomed(HashSet<Vec<u8>, RandomState>);

impl Doomed {
    pub fn add(&mut self, id: &[u8]) -> bool {
        self.0.insert(id.to_vec())
    }

    pub fn has(&self, id: &[u8]) -> bool {
        self.0.contains(id)
    }

    pub fn ids(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the line of an event goes with them: it speaks of one of them. What a log says of itself never goes.
    pub fn takes(&self, known: &Known<'_>) -> bool {
        match known.op {
            Op::Begin | Op::Compact | Op::Adopt | Op::Erase | Op::Prune | Op::Mark => false,
            Op::Act => {
                let mut is_named = false;
                each_named(known.op, known.id, known.record, |id| is_named |= self.has(id));
                is_named
            }
            _ => self.has(known.id),
        }
    }
}
