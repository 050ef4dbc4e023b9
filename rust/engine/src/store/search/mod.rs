//! Finds records: by value, page, network, words, vectors and recalls.

pub(in crate::store) mod ask;
pub(in crate::store) mod follow_text;
pub(in crate::store) mod live_text;
pub(in crate::store) mod nearest;
pub(in crate::store) mod page;
pub(in crate::store) mod rank;
pub(in crate::store) mod recall;
pub(in crate::store) mod select;
mod ties;
