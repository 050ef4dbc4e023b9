//! Remembers the last look at the path of an open log: a reader need not look again while the open file is as it was.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::disk::{DiskFile, FileStamp};
use crate::error::Result;

/// A reader looks at the path again after this time, even if the open file is unchanged.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Two changes within this time may get the same stamp: the clocks of file systems advance in steps.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The last look at a path.
#[derive(Debug, Default)]
pub struct PathLook(Mutex<Option<Look>>);

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    /// The stamp of the open file, which was at the path.
    stamp: FileStamp,
    /// Since when it had this stamp. A later change may have the same one at first.
    since: Instant,
}

impl PathLook {
    /// Whether the log is behind. `look` finds it out by the path, unless the open file shows that nothing changed.
    pub fn is_behind(&self, file: &dyn DiskFile, look: impl FnOnce() -> Result<bool>) -> Result<bool> {
        let (now, last) = (Instant::now(), *self.last());
        let is_recent = last.is_some_and(|last| now - last.at < LOOK_INTERVAL);
        if is_recent && last.is_some_and(|last| last.at - last.since < CLOCK_STEP) {
            return look();
        }
        // Before the look: a change after it has another stamp.
        let stamp = file.stamp();
        let same = last.filter(|last| stamp == Some(last.stamp));
        if is_recent && same.is_some() {
            return Ok(false);
        }
        let is_behind = look()?;
        *self.last() = stamp.filter(|_| !is_behind).map(|stamp| Look {
            at: now,
            stamp,
            since: same.map_or(now, |last| last.since),
        });
        Ok(is_behind)
    }

    fn last(&self) -> MutexGuard<'_, Option<Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;
    use std::sync::Mutex;

    use super::*;
    use crate::disk::Identity;

    struct Stamped(Mutex<FileStamp>);

    impl DiskFile for Stamped {
        fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn length(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn identity(&self) -> io::Result<Identity> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn stamp(&self) -> Option<FileStamp> {
            Some(*self.0.lock().expect("a lock"))
        }
    }

    fn file() -> Stamped {
        Stamped(Mutex::new(FileStamp {
            length: 1,
            links: 1,
            changed: (1, 1),
        }))
    }

    /// Looks until the stamp is old enough to be trusted, then counts the looks of a few calls.
    fn looks(look: &PathLook, file: &Stamped, calls: u32) -> u32 {
        let count = Cell::new(0);
        let ask = || {
            look.is_behind(file, || Ok(count.replace(count.get() + 1) == u32::MAX))
                .expect("a look")
        };
        let began = Instant::now();
        while began.elapsed() < CLOCK_STEP * 2 {
            assert!(!ask());
        }
        count.set(0);
        (0..calls).for_each(|_| assert!(!ask()));
        count.get()
    }

    #[test]
    fn an_unchanged_file_saves_looks_and_a_changed_one_is_looked_for_at_once() {
        let few = (0..20).map(|_| looks(&PathLook::default(), &file(), 1000)).min();
        assert!(few < Some(100), "{few:?}");
        let (look, file) = (PathLook::default(), file());
        looks(&look, &file, 1);
        file.0.lock().expect("a lock").links = 0;
        assert!(look.is_behind(&file, || Ok(true)).expect("a look"));
        // What was found behind is not remembered as good.
        assert!(look.is_behind(&file, || Ok(true)).expect("a look"));
    }

    #[test]
    fn a_stamp_is_not_trusted_while_a_change_may_have_the_same_one() {
        let (look, file, mut count) = (PathLook::default(), file(), 0);
        let began = Instant::now();
        for asked in 1..=100 {
            let behind = look.is_behind(&file, || Ok(std::mem::replace(&mut count, asked) > 100));
            assert!(!behind.expect("a look"));
            assert!(count == asked || began.elapsed() >= CLOCK_STEP);
        }
    }
}
