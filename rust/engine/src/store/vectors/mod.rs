//! Embeddings: rows of float32 in one file per *space*, and what the log records about them.
//!
//! The log carries no floats: a *group* event names rows, the records they belong to, and the SHA-256 of each row, so a row is
//! used only after its digest was checked. A write puts rows behind those that the committed log names ([`super::write::attach`])
//! and only then appends the event; bytes that no event names are overwritten by the next write. Rows reach the disk before
//! the log does ([`rows::durable`]).
//!
//! A search ([`search::query`]) runs without the store: it takes the mapped rows, an index of their owners
//! ([`records::index`]), the rows that a filter leaves ([`rows::filter`]), and codes of chunks of 1,024 rows
//! ([`rows::space_cache`]), of which sixteen are a file ([`rows::codes`]). A row may also hold codes of the tokens of a record
//! ([`TokenSearch`]). Compaction moves the living rows when too many are dead ([`super::upkeep::compact_rows`]); repair looks
//! for the bytes of damaged rows in other folders ([`changes::regain`]). If lines of the log are damaged, groups still tell
//! where a space lies.

pub(super) mod changes;
pub(super) mod known;
pub(super) mod records;
pub(super) mod rows;
pub(super) mod search;

pub use changes::write::{Attachment, Ids};
pub use search::ask::{Matrix, SpaceReport};
pub use search::query::{Neighbour, VectorQuestion, VectorSearch};

pub(super) use known::Vectors;
pub(super) use rows::check::{altered_codes, check_rows, is_no_file, is_of_this_file};
pub(super) use rows::durable::DirtyRows;

pub(super) use search::query::{Near, OpenSpace, TokenSearch, no_past};
