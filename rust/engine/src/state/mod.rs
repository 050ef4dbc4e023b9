//! What is known now?
//!
//! The state remembers, for every id, the last record the log spoke of it: canonical bytes in an [`arena`], a slot of
//! numbers beside them, [`moments`] that tell when it was made and spoken of last, a [`catalog`] of kinds and statuses so
//! that a query costs what it returns, and a [`timeline`] that leads from a record to its events. It is derived from base and log alone and can be rebuilt at any time.

mod acts;
mod apply;
mod arena;
mod catalog;
mod changes;
mod compare;
mod erased;
mod expiries;
mod expiring;
mod frozen;
mod likeness;
mod listing;
mod moments;
mod put;
mod query;
mod records;
mod rows;
mod scopes;
mod seen;
mod sight;
mod slots;
mod spelling;
mod timeline;

pub use catalog::{Class, Tally};
pub use changes::{Changes, Edition, StateId, Watermark};
pub use frozen::Frozen;
pub use likeness::Likeness;
pub use listing::{By, Listing, PageEnd};
pub use query::Query;
pub use records::State;
pub use rows::{Dated, Row, Survey};
pub use scopes::Directory;
pub use sight::Sight;
pub use slots::Sieve;
pub use spelling::{parsed, spelled, unspelled};
pub use timeline::Timeline;
