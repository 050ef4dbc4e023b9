//! The wall clock, random bytes and threads of this machine, which nothing else asks for.

use std::io;
use std::sync::OnceLock;
use std::thread::{Builder, available_parallelism};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Host, Join, Randomness, Work};

/// More threads than this do not make reading a log faster.
const MOST_THREADS: usize = 8;

/// The machine that the process runs on.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    began: Instant,
}

impl Machine {
    /// The random bytes of the operating system.
    #[must_use]
    pub fn randomness() -> Randomness {
        Randomness::of(|bytes| getrandom::fill(bytes).map_err(io::Error::other))
    }

    /// How many threads should share the work of one call. Asked once: the system opens files to find out.
    #[must_use]
    pub fn threads() -> usize {
        static THREADS: OnceLock<usize> = OnceLock::new();
        *THREADS.get_or_init(|| available_parallelism().map_or(1, usize::from).min(MOST_THREADS))
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self { began: Instant::now() }
    }
}

impl Host for Machine {
    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn steady(&self) -> Duration {
        self.began.elapsed()
    }

    fn spawn(&self, name: &str, work: Work) -> io::Result<Join> {
        let thread = Builder::new().name(name.to_owned()).spawn(work)?;
        // A panic in the thread has been reported already; there is nothing to add.
        Ok(Box::new(move || drop(thread.join())))
    }
}
