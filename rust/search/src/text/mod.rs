//! Text search: finds the records that hold the words of a question.
//!
//! A record becomes a document: its [`fields`] say which parts are text, and [`words`] how a text becomes words. A question
//! is made ready by the [`index`]: each word's list, what the word is worth among all living documents, and which documents
//! may be found ([`filter`]). Then the lists are [`sweep`]ed span by span for the best.
//!
//! The score is BM25 with exact lengths. Everything here is derived from the state and can be made again at any time.
//!
//! | file | the question it answers |
//! |---|---|
//! | `words` | how does a text become words? |
//! | `question` | what does a question ask for? |
//! | `calendar` | with which words does a language say when something was? |
//! | `when` | which days does a question speak of, and how close is a moment to them? |
//! | `fields` | which parts of a record are read, and as what? |
//! | `lists` | in which documents does a word stand, and how often? |
//! | `context` | what surrounds each document? |
//! | `columns` | what is kept of each document beside its words? |
//! | `open` | how are documents taken in, one by one? |
//! | `sealed` | how do many documents lie close together? |
//! | `file` | how are sealed documents kept on disk? |
//! | `compare` | are sealed documents those of their records? |
//! | `sections` | whose documents lie where? |
//! | `filter` | which documents may be found at all? |
//! | `sweep` | which documents score highest, without scoring all of them? |
//! | `index` | which records answer a question, as of the last change? |
//! | `answer` | which documents answer a question best? |
//! | `top` | which documents of a choice score highest, exactly, and in an order that the caller gives? |
//!
//! A file uses only files above it in the list of modules below.

mod calendar;

mod context;

mod columns;

mod fields;

mod fold;

mod lists;

mod sweep;

mod sections;

mod when;

mod words;

mod open;

mod filter;

mod question;

mod sealed;

mod compare;

pub mod file;

mod index;

mod answer;

mod top;

pub use answer::TextQuestion;
pub use compare::{Comparison, difference};
pub use context::{ContextMark, LinkedRecord};
pub use fields::{CHOICE_ID, Fields, FoundField, is_of_likeness, is_searched};
pub use filter::TextFilter;
pub use index::TextIndex;
pub use question::{asked, one_named, says_any};
pub use sealed::Sealed;
pub use sweep::weight_of;
pub use when::NamedDays;
pub use words::WordSplitter;
