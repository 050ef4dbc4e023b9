//! How does a memory stay true? Every change is an event in one SHA-256 chained log; all else is derived from it.
//!
//! A file uses only rooms above it in this list.

// 0 ground: where do bytes live, and what can go wrong?
pub mod damage;
pub mod disk;
pub mod error;
pub mod layout;
pub mod memory;
pub mod ordered;
// 1 words: how is a value written so that everyone gets the same bytes?
pub mod digest;
pub mod json;
// 2 sentence: what happened, and does it follow from what came before?
pub mod acts;

pub mod event;

pub mod chain;
// 3 log: how does it get to disk, and is it still true?
pub mod archive;
pub mod wal;

pub mod hint;

pub mod verify;

pub mod origin;

pub mod remembered;

pub mod log;
// 4 state: what is known now?
pub mod snapshot;
pub mod state;

pub mod index;
// 5 search: which of it matters here?
pub mod score;
pub mod text;
pub mod vector;

pub mod blocks;
// 6 door: what may a caller ask?
pub mod options;
pub mod store;
