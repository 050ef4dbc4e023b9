//! Selects the records for which a condition holds, as they are now.
//!
//! What stands beside a record, such as when it was written, is looked up only if the question asks for it.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use roaring::RoaringBitmap;

use crate::store::archives::archive_index::OrDamage;
use crate::store::{Store, View};
use chronolog::disk::DiskFile;
use chronolog::error::{Error, Result};
use chronolog::layout::LOG;
use chronolog::memory::Refused;
use chronolog::origin::beginning_of;
use chronolog::scope::Viewer;
use chronomemory_search::text::{CHOICE_ID, Fields};
use chronomemory_state::condition::{Condition, Facts, MomentField};
use chronomemory_state::index::{FieldIndexes, QueryPlan};
use chronomemory_state::state::{Query, State};

/// A state, and the log that it was read from with how much of that.
#[derive(Clone, Copy)]
pub(in crate::store) struct StateView<'a> {
    pub state: &'a State,
    pub log: Option<(&'a dyn DiskFile, u64)>,
    /// How many threads may go through many records.
    pub threads: usize,
}

impl<'a> StateView<'a> {
    /// A store as it is.
    pub fn of(store: &'a Store) -> Self {
        Self {
            state: &store.state,
            log: store.log.open().map(|log| (&*log.file, log.walk.end)),
            threads: store.options.threads,
        }
    }
}

impl StateView<'_> {
    /// When a record was written last; what a log starts from was written, if nothing says when, when that log began.
    fn updated_us(self, slot: u32, beginning: &OnceCell<i64>) -> Result<Option<i64>> {
        if let Some(micros) = self.state.slots.moments(slot).updated.micros() {
            return Ok(Some(micros));
        }
        let Some((file, length)) = self.log else {
            return Ok(None);
        };
        if let Some(micros) = beginning.get() {
            return Ok(Some(*micros));
        }
        let micros = began_at(file, length).or_damage(LOG)?;
        Ok(Some(*beginning.get_or_init(|| micros)))
    }
}

/// A condition, ready to be asked of records.
pub(in crate::store) struct Judge<'a> {
    condition: &'a Condition,
    /// The fields that say when something happened, if the condition asks for that.
    times: Option<Fields>,
    asks_created: bool,
    asks_updated: bool,
    beginning: OnceCell<i64>,
}

impl<'a> Judge<'a> {
    /// Makes a condition ready.
    pub fn new(condition: &'a Condition, state: &State) -> Self {
        let asks_happened = condition.asks_for(MomentField::Happened);
        Self {
            condition,
            times: asks_happened.then(|| Fields::chosen(state.get(CHOICE_ID).as_deref()).only_times()),
            asks_created: condition.asks_for(MomentField::Created),
            asks_updated: condition.asks_for(MomentField::Updated),
            beginning: OnceCell::new(),
        }
    }

    /// Whether it holds for a record and its slot.
    pub fn holds(&self, scene: StateView<'_>, slot: u32, record: &[u8]) -> Result<bool> {
        Ok(self.condition.holds(record, &self.facts(scene, slot, record)?))
    }

    fn facts(&self, scene: StateView<'_>, slot: u32, record: &[u8]) -> Result<Facts> {
        let own = self.times.as_ref().map(|times| times.happened(record));
        let needs_log = self.asks_updated || own == Some(None);
        let updated_us = match needs_log {
            true => scene.updated_us(slot, &self.beginning)?,
            false => None,
        };
        let created = self.asks_created.then(|| scene.state.slots.moments(slot).created);
        Ok(Facts {
            created_us: created.and_then(|created| created.micros()),
            updated_us,
            happened_us: own.flatten().or(updated_us),
        })
    }
}

/// What may be asked of the state while a search goes on; `None` if it is no longer the state that was indexed.
pub(in crate::store) type StateLook<'a> = &'a dyn Fn(&mut dyn FnMut(StateView<'_>)) -> Option<()>;

/// What a condition says of single records, each asked once, while others go on: the state is lent for each look alone.
pub(in crate::store) struct Verdicts<'a> {
    /// The condition, if there is one.
    judge: Option<Judge<'a>>,
    /// Only these, if an index says so.
    among: Option<RoaringBitmap>,
    /// Not these: they have expired.
    hidden: Option<RoaringBitmap>,
    ask: StateLook<'a>,
    asked: RefCell<RoaringBitmap>,
    allowed: RefCell<RoaringBitmap>,
    fault: RefCell<Option<Error>>,
}

impl<'a> Verdicts<'a> {
    /// None yet.
    pub fn new(judge: Judge<'a>, among: Option<RoaringBitmap>, ask: StateLook<'a>) -> Self {
        Self {
            judge: Some(judge),
            among,
            hidden: None,
            ask,
            asked: RefCell::default(),
            allowed: RefCell::default(),
            fault: RefCell::default(),
        }
    }

    /// What a question lets through that may have a condition and must leave out what has expired; `None` if it is all.
    pub fn of(
        prepared: Option<(Judge<'a>, Option<RoaringBitmap>)>,
        hidden: Option<RoaringBitmap>,
        ask: StateLook<'a>,
    ) -> Option<Self> {
        if prepared.is_none() && hidden.is_none() {
            return None;
        }
        let (judge, among) = prepared.map_or((None, None), |(judge, among)| (Some(judge), among));
        Some(Self {
            judge,
            among,
            hidden,
            ask,
            asked: RefCell::default(),
            allowed: RefCell::default(),
            fault: RefCell::default(),
        })
    }

    /// Whether the condition holds for the record in a slot. Not to be asked by who holds the state.
    pub fn allow(&self, slot: u32) -> bool {
        if self.hidden.as_ref().is_some_and(|hidden| hidden.contains(slot)) {
            return false;
        }
        if self.judge.is_none() {
            return true;
        }
        if self.among.as_ref().is_some_and(|among| !among.contains(slot)) {
            return false;
        }
        if self.asked.borrow_mut().insert(slot) {
            let mut holds = false;
            // Of another state nothing is known; whoever asks begins anew then.
            let _ = (self.ask)(&mut |scene| holds = self.holds_in(scene, slot));
            if holds {
                self.allowed.borrow_mut().insert(slot);
            }
        }
        self.allowed.borrow().contains(slot)
    }

    /// The same as it is now, for who holds the state.
    pub fn holds_in(&self, scene: StateView<'_>, slot: u32) -> bool {
        let Some(row) = scene.state.row(slot) else {
            return false;
        };
        let Some(judge) = &self.judge else {
            return true;
        };
        judge.holds(scene, slot, &row.record).unwrap_or_else(|fault| {
            self.fault.borrow_mut().get_or_insert(fault);
            false
        })
    }

    /// What the disk said, if it could not be told whether the condition holds.
    pub fn check(&self) -> Result<()> {
        self.fault.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// What is needed to ask single records: the condition made ready, and the slots that an index leads to, if one helps.
pub(in crate::store) fn prepare<'a>(
    state: &State,
    indexes: &RwLock<FieldIndexes>,
    condition: &'a Condition,
) -> Result<(Judge<'a>, Option<RoaringBitmap>)> {
    let everyone = Query {
        viewer: Arc::new(Viewer::Everyone),
        faces: true,
        ..Query::default()
    };
    let among = plan(state, indexes, &everyone, condition)?.slots;
    Ok((Judge::new(condition, state), among))
}

/// How a question is answered, with the indexes as of this state.
pub(in crate::store) fn plan(
    state: &State,
    indexes: &RwLock<FieldIndexes>,
    query: &Query,
    condition: &Condition,
) -> Result<QueryPlan> {
    let ways = condition.ways();
    let known = indexes.read().unwrap_or_else(PoisonError::into_inner);
    if known.are_fresh(state, &ways) {
        return Ok(QueryPlan::choose(state, query, condition, &known));
    }
    drop(known);
    let mut known = indexes.write().unwrap_or_else(PoisonError::into_inner);
    known.follow(state, &ways)?;
    Ok(QueryPlan::choose(state, query, condition, &known))
}

/// The slots of the records that a query asks for and for which a condition holds, in insertion order.
pub(in crate::store) fn select(
    scene: StateView<'_>,
    indexes: &RwLock<FieldIndexes>,
    query: &Query,
    condition: &Condition,
) -> Result<(Vec<u32>, QueryPlan)> {
    let state = scene.state;
    let plan = plan(state, indexes, query, condition)?;
    let (judge, sieve) = (Judge::new(condition, state), query.sieve(state));
    let mut found = Vec::new();
    let mut look = |slot: u32| -> Result<bool> {
        if found.len() >= query.limit.unwrap_or(usize::MAX) {
            return Ok(false);
        }
        if sieve.passes(state, slot) && judge.holds(scene, slot, &state.slots.record(slot))? {
            found.try_reserve(1).map_err(Refused::from)?;
            found.push(slot);
        }
        Ok(true)
    };
    match &plan.slots {
        Some(slots) => {
            for slot in slots {
                if !look(slot)? {
                    break;
                }
            }
        }
        None => {
            for slot in query.slots_of(state, |class| condition.may_hold_for(&class.kind, &class.status)) {
                if !look(slot)? {
                    break;
                }
            }
        }
    }
    Ok((found, plan))
}

impl View {
    pub(in crate::store) fn scene(&self) -> StateView<'_> {
        StateView {
            state: &self.state,
            log: self.log.as_ref().map(|(file, length)| (&**file, *length)),
            // The past is asked seldom, and beside everything else.
            threads: 1,
        }
    }
}

/// When a log began.
pub(in crate::store) fn began_at(file: &dyn DiskFile, length: u64) -> io::Result<i64> {
    Ok(beginning_of(file, length)?.ts)
}
