//! Recalls blocks: finds those that matter for a question, and says why.
//!
//! A block is a record of the blocks face; so are the links and contradictions between blocks. For a recall this room
//! keeps what a score is made of in [`BlockColumns`]: numbers side by side, tags and categories as numbers of their
//! names, links as lists of rows, and where the state keeps each block. They are derived from the state, built when first
//! asked for, and then only follow what changed. No record is looked at in between: a pattern is held against the names of tags, words against the lists of the
//! text index.
//!
//! A recall is one walk, and each step has a file:
//!
//! 1. [`filter`]: which blocks may be found at all, and which are guaranteed?
//! 2. [`gather`]: of those, which are alike to the query, by meaning, by [`wording`] and by [`codes`] of its tokens, what is linked to them or was said next to
//!    them, and what do these, and their [`circumstances`], add? From here on the set is fixed.
//! 3. [`rate`]: five components for each, with maxima taken over exactly this set.
//! 4. [`choose`]: the best, unlike each other, without contradictions.
//! 5. [`statement`]: their records, a newer value of a subject before the older ones.
//!
//! Whoever asks is answered from what it sees and nothing else: which scopes these are, and on which clock its own blocks age,
//! is an [`Outlook`].
//!
//! The score is float64 throughout; cosines and what words say come as float32. Ties are broken by id, everywhere.
//!
//! A file uses only files above it in this list.

mod codes;

mod fields;

mod like;

mod links;

mod meaning;

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

mod gather;

mod recall;

pub use ask::{Ask, BlockAnswer, FoundBlock, Outlook};
pub use columns::BlockColumns;
pub use fields::{BLOCK_KIND, block_in, block_key};
pub use lookups::Census;
pub use meaning::BlockReach;
pub use pieces::Pieces;
pub use shape::{BlockMisfit, is_one_of, link_key, misfit};
