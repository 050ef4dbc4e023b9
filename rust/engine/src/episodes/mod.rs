//! The rules that make one delta of each episode.
//!
//! Of each episode one delta is made, in the order in which they come, by the first row that fits:
//!
//! | metadata | delta |
//! |---|---|
//! | `intent` is `noop` | noop |
//! | `intent` is `delete` or `update` | that, of what `replaces` names; if it names nothing, the episode is bad |
//! | subject and predicate were spoken of before, by the same user and agent | update, of the episode that did so last |
//! | anything else | add |
//!
//! There may be millions of them, so a delta holds pieces of the record as they are written there.
//!
//! A file uses only files above it in this list.

mod fields;

mod sorter;

mod pass;

pub use pass::{EpisodePass, NextPages, SortedPage};
pub use sorter::{EpisodeDelta, Verdict};
