//! Which records come next, and which did a walk begin with?

use crate::error::Result;
use crate::memory::gathered;
use crate::state::{Dated, Frozen, Listing, PageEnd, State};
use crate::store::{Store, View};
use crate::text::{CHOICE_ID, Fields, Found};

/// Records of one page, and where it ends if there are more.
pub struct Page<'a> {
    /// The records, in order.
    pub records: Vec<Dated<'a>>,
    /// Where to go on.
    pub end: Option<PageEnd>,
}

/// When what a record tells of happened, if it says so: of several fields the first of the store's choice counts.
fn stated(fields: &Fields, record: &[u8]) -> Option<i64> {
    let mut first: Option<(u16, i64)> = None;
    fields.read(record, &mut |found| {
        if let Found::Time(number, micros) = found
            && first.is_none_or(|(known, _)| number < known)
        {
            first = Some((number, micros));
        }
    });
    first.map(|(_, micros)| micros)
}

fn slots(state: &State, listing: &Listing) -> Result<(Vec<u32>, Option<PageEnd>)> {
    let fields = Fields::chosen(state.get(CHOICE_ID));
    Ok(state.list(listing, &|record| stated(&fields, record))?)
}

fn page<'a>(state: &'a State, listing: &Listing) -> Result<Page<'a>> {
    let (slots, end) = slots(state, listing)?;
    Ok(Page {
        records: gathered(slots.into_iter().map(|slot| state.dated_in(slot)))?,
        end,
    })
}

impl Store {
    /// A page of a listing.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no memory for so many.
    pub fn page(&self, listing: &Listing) -> Result<Page<'_>> {
        page(&self.state, listing)
    }

    /// The records of a listing as they are now, to be read while others go on.
    ///
    /// # Errors
    /// As [`Store::page`].
    pub fn freeze(&mut self, listing: &Listing) -> Result<Frozen> {
        let (slots, _) = slots(&self.state, listing)?;
        Ok(self.state.freeze_those(slots.into_iter())?)
    }
}

impl View {
    /// A page of a listing.
    ///
    /// # Errors
    /// As [`Store::page`].
    pub fn page(&self, listing: &Listing) -> Result<Page<'_>> {
        page(&self.state, listing)
    }
}
