//! A memory engine: every change is an event in one SHA-256 chained log; all else is derived from it.
//!
//! [`Engine`] opens a store, reads and writes it from any thread, and looks after it between calls. The end of this
//! file lists what else is public.

mod options;
mod store;

// What the rooms hold, for the tests and measurements of this tree: no promise is made of it.
#[doc(hidden)]
pub mod testing;

// The export list: all that is promised to a program.
pub use chronolog::damage::{Damage, DamageKind, Tail};
pub use chronolog::digest::sha256;
pub use chronolog::disk::{
    Access, Disk, DiskFile, FolderMode, Identity, LockFile, RealDisk, Status, UnexpectedEntry, forked,
};
pub use chronolog::error::{Error, Result, said};
pub use chronolog::event::draft::Author;
pub use chronolog::event::draft::{Draft, FIELD_DEPTH};
pub use chronolog::event::draft_value::{RECORD_FIELDS, defaults};
pub use chronolog::event::salt::Salting;
pub use chronolog::host::{Host, Join, Machine, Randomness, Work};
pub use chronolog::json::{
    Cursor, MAX_DEPTH, MAX_INT_DIGITS, Quoted, Value, indented, members, parse as parse_json, write_f64, write_i64,
    write_string,
};
pub use chronolog::layout::Layout;
pub use chronolog::log::{Appended, LogStatus};
pub use chronolog::memory::{Allowance, Refused, Reserved, check as check_memory, could_have, gathered};
pub use chronolog::scope::{Carried, Scope, SeenAs, Viewer};
pub use chronolog::verify::{Report, ScopeFault, ScopeFinding};
pub use chronomemory_search::blocks::{
    Ask, BlockAnswer, BlockColumns, BlockMisfit, BlockReach, BlockView, Census, FoundBlock, Pieces, block_key,
    link_key, misfit,
};
pub use chronomemory_search::text::{TextFilter, WordSplitter, asked};
pub use chronomemory_search::vector::TokenQuestion;
pub use chronomemory_search::vector::tokens::token_rows;
pub use chronomemory_state::condition::{Condition, WHERE_KEYS};
pub use chronomemory_state::index::{After, IndexLookup, QueryPlan};
pub use chronomemory_state::network::{Direction, Net, Steps, islands, reach, routes};
pub use chronomemory_state::snapshot::{Moments, Stamp};
pub use chronomemory_state::state::{
    By, Dated, Edition, Frozen, Listing, MadeAt, PageEnd, Query, Sight, spelled, unspelled,
};
pub use options::{Checking, Durability, Options, WriterTerms};
pub use store::{
    AtomicBatch, Attachment, BatchWriter, Bookmark, Committed, CopyMade, CopyOrder, CopySeen, Embeddings, Engine,
    Erase, Erased, HeadStanding, Ids, Ingested, Intake, Matrix, Moment, Neighbour, Page, Progress, Prune, Pruned,
    Quarantined, RecordSearch, Repaired, Restoring, RowRefusal, RowSource, SealTerms, SearchHit, Setting, SpaceReport,
    Store, Unchanged, VectorQuestion, Verified, View, WHY_NOT_RESTORABLE, WrittenBatch, holds_any, layout_of,
};
