//! Lists records page by page, finds them by a declared index, and walks declared networks.

use std::sync::{Arc, PoisonError, RwLock};

use super::live_text::LiveTextIndex;
use super::select::{StateView, select};
use crate::store::View;
use chronolog::error::{Error, Result};
use chronolog::event::faces::{FaceIndex, Network, index_named, network_named};
use chronolog::memory::gathered;
use chronolog::scope::Viewer;
use chronomemory_search::blocks::BlockColumns;
use chronomemory_search::text::{CHOICE_ID, Fields};
use chronomemory_state::condition::{Condition, FieldPath, indexable, sort_key};
use chronomemory_state::index::{FieldIndexes, IndexLookup, Indexes, QueryPlan};
use chronomemory_state::network::{Net, Steps};
use chronomemory_state::state::{By, Dated, Listing, PageEnd, Query, State};

/// Records of one page, and where it ends if there are more.
pub struct Page<'a> {
    /// The records, in order.
    pub records: Vec<Dated<'a>>,
    /// Where to go on.
    pub end: Option<PageEnd>,
    /// How they were found, if there was a condition.
    pub plan: Option<QueryPlan>,
}

/// The slots of a page, where it ends if there are more, and how they were found.
type PageSlots = (Vec<u32>, Option<PageEnd>, Option<QueryPlan>);

/// A field to order by, if an index of it is declared.
fn field_of(state: &State, indexes: &RwLock<FieldIndexes>, path: &str) -> Result<FieldPath> {
    let mut known = indexes.write().unwrap_or_else(PoisonError::into_inner);
    known.follow(state, &[])?;
    let place = indexable(path).filter(|place| known.declared().contains(&place.to_string()));
    place.ok_or_else(|| {
        let words = format!("there is no index of {path:?} to order by; create_index({path:?}) makes one");
        Error::argument("order_by", words)
    })
}

/// The same without the records themselves.
pub(in crate::store) fn slots(
    view: StateView<'_>,
    indexes: &RwLock<FieldIndexes>,
    listing: &Listing,
    condition: Option<&Condition>,
) -> Result<PageSlots> {
    let state = view.state;
    // Which fields tell of a moment is worked out for who orders by it: that takes as long as a page of short records.
    let is_by_moment = listing.by == By::Happened;
    let fields = is_by_moment.then(|| Fields::chosen(state.get(CHOICE_ID).as_deref()).only_times());
    let (among, plan) = match condition {
        Some(condition) => {
            let all = Query {
                limit: None,
                ..listing.query.clone()
            };
            let (among, plan) = select(view, indexes, &all, condition)?;
            let plan = match listing.explains {
                true => plan.told(state, &all, condition),
                false => plan,
            };
            (Some(among), Some(plan))
        }
        None => (None, None),
    };
    let (slots, end) = match &listing.field {
        Some(path) => {
            let place = field_of(state, indexes, path)?;
            listing.slots_by_field(state, among, &|record| sort_key(&place, record))?
        }
        None => {
            let happened = |record: &[u8]| fields.as_ref().and_then(|fields| fields.happened(record));
            listing.slots(state, among, &happened, view.threads)?
        }
    };
    Ok((slots, end, plan))
}

/// A page of a listing: those of its records for which a condition holds.
pub(in crate::store) fn page<'a>(
    view: StateView<'a>,
    indexes: &RwLock<FieldIndexes>,
    listing: &Listing,
    condition: Option<&Condition>,
) -> Result<Page<'a>> {
    let (slots, end, plan) = slots(view, indexes, listing, condition)?;
    Ok(Page {
        records: gathered(slots.into_iter().map(|slot| view.state.dated_in(slot)))?,
        end,
        plan,
    })
}

impl View {
    /// A page of a listing.
    pub fn page(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Page<'_>> {
        page(self.state_view(), &self.field_indexes, listing, condition)
    }
}

impl View {
    /// The same as it was then.
    pub fn find(&self, index: &str, lookup: &IndexLookup<'_>) -> Result<Vec<Dated<'_>>> {
        find(&self.indexes, &self.state, index, lookup)
    }
}

/// The records that a declared index leads to.
pub(in crate::store) fn find<'a>(
    indexes: &RwLock<Indexes>,
    state: &'a State,
    name: &str,
    lookup: &IndexLookup<'_>,
) -> Result<Vec<Dated<'a>>> {
    let declared =
        index_named(name).ok_or_else(|| Error::must("index", "be one that a face declares", format!("{name:?}")))?;
    if lookup.key.len() != declared.by.len() {
        let (given, wanted) = (lookup.key.len(), declared.by.len());
        return Err(Error::must("key", format!("have the {wanted} fields of {name}"), given));
    }
    let records = |slots: Vec<u32>| slots.into_iter().map(|slot| state.dated_in(slot)).collect();
    if let Some(index) = indexes
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .fresh(declared.name, state)
    {
        return Ok(records(index.find(state, lookup)));
    }
    let mut indexes = indexes.write().unwrap_or_else(PoisonError::into_inner);
    let index = indexes.of(declared);
    index.follow(state)?;
    Ok(records(index.find(state, lookup)))
}

impl View {
    /// The same as it was then.
    pub fn walk<T>(
        &self,
        network: &str,
        viewer: &Viewer,
        steps: &Steps,
        ask: impl FnOnce(&Net<'_>) -> Result<T>,
    ) -> Result<T> {
        walk(&self.indexes, &self.state, network, viewer, steps, ask)
    }
}

/// Asks something of a declared network, as somebody sees it.
pub(in crate::store) fn walk<T>(
    indexes: &RwLock<Indexes>,
    state: &State,
    name: &str,
    viewer: &Viewer,
    steps: &Steps,
    ask: impl FnOnce(&Net<'_>) -> Result<T>,
) -> Result<T> {
    let network = network_named(name)
        .ok_or_else(|| Error::must("network", "be one that a face declares", format!("{name:?}")))?;
    let declared = indexes_of(network)?;
    let known = indexes.read().unwrap_or_else(PoisonError::into_inner);
    let is_fresh = declared.iter().all(|index| known.fresh(index.name, state).is_some());
    let known = if is_fresh {
        known
    } else {
        drop(known);
        follow(indexes, state, declared)?;
        indexes.read().unwrap_or_else(PoisonError::into_inner)
    };
    let of = |index: &'static FaceIndex| known.known(index).ok_or(Error::Closed);
    let [by_source, by_target, ends] = declared;
    let net = Net::new(
        state,
        network,
        [of(by_source)?, of(by_target)?, of(ends)?],
        viewer,
        steps,
    );
    ask(&net)
}

fn indexes_of(network: &Network) -> Result<[&'static FaceIndex; 3]> {
    let named = |name: &str| index_named(name).ok_or_else(|| Error::must("index", "be declared", name));
    Ok([
        named(network.by_source)?,
        named(network.by_target)?,
        named(network.ends)?,
    ])
}

/// Lets indexes take in what changed.
fn follow(indexes: &RwLock<Indexes>, state: &State, declared: [&'static FaceIndex; 3]) -> Result<()> {
    let mut indexes = indexes.write().unwrap_or_else(PoisonError::into_inner);
    for index in declared {
        indexes.of(index).follow(state)?;
    }
    Ok(())
}

/// What follows the state, each when it is asked.
#[derive(Default)]
pub(in crate::store) struct Views {
    /// The text index, once it was asked.
    pub text: Arc<LiveTextIndex>,
    /// What faces look records up by; each follows when it is asked.
    pub indexes: RwLock<Indexes>,
    /// What the store looks all records up by; likewise.
    pub field_indexes: RwLock<FieldIndexes>,
    /// What recalls of blocks are made from; it follows when it is asked for.
    pub blocks: Arc<RwLock<BlockColumns>>,
}

impl Views {
    /// Lets go of what may have files mapped: a mapped file keeps what was erased as long as it is open.
    pub fn let_go(&mut self) {
        self.text = Arc::default();
        (self.indexes, self.field_indexes) = Default::default();
    }

    /// The paths that a store declares indexes of, the oldest first.
    pub fn declared(&self, state: &State) -> Result<Vec<String>> {
        let mut known = self.field_indexes.write().unwrap_or_else(PoisonError::into_inner);
        known.follow(state, &[])?;
        Ok(known.declared())
    }
}
