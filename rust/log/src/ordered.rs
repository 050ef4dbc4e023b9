//! Shares work between threads and hands over the results in order.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// How many finished pieces may wait for the one before them, for each thread.
const WAITING_PIECES: u64 = 3;

/// Does `work` for each of `pieces` on several threads, and hands the results over in order until `take` returns false.
pub fn in_order<T: Default + Send, E: From<io::Error>>(
    pieces: u64,
    threads: usize,
    work: impl Fn(u64, &mut T) -> io::Result<()> + Sync,
    mut take: impl FnMut(&mut T) -> Result<bool, E>,
) -> Result<(), E> {
    if threads < 2 || pieces < 2 {
        return one_by_one(pieces, work, take);
    }
    let queue = WorkQueue::default();
    std::thread::scope(|scope| {
        let help = || {
            while let Some((index, mut result)) = queue.next(pieces, threads as u64 * WAITING_PIECES) {
                // Somebody waits for the result, and would for ever if the thread died with it.
                let outcome = catch_unwind(AssertUnwindSafe(|| work(index, &mut result)));
                let outcome = outcome.unwrap_or_else(|_| Err(io::Error::other("a thread died at its work")));
                queue.deliver(index, outcome.map(|()| result));
            }
        };
        // Where no thread can be had, fewer do the work, or this one does all of it.
        let started = (0..threads).map_while(|_| Builder::new().spawn_scoped(scope, help).ok());
        if started.count() == 0 {
            return one_by_one(pieces, &work, take);
        }
        let mut hand_over = || {
            for index in 0..pieces {
                let mut result = queue.collect(index)?;
                if !take(&mut result)? {
                    break;
                }
                queue.recycle(result);
            }
            Ok(())
        };
        let outcome = hand_over();
        queue.stop();
        outcome
    })
}

fn one_by_one<T: Default, E: From<io::Error>>(
    pieces: u64,
    work: impl Fn(u64, &mut T) -> io::Result<()>,
    mut take: impl FnMut(&mut T) -> Result<bool, E>,
) -> Result<(), E> {
    let mut result = T::default();
    for index in 0..pieces {
        work(index, &mut result)?;
        if !take(&mut result)? {
            break;
        }
    }
    Ok(())
}

/// Where threads fetch work and leave results.
struct WorkQueue<T> {
    queue: Mutex<QueueState<T>>,
    moved: Condvar,
}

struct QueueState<T> {
    next: u64,
    collected: u64,
    stopped: bool,
    done: BTreeMap<u64, io::Result<T>>,
    spare: Vec<T>,
}

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        Self {
            queue: Mutex::new(QueueState {
                next: 0,
                collected: 0,
                stopped: false,
                done: BTreeMap::new(),
                spare: Vec::new(),
            }),
            moved: Condvar::new(),
        }
    }
}

impl<T: Default> WorkQueue<T> {
    fn queue(&self) -> MutexGuard<'_, QueueState<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, pieces: u64, ahead: u64) -> Option<(u64, T)> {
        let mut queue = self.queue();
        loop {
            if queue.stopped || queue.next >= pieces {
                return None;
            }
            if queue.next < queue.collected + ahead {
                let index = queue.next;
                queue.next += 1;
                return Some((index, queue.spare.pop().unwrap_or_default()));
            }
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn deliver(&self, index: u64, outcome: io::Result<T>) {
        self.queue().done.insert(index, outcome);
        self.moved.notify_all();
    }

    fn collect(&self, index: u64) -> io::Result<T> {
        let mut queue = self.queue();
        loop {
            if let Some(outcome) = queue.done.remove(&index) {
                queue.collected = index + 1;
                self.moved.notify_all();
                return outcome;
            }
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn recycle(&self, result: T) {
        self.queue().spare.push(result);
    }

    fn stop(&self) {
        self.queue().stopped = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_arrive_in_order_whatever_the_threads_do() {
        for threads in [1, 2, 5] {
            let mut seen = Vec::new();
            let outcome: io::Result<()> = in_order(
                100,
                threads,
                |index, result: &mut u64| {
                    std::thread::sleep(std::time::Duration::from_micros(index * 7919 % 300));
                    *result = index;
                    Ok(())
                },
                |result| {
                    seen.push(*result);
                    Ok(*result < 90)
                },
            );
            assert!(outcome.is_ok());
            assert_eq!(seen, (0..=90).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_ends_the_work() {
        let work = |index, _: &mut u64| -> io::Result<()> { if index == 20 { panic!("broken") } else { Ok(()) } };
        let outcome: io::Result<()> = in_order(50, 3, work, |_| Ok(true));
        assert!(outcome.is_err());
    }

    #[test]
    fn a_fault_ends_the_work() {
        let outcome: io::Result<()> = in_order(
            50,
            3,
            |index, _: &mut u64| {
                if index == 20 {
                    Err(io::Error::other("broken"))
                } else {
                    Ok(())
                }
            },
            |_| Ok(true),
        );
        assert_eq!(outcome.map_err(|fault| fault.to_string()), Err("broken".to_owned()));
    }
}
