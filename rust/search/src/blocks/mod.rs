//! Recall of blocks: finds the blocks that matter for a question, and gives the reasons.
//!
//! A block is a record of the blocks face; so are links and contradictions between blocks. [`BlockColumns`] holds what the
//! scores need as columns: numbers, tags and categories as numbers of names, links as lists of rows, and the slot in which the
//! state keeps each block. They are derived from the state when first needed and then follow its changes. A recall reads no
//! record: patterns are matched against tag names, words against the lists of the text index, and vectors and token codes
//! come from the row spaces of the store.
//!
//! The steps of a recall, one file each:
//!
//! 1. [`filter`]: the blocks that may be found, and those that are guaranteed.
//! 2. [`gather`]: the candidates: blocks similar to the query by vector, [`wording`] and token codes, with their links and
//!    neighbours, lifted by their [`circumstances`]. The set is final after this step.
//! 3. [`rate`]: five components for each candidate; maxima are taken over exactly this set.
//! 4. [`choose`]: the best, without near copies and contradictions.
//! 5. [`statement`]: their records, a newer value of a subject before the older ones.
//!
//! A recall depends only on what its viewer sees: an [`Outlook`] holds the visible scopes and the clock by which the viewer's
//! blocks age. Scores are float64, cosines and word scores float32. Ties are broken by id.
//!
//! A file uses only files above it in this list.

mod fields;

mod like;

mod links;

mod members;

mod names;

mod circumstances;

mod shape;

mod ask;

mod pieces;

mod statement;

mod clocks;

mod columns;

mod filter;

mod lookups;

mod rate;

mod choose;

mod wording;

mod vectors;

mod gather;

mod recall;

pub use ask::{Ask, BlockAnswer, FoundBlock, Outlook};
pub use columns::BlockColumns;
pub use fields::{BLOCK_KIND, block_in, block_key};
pub use gather::Evidence;
pub use lookups::Census;
pub use pieces::Pieces;
pub use shape::{BlockMisfit, is_one_of, link_key, misfit};
pub use vectors::{BlockReach, BlockVectors};
