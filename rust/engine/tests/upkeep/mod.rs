//! The long tasks of a store that nobody shares, as methods.

use std::path::PathBuf;

use chronomemory::testing::store::{self, Alone};
use chronomemory::{CopyMade, CopyOrder, Erase, Erased, Layout, Progress, Prune, Pruned, Repaired, Restoring};
use chronomemory::{Result, Store};

pub trait Upkeep {
    fn backup(&mut self, now: i64, progress: Progress<'_>) -> Result<PathBuf>;
    fn compact(&mut self, keep_history: bool, now: i64, progress: Progress<'_>) -> Result<u64>;
    fn copy_out(&mut self, order: &CopyOrder, now: i64, progress: Progress<'_>) -> Result<CopyMade>;
    fn erase(&mut self, order: &Erase, now: i64, progress: Progress<'_>) -> Result<Erased>;
    fn prune(&mut self, order: &Prune, now: i64) -> Result<Pruned>;
    fn repair(&mut self, unproven: bool, now: i64, progress: Progress<'_>) -> Result<Option<Repaired>>;
    fn restore(&mut self, source: &Layout, now: i64, progress: Progress<'_>) -> Result<()>;
}

impl Upkeep for Store {
    fn backup(&mut self, now: i64, progress: Progress<'_>) -> Result<PathBuf> {
        store::backup(&Alone::with(self), &|| now, progress)
    }

    fn compact(&mut self, keep_history: bool, now: i64, progress: Progress<'_>) -> Result<u64> {
        store::compact(&Alone::with(self), keep_history, &|| now, progress)
    }

    fn copy_out(&mut self, order: &CopyOrder, now: i64, progress: Progress<'_>) -> Result<CopyMade> {
        store::copy_out(&Alone::with(self), order, &|| now, progress)
    }

    fn erase(&mut self, order: &Erase, now: i64, progress: Progress<'_>) -> Result<Erased> {
        store::erase(&Alone::with(self), order, &|| now, progress)
    }

    fn prune(&mut self, order: &Prune, now: i64) -> Result<Pruned> {
        store::prune(&Alone::with(self), order, &|| now)
    }

    fn repair(&mut self, unproven: bool, now: i64, progress: Progress<'_>) -> Result<Option<Repaired>> {
        store::repair(&Alone::with(self), unproven, &|| now, progress)
    }

    fn restore(&mut self, source: &Layout, now: i64, progress: Progress<'_>) -> Result<()> {
        store::restore(&Alone::with(self), source, Restoring::default(), &|| now, progress)
    }
}
