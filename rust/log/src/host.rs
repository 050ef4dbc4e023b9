//! What the engine borrows from its host: the time, random bytes, and threads.
//!
//! The engine takes none of these by itself, so that a run can be replayed, its work between calls included.
//! [`Machine`] is the host of a program.

mod machine;

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

pub use machine::Machine;

/// Work that a thread of its own does.
pub type Work = Box<dyn FnOnce() + Send>;
/// Waits until a thread has ended.
pub type Join = Box<dyn FnOnce() + Send>;

/// A source of unguessable bytes.
#[derive(Clone)]
pub struct Randomness(Arc<FillRandom>);

/// Fills a piece of memory with such bytes.
type FillRandom = dyn Fn(&mut [u8]) -> io::Result<()> + Send + Sync;

impl Randomness {
    /// Bytes that this gives.
    pub fn of(fill: impl Fn(&mut [u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    /// Fills a piece of memory.
    pub fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        (self.0)(bytes)
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness")
    }
}

/// Lends a clock and threads.
pub trait Host: Send + Sync {
    /// Now, in microseconds since 1970: what events are stamped with.
    fn now(&self) -> i64;

    /// The time since some fixed moment, by a clock that is never set.
    fn steady(&self) -> Duration;

    /// Runs work on a thread. A test may run it at once, or later.
    ///
    /// # Errors
    /// The fault of the system if there is no thread; then nothing was done.
    fn spawn(&self, name: &str, work: Work) -> io::Result<Join>;
}
