//! What does the engine borrow from whoever runs it: which time is it, and who works beside the caller?
//!
//! The engine looks at no clock and starts no lasting thread by itself: both come in here, so that a run can be replayed, with
//! the work of the [`Engine`](crate::Engine) between calls included. [`Machine`] is the one that a program wants.

mod machine;

use std::io;
use std::time::Duration;

pub use machine::Machine;

/// Work that a thread of its own does.
pub type Work = Box<dyn FnOnce() + Send>;
/// Waits until a thread has ended.
pub type Join = Box<dyn FnOnce() + Send>;

/// Whoever has a clock and threads to lend.
pub trait Host: Send + Sync {
    /// Now, in microseconds since 1970: what events are stamped with.
    fn now(&self) -> i64;

    /// How long it is since some fixed moment, by a clock that nobody sets: what promises are kept by.
    fn steady(&self) -> Duration;

    /// Lets a thread do some work. The tasks of an engine that nobody attends may also be done at once, or kept and done
    /// when the time has come: a test can say when.
    ///
    /// # Errors
    /// What the system says if it gives no thread; nothing of the work is done then.
    fn spawn(&self, name: &str, work: Work) -> io::Result<Join>;
}
