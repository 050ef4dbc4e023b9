//! Finds the rows that are nearest to a query, exactly, and without reading every float.
//!
//! [`score::Scorer::score`] defines the score: products and sums in float64, in a fixed order, rounded once. A search
//! returns the best rows by it, score descending, then row ascending, bit for bit the same on every processor and with
//! any number of threads.
//!
//! Beside each row lie its [`codes`]: the row turned and rounded to eight bits a component, in two planes of four bits, with measured
//! bounds of what each plane misses. A search is a funnel:
//!
//! 1. [`sweep`] reads the high plane, an eighth of the bytes, and drops rows that cannot reach the `k`-th best score known so far.
//! 2. [`search`](mod@search) reads the low plane of the others, and then the floats of those that are left. Their exact scores raise the
//!    bar for the rows that follow; the first few rows, which nothing excludes, set it.
//!
//! Bounds may be wide, never wrong. Rows on disk may change after their codes were made, so every score is compared with the bounds that
//! let it through. Rows without codes, and the few that a narrow filter keeps, are scored from their floats. A gate may hold rows back,
//! and [`RowMasks`] of a filter serve many searches.
//!
//! [`tokens`] compares a question and a record that have a vector for each of their tokens. Nothing here touches a
//! disk.

pub mod codes;
pub mod cpu;
mod lanes;
mod masks;
mod planes;
pub mod rows;
pub mod score;
pub mod search;
mod sweep;
pub mod team;
pub mod tokens;
mod top;
mod turn;

pub use codes::{CodePart, Codes, MemoryPart};
pub use cpu::Cpu;
pub use masks::RowMasks;
pub use rows::{VectorMisfit, VectorRows};
pub use search::{RowSearch, search};
pub use tokens::TokenQuestion;
pub use top::RowHit;
