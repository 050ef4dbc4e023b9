//! Text index, vectors, token codes and ranking, in memory: this crate has no disk access of its own.
#![allow(
    clippy::missing_errors_doc,
    reason = "only the crates of this workspace call it; `chronomemory` documents the errors that callers see"
)]

pub mod blocks;
pub mod deltas;
pub mod score;
pub mod text;
pub mod vector;
