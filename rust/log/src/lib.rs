//! The on-disk format and the log: canonical JSON, events, hash chain, append, lock, sync, archives and verification.
//!
//! Files are reached only through the `Disk` trait; time and randomness are passed in.

pub mod acts;
pub mod archive;
pub mod chain;
pub mod damage;
pub mod digest;
pub mod disk;
pub mod error;
pub mod event;
pub mod hint;
pub mod host;
pub mod json;
pub mod layout;
pub mod log;
pub mod memory;
pub mod ordered;
pub mod origin;
pub mod remembered;
pub mod scope;
pub mod trail;
pub mod verify;
pub mod wal;
