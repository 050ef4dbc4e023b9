//! How are two files written at the same time?

use std::panic::resume_unwind;
use std::thread::{self, Builder};

use crate::error::Result;

/// Does two things, the second of them beside the first if that is worth a thread.
///
/// # Errors
/// What they say, the first one before the other.
pub(super) fn both<A, B: Send>(
    is_worth_a_thread: bool,
    first: impl FnOnce() -> Result<A>,
    second: impl Fn() -> Result<B> + Sync,
) -> Result<(A, B)> {
    if !is_worth_a_thread {
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
        for is_worth_it in [false, true] {
            assert_eq!(both(is_worth_it, || Ok(1), || Ok(2)).expect("both"), (1, 2));
            let fails = || Err::<u8, _>(Error::Closed);
            assert!(both(is_worth_it, fails, || Ok(2)).is_err() && both(is_worth_it, || Ok(1), fails).is_err());
        }
    }
}
