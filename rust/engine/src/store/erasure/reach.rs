//! Two ways to use the store during an erasure: for moments beside others, or with its lock held.

use super::chosen::Present;
use crate::store::Store;
use crate::store::turns::{Alone, Turns};
use crate::store::upkeep::compact::sync;
use chronolog::error::{Error, Result};
use chronomemory_state::state::unspelled;
use std::cell::RefCell;

/// Whoever can be asked for the store.
pub(super) trait StoreAccess {
    /// Looks at the newest state for a moment.
    ///
    /// # Errors
    /// What `act` says; likewise below.
    fn look<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T>;

    /// Does something under the writer lock; it is told which moment it is.
    ///
    /// # Errors
    /// As `look`.
    fn locked<T>(&self, act: impl FnOnce(&mut Store, i64) -> Result<T>) -> Result<T>;

    /// Syncs what was appended, so that little of it is left to sync under the lock.
    ///
    /// # Errors
    /// `Io`, `Poisoned`.
    fn sync(&self) -> Result<()>;
}

/// Others go on between the moments.
pub(super) struct SharedAccess<'a, T> {
    /// Who has the store.
    pub turns: &'a T,
    /// Which moment it is.
    pub now: &'a dyn Fn() -> i64,
}

impl<T: Turns> StoreAccess for SharedAccess<'_, T> {
    fn look<U>(&self, act: impl FnOnce(&mut Store) -> Result<U>) -> Result<U> {
        self.turns.turn(|store| {
            store.refresh()?;
            store.settle();
            act(store)
        })
    }

    fn locked<U>(&self, act: impl FnOnce(&mut Store, i64) -> Result<U>) -> Result<U> {
        self.turns.turn(|store| {
            let now = (self.now)();
            store.with_lock(now, |store| {
                store.settle();
                act(store, now)
            })
        })
    }

    fn sync(&self) -> Result<()> {
        sync(self.turns)
    }
}

/// The writer lock is held from the first look to the last: whoever writes waits.
pub(super) struct LockedAccess<'a> {
    store: Alone<'a>,
    now: i64,
}

impl<'a> LockedAccess<'a> {
    /// Under the lock: a store that nobody else changes.
    pub fn of(store: &'a mut Store, now: i64) -> Self {
        Self {
            store: Alone::with(store),
            now,
        }
    }
}

impl StoreAccess for LockedAccess<'_> {
    fn look<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        self.locked(|store, _| act(store))
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Store, i64) -> Result<T>) -> Result<T> {
        self.store.turn(|store| {
            store.settle();
            act(store, self.now)
        })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// The present, asked for one record at a time.
pub(super) struct Asking<'a, R> {
    reach: &'a R,
    fault: RefCell<Option<Error>>,
}

impl<'a, R: StoreAccess> Asking<'a, R> {
    /// Whoever asks there.
    pub fn of(reach: &'a R) -> Self {
        Self {
            reach,
            fault: RefCell::default(),
        }
    }

    /// What went wrong meanwhile, if anything did: then nothing that was told counts.
    ///
    /// # Errors
    /// That.
    pub fn check(self) -> Result<()> {
        self.fault.into_inner().map_or(Ok(()), Err)
    }
}

impl<R: StoreAccess> Present for Asking<'_, R> {
    fn record(&self, id: &[u8]) -> Option<Vec<u8>> {
        let asked = self
            .reach
            .look(|store| Ok(store.state.get(&unspelled(id)).map(<[u8]>::to_vec)));
        asked.unwrap_or_else(|fault| {
            self.fault.borrow_mut().get_or_insert(fault);
            None
        })
    }
}
