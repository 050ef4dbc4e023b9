//! Embeddings: where their rows lie, what the log says of them, and how they are found.
//!
//! An embedding is a row of float32 in the file of its *space*. The log never carries the floats: a *group* event names rows,
//! the records they belong to, and the SHA-256 of each row. So the chain covers every float, and a row is believed only
//! after its digest was checked.
//!
//! A write puts rows behind those that the committed log names ([`super::write::attach`]) and only then appends the event.
//! Bytes that no event names are garbage, and the next write goes over them: nothing is ever misaligned. Rows reach the disk
//! before the log does ([`rows::durable`]).
//!
//! A search ([`search::query`]) takes what it needs along and then runs without the store: the mapped rows, an index of who
//! owns them ([`records::index`]), the rows that a question leaves ([`rows::filter`], or [`search::nearby`] if words are
//! asked too), and companions in chunks of 1,024 rows ([`rows::space_cache`]), kept on disk beside the other derived
//! files ([`rows::companions`]). Compaction moves the living rows into a new file when too many are dead
//! ([`super::upkeep::compact_rows`]), and says so in the log like any other change.
//!
//! A row may also hold codes of the tokens of a record instead of its embedding ([`chronomemory_search::vector::tokens`]): the record of its
//! space says so, and only a search asks them otherwise ([`search::tokens`]).
//!
//! If rows are damaged, repair looks for their bytes in the other folders ([`changes::regain`]), and takes back those that it
//! does not find ([`changes::damaged`]). If lines of the log are damaged, groups still tell where a space lies
//! ([`records::implied`]), and repair takes back what a lost move has left behind ([`changes::left_behind`]).
//!
//! Nothing here knows a store: [`Vectors`] is asked with a state. A room uses only rooms above it in this list.

pub(super) mod records;

pub(super) mod rows;

pub(super) mod known;

pub(super) mod changes;

pub(super) mod search;

pub use records::ids::{Attachment, Ids};
pub use search::ask::{Matrix, SpaceReport};
pub use search::query::{Neighbour, VectorQuestion, VectorSearch};

pub(super) use known::Vectors;
pub(super) use rows::check::{check_rows, is_no_file, is_of_this_file};
pub(super) use rows::compare::altered_companions;
pub(super) use rows::durable::{DirtyRows, RowBarrier};
pub(super) use search::nearby::{Narrowed, Near, Nearby, Recent, no_past};
pub(super) use search::tokens::Sayings;
