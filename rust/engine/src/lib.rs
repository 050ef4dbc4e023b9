//! A memory engine: every change is an event in one SHA-256 chained log; all else is derived from it.
//!
//! [`Engine`] is what a program holds: it opens a store, reads and writes it from any thread, and looks after it between
//! calls. What else is public stands in one list at the end of this file. A file uses only rooms above it in the list of rooms.

// 0 ground: where do bytes live, and what can go wrong?
mod damage;
mod disk;
mod error;
mod host;
mod layout;
mod memory;
mod ordered;
// 1 words: how is a value written so that everyone gets the same bytes?
mod digest;
mod json;
// 2 sentence: what happened, and does it follow from what came before?
mod scope;

mod acts;

mod event;

mod trail;

mod chain;
// 3 log: how does it get to disk, and is it still true?
mod archive;
mod wal;

mod hint;

mod verify;

mod origin;

mod remembered;

mod log;
// 4 state: what is known now?
mod snapshot;
mod state;

mod index;

mod network;

mod condition;
// 5 search: which of it matters here?
mod text;
mod vector;

mod score;

mod blocks;

mod deltas;
// 6 door: what may a caller ask?
mod options;
mod store;

// What the rooms hold, for the tests and measurements of this tree: no promise is made of it.
#[doc(hidden)]
pub mod testing;

// The export list: all that is promised to a program.
pub use blocks::{
    Ask, BlockAnswer, BlockColumns, BlockMisfit, BlockReach, Census, Dropped, FoundBlock, Outlook, fit, misfit,
};
pub use condition::{Condition, QueryPlan};
pub use damage::{Damage, DamageKind, Tail};
pub use deltas::{Delta, DeltaPass, NextPages, SortedPage, Verdict};
pub use digest::sha256;
pub use disk::{Access, Disk, DiskFile, Identity, LockFile, Manner, RealDisk, Status, Stranger, forked};
pub use error::{Error, Result, said};
pub use event::author::Author;
pub use event::draft::{Draft, FIELD_DEPTH, RawField};
pub use event::draft_value::{RECORD_FIELDS, defaults};
pub use event::faces::Sorting;
pub use event::salt::{Salting, is_salt_text};
pub use host::{Host, Join, Machine, Randomness, Work};
pub use index::{After, IndexLookup};
pub use json::{
    Cursor, Int, MAX_DEPTH, MAX_INT_DIGITS, Quoted, Value, indented, parse as parse_json, write_f64, write_i64,
    write_string,
};
pub use layout::Layout;
pub use log::{Appended, Pulse};
pub use memory::{Allowance, Refused, Reserved, check as check_memory, could_have, gathered};
pub use network::{Direction, Net, Steps, islands, reach, routes};
pub use options::{Checking, Durability, Options, WriterTerms};
pub use scope::{Carried, Scope, SeenAs, Viewer};
pub use snapshot::{Moments, Stamp};
pub use state::{By, CopiedRows, Dated, Edition, Frozen, Listing, MadeAt, PageEnd, Query, Sight, Tally, unspelled};
pub use store::{
    AtomicBatch, Attachment, BatchWriter, Bookmark, Committed, CopyMade, CopyOrder, CopySeen, Engine, Erase, Erased,
    HeadStanding, Ids, Ingested, Intake, Matrix, Moment, Neighbour, Page, Progress, Prune, Pruned, Quarantined,
    RecordSearch, Repaired, Restoring, RowRefusal, RowSource, SearchHit, SpaceReport, Store, Unchanged, VectorQuestion,
    Verified, View, WHY_NOT_RESTORABLE, WrittenBatch, holds_any, layout_of,
};
pub use text::{TextFilter, WordSplitter, asked};
pub use vector::TokenQuestion;
pub use vector::tokens::token_rows;
pub use verify::{Report, ScopeFault, ScopeFinding};
