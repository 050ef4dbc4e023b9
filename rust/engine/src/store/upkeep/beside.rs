//! Does two pieces of work at the same time, such as writing two files.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use chronolog::error::{Error, Result};

/// Does two things, the second of them beside the first.
///
/// # Errors
/// What they say, the first one before the other.
pub(super) fn both<A, B: Send>(
    first: impl FnOnce() -> Result<A>,
    second: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    // Whoever comes first takes it: where no thread can be had, this one does all of it.
    let waiting = Mutex::new(Some(second));
    let run = || match waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(second) => second(),
        None => Err(Error::Closed),
    };
    thread::scope(|scope| {
        let beside = Builder::new().spawn_scoped(scope, run).ok();
        let done = first();
        let other = match beside {
            Some(beside) => beside.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => run(),
        };
        Ok((done?, other?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done_or_the_fault_is_told() {
        assert_eq!(both(|| Ok(1), || Ok(2)).expect("both"), (1, 2));
        let fails = || Err::<u8, _>(Error::Closed);
        assert!(both(fails, || Ok(2)).is_err() && both(|| Ok(1), fails).is_err());
    }
}
