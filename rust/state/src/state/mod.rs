//! The state: for every id the last record that the log spoke of it, and what is looked up beside it.
//!
//! The state remembers, for every id, the last record the log spoke of it: canonical bytes in an [`arena`], a slot of
//! numbers beside them, [`moments`] that tell when it was made and spoken of last, a [`catalog`] of kinds and statuses so
//! that a query costs what it returns, and a [`timeline`] that leads from a record to its events. It is derived from base and log alone and can be rebuilt at any time.
//!
//! A file uses only files above it in this list.

mod arena;

mod catalog;

mod changes;

mod expiries;

mod likeness;

mod moments;

mod sight;

mod scopes;

mod spelling;

mod query;

mod timeline;

mod table;

mod records;
mod restated;

mod put;

mod acts;

mod damaged_line;

mod apply;

mod compare;

mod expiring;

mod frozen;

mod erased;

mod listing;

mod rows;

mod copied;

mod export;

mod seen;

mod slots;

mod sealing;

mod base_rows;

pub use base_rows::{BaseRows, BaseSegment};
pub use catalog::{Class, Tally};
pub use changes::{Changes, Edition, StateId, Watermark};
pub use copied::CopiedRows;
pub use export::ExportLine;
pub use frozen::Frozen;
pub use likeness::Likeness;
pub use listing::{By, Listing, MadeAt, PageEnd};
pub use query::Query;
pub use records::State;
pub use rows::{Dated, Row, Survey};
pub use scopes::Directory;
pub use sealing::Unsealed;
pub use sight::Sight;
pub use slots::SlotSieve;
pub use spelling::{parsed, spelled, unspelled};
pub use timeline::Timeline;
