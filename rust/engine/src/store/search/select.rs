//! Selects the records for which a condition holds, as they are now.
//!
//! The moments of a record are looked up only if the condition names them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;
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

/// A condition that is ready to be evaluated.
pub(in crate::store) struct ConditionCheck<'a> {
    condition: &'a Condition,
    /// The fields with the time that a record states, if the condition names it.
    times: Option<Fields>,
    asks_created: bool,
    asks_updated: bool,
    beginning: OnceCell<i64>,
}

impl<'a> ConditionCheck<'a> {
    /// Prepares a condition.
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

    /// Whether it holds for the record in a slot.
    pub fn holds(&self, view: StateView<'_>, slot: u32, record: &[u8]) -> Result<bool> {
        Ok(self.condition.holds(record, &self.facts(view, slot, record)?))
    }

    fn facts(&self, view: StateView<'_>, slot: u32, record: &[u8]) -> Result<Facts> {
        let own = self.times.as_ref().map(|times| times.happened(record));
        let needs_log = self.asks_updated || own == Some(None);
        let updated_us = match needs_log {
            true => view.updated_us(slot, &self.beginning)?,
            false => None,
        };
        let created = self.asks_created.then(|| view.state.slots.moments(slot).created);
        Ok(Facts {
            created_us: created.and_then(|created| created.micros()),
            updated_us,
            happened_us: own.flatten().or(updated_us),
        })
    }
}

/// Shows the state while a search goes on; `None` if it is no longer the state that was indexed.
pub(in crate::store) type StateLook<'a> = &'a dyn Fn(&mut dyn FnMut(StateView<'_>)) -> Option<()>;

/// Whether single records may be found: they have not expired, and a condition holds. The condition is evaluated once for each
/// record, and the state is held only meanwhile.
pub(in crate::store) struct RecordFilter<'a> {
    /// The condition, if there is one, and the slots to which an index narrows it.
    condition: Option<PreparedCondition<'a>>,
    /// The slots of expired records.
    hidden: Option<RoaringBitmap>,
    look: StateLook<'a>,
    known: RefCell<HashMap<u32, bool, RandomState>>,
    fault: RefCell<Option<Error>>,
}

impl<'a> RecordFilter<'a> {
    /// A filter by a condition, by expiry or both.
    pub fn new(condition: Option<PreparedCondition<'a>>, hidden: Option<RoaringBitmap>, look: StateLook<'a>) -> Self {
        Self {
            condition,
            hidden,
            look,
            known: RefCell::default(),
            fault: RefCell::default(),
        }
    }

    /// The same; `None` if all records pass.
    pub fn of(
        condition: Option<PreparedCondition<'a>>,
        hidden: Option<RoaringBitmap>,
        look: StateLook<'a>,
    ) -> Option<Self> {
        (condition.is_some() || hidden.is_some()).then(|| Self::new(condition, hidden, look))
    }

    /// Whether the record in a slot passes. INVARIANT: the caller does not hold the state.
    pub fn passes(&self, slot: u32) -> bool {
        if self.hidden.as_ref().is_some_and(|hidden| hidden.contains(slot)) {
            return false;
        }
        let Some((_, among)) = &self.condition else {
            return true;
        };
        if among.as_ref().is_some_and(|among| !among.contains(slot)) {
            return false;
        }
        if let Some(&holds) = self.known.borrow().get(&slot) {
            return holds;
        }
        let mut holds = false;
        // The state may have been replaced; the caller then begins anew.
        let _ = (self.look)(&mut |view| holds = self.holds_in(view, slot));
        self.known.borrow_mut().insert(slot, holds);
        holds
    }

    /// Whether the condition holds for the record in a slot now, for callers that hold the state.
    pub fn holds_in(&self, view: StateView<'_>, slot: u32) -> bool {
        let Some(row) = view.state.row(slot) else {
            return false;
        };
        self.condition.as_ref().is_none_or(|(check, _)| {
            check.holds(view, slot, &row.record).unwrap_or_else(|fault| {
                self.fault.borrow_mut().get_or_insert(fault);
                false
            })
        })
    }

    /// The first fault of the disk during an evaluation.
    pub fn check(&self) -> Result<()> {
        self.fault.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// A condition ready to be evaluated, and the slots to which an index narrows it, if one helps.
pub(in crate::store) type PreparedCondition<'a> = (ConditionCheck<'a>, Option<RoaringBitmap>);

/// Prepares a condition for the evaluation of single records.
pub(in crate::store) fn prepare<'a>(
    state: &State,
    indexes: &RwLock<FieldIndexes>,
    condition: &'a Condition,
) -> Result<PreparedCondition<'a>> {
    let everyone = Query {
        viewer: Arc::new(Viewer::Everyone),
        faces: true,
        ..Query::default()
    };
    let among = plan(state, indexes, &everyone, condition)?.slots;
    Ok((ConditionCheck::new(condition, state), among))
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
    view: StateView<'_>,
    indexes: &RwLock<FieldIndexes>,
    query: &Query,
    condition: &Condition,
) -> Result<(Vec<u32>, QueryPlan)> {
    let state = view.state;
    let plan = plan(state, indexes, query, condition)?;
    let (check, sieve) = (ConditionCheck::new(condition, state), query.sieve(state));
    let mut found = Vec::new();
    let mut take = |slots: &mut dyn Iterator<Item = u32>| -> Result<()> {
        while found.len() < query.limit.unwrap_or(usize::MAX)
            && let Some(slot) = slots.next()
        {
            if sieve.passes(state, slot) && check.holds(view, slot, &state.slots.record(slot))? {
                found.try_reserve(1).map_err(Refused::from)?;
                found.push(slot);
            }
        }
        Ok(())
    };
    match &plan.slots {
        Some(slots) => take(&mut slots.iter())?,
        None => take(&mut query.slots_of(state, |class| condition.may_hold_for(&class.kind, &class.status)))?,
    }
    Ok((found, plan))
}

impl View {
    pub(in crate::store) fn state_view(&self) -> StateView<'_> {
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
