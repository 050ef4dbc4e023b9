//! Walks over records that join two others, as a face declares them: what is joined, over how many steps.
//!
//! A walk goes along two declared indexes: from an end to the records that name it on one side, and on to what these name
//! on the other. It costs what it passes. An end counts if its record is there, active and seen; what joins two of which one
//! does not count joins nothing.
//!
//! A file uses only files above it in this list.

mod net;

mod islands;

mod reach;

mod routes;

pub use islands::islands;
pub use net::{Direction, Net, Steps};
pub use reach::reach;
pub use routes::routes;

#[cfg(test)]
mod tests;
