//! How are two files written at the same time?

use std::panic::resume_unwind;
use std::thread::{self, Builder};

use crate::error::Result;

/// A shorter log is packed before another thread would have begun.
const WORTH_A_THREAD_BYTES: u64 = 16 * 1024 * 1024;

/// Does two things, the second of them beside the first if there is a thread to spare and so many bytes to be written.
///
/// # Errors
/// What they say, the first one before the other.
pub(super) fn both<A, B: Send>(
    (threads, bytes): (usize, u64),
    first: impl FnOnce() -> Result<A>,
    second: impl Fn() -> Result<B> + Sync,
) -> Result<(A, B)> {
    if threads < 2 || bytes < WORTH_A_THREAD_BYTES {
        return Ok((first()?, second()?));
    }
    thread::scope(|scope| {
        // Where no thread can be had, this one does all of it.
        let beside = Builder::new().spawn_scoped(scope, &second).ok();
        let done = first();
        let other = match beside {
            Some(beside) => beside.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => second(),
        };
        Ok((done?, other?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn both_are_done_however_many_threads_there_are() {
        for size in [(1, u64::MAX), (2, 0), (2, u64::MAX)] {
            assert_eq!(both(size, || Ok(1), || Ok(2)).expect("both"), (1, 2));
            let fails = || Err::<u8, _>(Error::Closed);
            assert!(both(size, fails, || Ok(2)).is_err() && both(size, || Ok(1), fails).is_err());
        }
    }
}
