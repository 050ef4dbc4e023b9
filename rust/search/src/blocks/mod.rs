//! Recall of blocks: finds the blocks that matter for a question, and gives the reasons.
//!
//! Blocks, their links and their contradictions are records of the blocks face. [`BlockColumns`] holds the inputs of the score
//! in columns, with the slot of each block in the state. The columns are derived from the state at first use and then follow
//! its changes. A recall reads no record: patterns are matched against tag names, words against the posting lists of the text
//! index, and vectors and token codes come from the row spaces of the store.
//!
//! The steps of a recall, one file each:
//!
//! 1. [`filter`]: the blocks that pass the filters, and the guaranteed ones.
//! 2. [`gather`]: the candidates: blocks similar to the query by vector, [`wording`] and token codes, with their links and
//!    neighbours, lifted by their [`circumstances`]. The set is final after this step.
//! 3. [`rate`]: five components for each candidate, relative to the maxima of this set.
//! 4. [`choose`]: the best candidates, without near copies and contradictions.
//! 5. [`statement`]: the records of the results; a newer value of a subject comes before older ones.
//!
//! The result depends only on what its viewer sees: a [`BlockView`] holds the visible scopes and the viewer's clock. Scores are
//! float64, cosines and word scores float32. Ties are broken by id.
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

pub use ask::{Ask, BlockAnswer, BlockView, FoundBlock};
pub use columns::BlockColumns;
pub use fields::{BLOCK_KIND, block_in, block_key};
pub use gather::Evidence;
pub use lookups::Census;
pub use pieces::Pieces;
pub use shape::{BlockMisfit, is_one_of, link_key, misfit};
pub use vectors::{BlockReach, BlockVectors};
