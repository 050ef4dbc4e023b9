//! Scopes: which one a record carries, and who sees it.
//!
//! A record carries a scope in `data["@scope"]`: some of three names. A caller gives one too. What follows from the two is
//! decided here and nowhere else; a scope separates, it protects nothing from somebody who opens the files.
//!
//! | file | the question it answers |
//! |---|---|
//! | `names` | what is a scope, and how is it spelled? |
//! | `carried` | which scope does a record carry? |
//! | `viewer` | who asks, and what does that one see? |

mod names;

mod carried;

mod viewer;

pub use carried::{Carried, KEY, carried, check, given, other_than, replace, stamp};
pub use names::{LEVELS, Scope};
pub use viewer::{SeenAs, Viewer};
