//! How do scores of different kinds become one?

mod fusion;
mod lift;

pub use fusion::{POOL_RECORDS, Scale, fused};
pub use lift::{Lift, Ties, lifted};
