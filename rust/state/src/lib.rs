//! Current records: scopes, expiry, secondary indexes, networks of records and the filter language.

pub mod condition;
pub mod index;
pub mod network;
pub mod segment;
pub mod snapshot;
pub mod state;
