//! Makes deltas of records that follow each other, by the rule that a face declares.
//!
//! The rule is a [`Sorting`](chronolog::event::faces::Sorting).
//!
//! Of each record one delta is made, in order, by the first row that fits:
//!
//! | what a record says it means | delta |
//! |---|---|
//! | its intent is `noop` | noop |
//! | its intent is `delete` or `update` | that, of what it says it replaces; if it names nothing, the record is bad |
//! | its topic, a subject and a predicate, was spoken of before, by the same owner | update, of the record that did so last |
//! | anything else | add |
//!
//! There may be millions of them, so a delta holds pieces of the record as they are written there.

mod fields;
mod pass;
mod sorter;

pub use pass::{DeltaPass, NextPages, SortedPage};
pub use sorter::{Delta, Verdict};
