//! Which records come next, and which did a walk begin with?

use std::sync::RwLock;

use super::select::{Scene, select};
use crate::condition::{Condition, FieldIndexes, QueryPlan};
use crate::error::Result;
use crate::memory::gathered;
use crate::state::{Dated, Frozen, Listing, PageEnd, Query};
use crate::store::{Store, View};
use crate::text::{CHOICE_ID, Fields};

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

fn slots(
    scene: Scene<'_>,
    indexes: &RwLock<FieldIndexes>,
    listing: &Listing,
    condition: Option<&Condition>,
) -> Result<PageSlots> {
    let state = scene.state;
    let fields = Fields::chosen(state.get(CHOICE_ID));
    let (among, plan) = match condition {
        Some(condition) => {
            let all = Query {
                limit: None,
                ..listing.query.clone()
            };
            let (among, plan) = select(scene, indexes, &all, condition)?;
            (Some(among), Some(plan))
        }
        None => (None, None),
    };
    let (slots, end) = state.list(listing, among, &|record| fields.happened(record))?;
    Ok((slots, end, plan))
}

fn page<'a>(
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

impl Store {
    /// A page of a listing: those of its records for which a condition holds.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no memory for so many, `Io`.
    pub fn page(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Page<'_>> {
        page(self.scene(), &self.field_indexes, listing, condition)
    }

    /// The records of a listing as they are now, to be read while others go on.
    ///
    /// # Errors
    /// As [`Store::page`].
    pub fn freeze(&mut self, listing: &Listing, condition: Option<&Condition>) -> Result<Frozen> {
        let (slots, ..) = slots(self.scene(), &self.field_indexes, listing, condition)?;
        Ok(self.state.freeze_those(slots.into_iter())?)
    }
}

impl View {
    /// A page of a listing.
    ///
    /// # Errors
    /// As [`Store::page`].
    pub fn page(&self, listing: &Listing, condition: Option<&Condition>) -> Result<Page<'_>> {
        page(self.scene(), &self.field_indexes, listing, condition)
    }
}
