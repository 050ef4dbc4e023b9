//! Lists records page by page, and freezes those that a walk begins with.

use std::sync::{PoisonError, RwLock};

use super::select::{Scene, select};
use crate::store::View;
use chronolog::error::{Error, Result};
use chronolog::memory::gathered;
use chronomemory_search::text::{CHOICE_ID, Fields};
use chronomemory_state::condition::{Condition, FieldIndexes, FieldPath, QueryPlan, indexable, sort_key};
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
    known.follow(state, &[], true)?;
    let place = indexable(path).filter(|place| known.declared().contains(&place.to_string()));
    place.ok_or_else(|| {
        let words = format!("there is no index of {path:?} to order by; create_index({path:?}) makes one");
        Error::argument("order_by", words)
    })
}

/// The same without the records themselves.
///
/// # Errors
/// As [`page`].
pub(in crate::store) fn slots(
    scene: Scene<'_>,
    indexes: &RwLock<FieldIndexes>,
    listing: &Listing,
    condition: Option<&Condition>,
) -> Result<PageSlots> {
    let state = scene.state;
    // Which fields tell of a moment is worked out for who orders by it: that takes as long as a page of short records.
    let is_by_moment = listing.by == By::Happened;
    let fields = is_by_moment.then(|| Fields::chosen(state.get(CHOICE_ID)).only_times());
    let (among, plan) = match condition {
        Some(condition) => {
            let all = Query {
                limit: None,
                ..listing.query.clone()
            };
            let (among, plan) = select(scene, indexes, &all, condition)?;
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
            listing.slots(state, among, &happened, scene.threads)?
        }
    };
    Ok((slots, end, plan))
}

/// A page of a listing: those of its records for which a condition holds.
///
/// # Errors
/// `OutOfMemory` if there is no memory for so many, `Io`.
pub(in crate::store) fn page<'a>(
    scene: Scene<'a>,
    indexes: &RwLock<FieldIndexes>,
    listing: &Listing,
    condition: Option<&Condition>,
) -> Result<Page<'a>> {
    let (slots, end, plan) = slots(scene, indexes, listing, condition)?;
    Ok(Page {
        records: gathered(slots.into_iter().map(|slot| scene.state.dated_in(slot)))?,
        end,
        plan,
    })
}

impl View {
    /// A page of a listing.
    ///
    /// # Errors
    /// As [`page`].
    pub fn page(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Page<'_>> {
        page(self.scene(), &self.field_indexes, listing, condition)
    }
}
