//! Walks over records that join two others, as a face declares them.
//!
//! A walk goes along two declared indexes: from an end to the records that name it on one side, and on to what these
//! name on the other. It costs what it passes. An end counts if its record is there, active and seen; a record that
//! joins an end which does not count joins nothing.

mod net;
mod walks;

pub use net::{Direction, Net, Steps};
pub use walks::{islands, reach, routes};

#[cfg(test)]
mod tests;
