//! How do scores of different kinds become one?

mod fusion;
mod lift;

pub use fusion::{POOL_RECORDS, Scale, Shares, fused};
pub use lift::{GroupWords, Lift, Ties, lifted};
