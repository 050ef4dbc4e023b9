//! Finds the rows that are nearest to a query, exactly, and without reading every float.
//!
//! [`score::Scorer::score`] defines the score: products and sums in float64, in a fixed order, rounded once. A search
//! returns the best rows by it, score descending, then row ascending, bit for bit the same on every processor and with
//! any number of threads.
//!
//! Beside each row lies a [`companion`]: the row in eight bits a component, and how much that loses. The product of two
//! companions, plus what both may have lost, is an upper bound of the score. So a search is a funnel:
//!
//! 1. [`sweep`] reads the companions, a quarter of the bytes, and drops rows whose upper bound lies below what `k`
//!    other rows are known to reach.
//! 2. [`top`] keeps the others, with their bounds, and raises the bar.
//! 3. [`search`](mod@search) scores what is left from the floats, best bound first, until no bound reaches the k-th
//!    best score.
//!
//! Bounds may be wide, never wrong. Rows on disk may change after their companion was made, so every score is held
//! against the bounds that let it through. Rows without a companion, and the few that a narrow filter keeps, are scored
//! from their floats. A [`Gate`] may hold rows back, and [`RowMasks`] of a filter serve many searches.
//!
//! [`tokens`] compares a question and a record that have a vector for each of their tokens. Nothing here touches a
//! disk.

pub mod companion;
pub mod cpu;
pub mod groups;
mod lanes;
mod planes;
pub mod rows;
pub mod score;
pub mod search;
mod sweep;
pub mod team;
pub mod tokens;
mod top;
mod turn;

pub use companion::Companion;
pub use cpu::Cpu;
pub use groups::{Groups, RowMasks};
pub use rows::{VectorMisfit, VectorRows};
pub use search::{Gate, RowDoubt, RowSearch, search};
pub use tokens::TokenQuestion;
pub use top::RowHit;
