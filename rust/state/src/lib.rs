//! Current records: scopes, expiry, secondary indexes, networks of records and the filter language.
#![allow(
    clippy::missing_errors_doc,
    reason = "only the crates of this workspace call it; `chronomemory` documents the errors that callers see"
)]

pub mod condition;
pub mod index;
pub mod network;
pub mod snapshot;
pub mod state;
