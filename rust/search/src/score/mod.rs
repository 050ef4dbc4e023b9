//! Fusion of scores, shared by searches and recalls.

mod fusion;
mod lift;
mod tokens;

pub use fusion::{POOL_RECORDS, Scale, Shares};
pub use lift::{GroupWords, Lift, Ties, lifted};
pub use tokens::{Coded, SMALL_RECORDS, TokenScores};
