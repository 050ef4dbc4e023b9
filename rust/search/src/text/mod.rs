//! Text search: finds the records that hold the words of a question.
//!
//! A record becomes a document: its [`fields`] say which parts are text, and [`words`] how a text becomes words. A question
//! is made ready by the [`index`]: each word's list, what the word is worth among all living documents, and which documents
//! may be found ([`filter`]). Then the lists are [`sweep`]ed span by span for the best.
//!
//! The score is BM25 with exact lengths. Everything here is derived from the state and can be made again at any time.

mod answer;
mod columns;
mod compare;
mod context;
mod fields;
pub mod file;
mod filter;
mod fold;
mod index;
mod lists;
mod open;
mod question;
mod sealed;
mod sections;
mod sweep;
mod top;
mod when;
mod words;

pub use answer::TextQuestion;
pub use compare::difference;
pub use context::{ContextMark, LinkedRecord};
pub use fields::{CHOICE_ID, Fields, FoundField, is_of_likeness, is_searched};
pub use filter::TextFilter;
pub use index::TextIndex;
pub use question::{asked, one_named, says_any};
pub use sealed::Sealed;
pub use sweep::weight_of;
pub use when::NamedDays;
pub use words::WordSplitter;
