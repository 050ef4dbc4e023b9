//! Shares work between threads and hands over the results in order.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// How many finished pieces may wait for the one before them, for each thread.
const WAITING_PIECES: usize = 3;

/// Does `work` for each of `pieces` on several threads, and hands the results over in order until `take` returns false.
pub fn in_order<T: Default + Send, E: From<io::Error>>(
    pieces: u64,
    threads: usize,
    work: impl Fn(u64, &mut T) -> io::Result<()> + Sync,
    mut take: impl FnMut(&mut T) -> Result<bool, E>,
) -> Result<(), E> {
    let died = || io::Error::other("a thread died at its work");
    // A spare result permits one more piece; it is used again when it was taken.
    let (spare, permits) = channel();
    let (done, results) = channel();
    let next = Mutex::new((0..pieces, permits));
    std::thread::scope(|scope| {
        let help = || {
            let claim = || {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                let mut result: T = next.1.recv().ok()?;
                let index = next.0.next()?;
                drop(next);
                // The result is awaited, also from a thread that dies.
                let outcome = catch_unwind(AssertUnwindSafe(|| work(index, &mut result)));
                done.send((index, outcome.unwrap_or_else(|_| Err(died())).map(|()| result)))
                    .ok()
            };
            while claim().is_some() {}
        };
        // Where no thread can be had, fewer do the work, or this one does all of it.
        let wanted = if threads < 2 || pieces < 2 { 0 } else { threads };
        let started = (0..wanted).map_while(|_| Builder::new().spawn_scoped(scope, help).ok());
        let started = started.count();
        (0..started * WAITING_PIECES).for_each(|_| _ = spare.send(T::default()));
        // Both are dropped with the closure: then the threads end.
        let (spare, results) = (spare, results);
        let (mut waiting, mut own) = (BTreeMap::new(), T::default());
        for index in 0..pieces {
            if started == 0 {
                work(index, &mut own)?;
                if !take(&mut own)? {
                    break;
                }
                continue;
            }
            while !waiting.contains_key(&index) {
                let (index, outcome) = results.recv().map_err(|_| died())?;
                waiting.insert(index, outcome);
            }
            let mut result: T = waiting.remove(&index).ok_or_else(died)??;
            if !take(&mut result)? {
                break;
            }
            let _ = spare.send(result);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_arrive_in_order_whatever_the_threads_do() {
        for threads in [1, 2, 5] {
            let mut seen = Vec::new();
            let work = |index: u64, result: &mut u64| {
                std::thread::sleep(std::time::Duration::from_micros(index * 7919 % 300));
                *result = index;
                Ok(())
            };
            let outcome: io::Result<()> = in_order(100, threads, work, |result| {
                seen.push(*result);
                Ok(*result < 90)
            });
            assert!(outcome.is_ok());
            assert!(seen.into_iter().eq(0..=90));
        }
    }

    #[test]
    fn a_fault_or_a_panic_ends_the_work() {
        for is_panic in [false, true] {
            let work = |index, _: &mut u64| match index {
                20 if is_panic => panic!("broken"),
                20 => Err(io::Error::other("broken")),
                _ => Ok(()),
            };
            let outcome: io::Result<()> = in_order(50, 3, work, |_| Ok(true));
            let expected = if is_panic {
                "a thread died at its work"
            } else {
                "broken"
            };
            assert_eq!(outcome.map_err(|fault| fault.to_string()), Err(expected.to_owned()));
        }
    }
}
