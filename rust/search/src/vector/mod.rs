//! Finds the rows that are nearest to a query, exactly, and without reading every float.
//!
//! What "exact" means is one function, [`score::Scorer::score`]: products and sums in float64, in a fixed order, rounded
//! once. A search answers with the rows that are best by it, in the order score descending, then row ascending, and the
//! answer is the same bit for bit on every processor and with any number of threads.
//!
//! A search that has to be exact need not read everything. Beside each row lies a [`companion`]: the row in eight bits
//! a component, and how much of it that loses. The product of two companions, plus what both may have lost, is an
//! upper bound of the score. So a search is a funnel:
//!
//! 1. [`sweep`] reads the companions, a quarter of the bytes, and multiplies integers. It lets go of rows whose upper
//!    bound lies below what `k` other rows are known to reach.
//! 2. [`shortlist`] keeps the others, with their bounds, and raises the bar.
//! 3. [`exact`] scores what is left from the floats, best bound first, until no bound reaches the k-th best score.
//!
//! Bounds are allowed to be wide, never wrong: rows that defeat them cost time and change nothing. Rows on disk may change
//! after their companion was made, so every score is held against the bounds that let it through. A row that has no
//! companion yet is scored from its floats, and so are the few rows that a narrow filter keeps.
//!
//! Whoever keeps the rows may hold some of them back: a [`gate`] is asked before a row is scored, and [`mask`]s of a filter can
//! be made once for many searches. Codes lie in a [`room`] with large pages, for a sweep is nothing but reading.
//!
//! Beside all this, [`tokens`] says how alike a question and a record are that have a vector for each of their tokens.
//!
//! [`cpu`] is the only place that knows processors. Nothing here touches a disk.
//!
//! A file uses only files above it in this list.

mod lanes;

mod codes;

pub mod rows;

pub mod groups;

pub mod mask;

pub mod team;

mod pieces;

mod planes;

mod shortlist;

mod sweep;

pub mod cpu;

pub mod companion;

pub mod score;

mod token_question;

mod top;

pub mod gate;

mod exact;

mod query;

pub mod search;

mod turn;

pub mod tokens;

pub use companion::Companion;
pub use cpu::Cpu;
pub use gate::{Gate, RowDoubt};
pub use groups::Groups;
pub use mask::RowMasks;
pub use rows::{VectorMisfit, VectorRows};
pub use search::{RowSearch, search};
pub use token_question::TokenQuestion;
pub use top::RowHit;
