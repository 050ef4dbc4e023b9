//! Text index, vectors, token codes and ranking, in memory: this crate has no disk access of its own.

pub mod blocks;
pub mod score;
pub mod text;
pub mod vector;
