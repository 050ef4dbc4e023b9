//! Runs one piece of work on several threads.

use std::panic::resume_unwind;
use std::thread::{self, Builder};

/// Runs `work` on so many threads, the calling one among them, and returns what each of them says.
/// The threads end with the call. Where no more of them can be had, fewer do the work.
pub fn together<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    if threads < 2 {
        return vec![work()];
    }
    thread::scope(|scope| {
        let others = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, &work).ok());
        let others: Vec<_> = others.collect();
        let mut said = vec![work()];
        for other in others {
            said.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        said
    })
}
