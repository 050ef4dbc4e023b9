//! Commits drafts: takes the lock, catches up, checks, writes and syncs.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::options::{Durability, WriterTerms};
use chronolog::error::Result;
use chronolog::event::draft::Draft;
use chronomemory_state::state::{Edition, State};

use super::claims::{check_claims, check_required, has_claims};
use super::spell::{Committed, check_patches};
use crate::store::follow::recover::TailLeft;
use crate::store::spell_ahead::SpelledAhead;
use crate::store::{Store, Syncing};

/// Commits that are written and wait for their common sync.
pub struct Group {
    outcomes: Vec<Result<Committed>>,
    syncing: Option<Syncing>,
    rushed: bool,
}

impl Group {
    /// Waits for the disk, if this group asks for it.
    ///
    /// # Errors
    /// What the disk says; [`Store::end_group`] must hear of it.
    pub fn run(&self) -> Result<()> {
        self.syncing.as_ref().map_or(Ok(()), Syncing::run)
    }
}

impl Store {
    /// Writes a draft as one atomic batch. `now` is in microseconds since 1970.
    ///
    /// # Errors
    /// `Locked` if another writer keeps the lock, `Io`, `Poisoned`, `Closed`, `Invalid`, `TooLarge`, `Limit`; nothing is written then.
    pub fn commit(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.with_lock(now, |store| {
            let committed = store.check_and_write(draft, now)?;
            store.sync_if_due(now)?;
            Ok(committed)
        })
    }

    /// Writes a draft, but leaves a sync that is due in mode `normal` to the caller, who can wait for it while others go on.
    ///
    /// # Errors
    /// As `commit`.
    pub fn commit_unsynced(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        self.with_lock(now, |store| {
            let committed = store.check_and_write(draft, now)?;
            store.sync_if_promised(now)?;
            Ok(committed)
        })
    }

    /// Whether a commit would wait for nobody now: the lock is kept from the one before, so others have added nothing since, and
    /// no sync is promised or overdue.
    pub(in crate::store) fn writes_at_once(&self, now: i64) -> bool {
        self.log.is_leased() && self.is_settled() && !self.syncs_every_commit() && !self.is_sync_due(now)
    }

    /// Begins to spell a batch of so many changes. Drafts of an earlier one come along, if their memory is free again.
    pub fn spell_ahead(&mut self, changes: usize, now: i64) -> (SpelledAhead, Vec<Draft>) {
        let ahead = SpelledAhead::begin(&mut self.log, &self.options, changes, now);
        (ahead, self.pending.take_seen())
    }

    /// Writes a draft in several parts that are one atomic batch, with the lines that were spelled ahead if they still fit.
    ///
    /// # Errors
    /// As `commit`.
    pub fn commit_parts(&mut self, parts: &[Arc<Draft>], ahead: SpelledAhead, now: i64) -> Result<Committed> {
        self.with_lock(now, |store| {
            store.settle();
            let kept = match ahead.checked == Some(store.state.whole_edition()) {
                true => None,
                false => store.check(parts)?,
            };
            let committed = match kept {
                None => store.write_ahead(parts, Some(ahead), now)?,
                Some(kept) => store.write_ahead(&kept, None, now)?,
            };
            store.sync_if_promised(now)?;
            Ok(committed)
        })
    }

    fn sync_if_promised(&mut self, now: i64) -> Result<()> {
        if self.syncs_every_commit() {
            self.sync_if_due(now)?;
        }
        Ok(())
    }

    /// Writes a draft only if none of its records is there yet; `None` if one is.
    ///
    /// # Errors
    /// As `commit`.
    pub fn commit_new(&mut self, draft: &Draft, now: i64) -> Result<Option<Committed>> {
        self.with_lock(now, |store| {
            let mut ids = draft.changes().iter().map(|change| draft.id(change));
            if ids.any(|id| store.state.length_of(id).is_some()) {
                return Ok(None);
            }
            let committed = store.check_and_write(draft, now)?;
            store.sync_if_due(now)?;
            Ok(Some(committed))
        })
    }

    /// Writes several drafts, each an atomic batch of its own, under one lock and in mode `full` with one sync for all.
    /// That sync is the caller's to run, without the store, and then to end with [`Store::end_group`].
    ///
    /// # Errors
    /// As `commit`, for all of them.
    pub fn start_group(&mut self, drafts: &[&Draft], now: i64) -> Result<Group> {
        let rushed = self.begin(TailLeft::MovedAside, now)?;
        if let Err(fault) = self.log.check_is_there() {
            self.log.rest(now, false);
            return Err(fault);
        }
        let outcomes: Vec<Result<Committed>> = drafts.iter().map(|draft| self.check_and_write(draft, now)).collect();
        if !outcomes.iter().all(Result::is_ok) {
            self.log.doubt();
        }
        let syncing = self.start_sync().filter(|_| self.syncs_every_commit());
        Ok(Group {
            outcomes,
            syncing,
            rushed,
        })
    }

    /// Works on the terms of whoever has its turn now, until somebody else has.
    pub fn come_to_terms(&mut self, terms: WriterTerms) {
        self.options.recursion_depth = terms.recursion_depth;
        self.options.durability = terms.durability;
        self.options.lock_timeout = terms.lock_timeout;
        self.options.salt = terms.salt;
        self.log.come_to_terms(terms.durability, terms.lock_timeout);
    }

    /// Whether nothing is acknowledged before it is on disk.
    pub fn syncs_every_commit(&self) -> bool {
        self.options.durability == Durability::Full
    }

    /// Whether what is acknowledged is synced soon, by whoever looks after the store.
    pub(in crate::store) fn syncs_later(&self) -> bool {
        self.options.durability == Durability::Normal
    }

    /// Hears how the sync of a group went, and lets go.
    ///
    /// # Errors
    /// What the sync said: none of the group is acknowledged then.
    pub fn end_group(&mut self, group: Group, synced: Result<()>, now: i64) -> Result<Vec<Result<Committed>>> {
        let told = match &group.syncing {
            Some(syncing) => self.end_sync(syncing, synced),
            None => Ok(()),
        };
        if told.is_err() {
            self.log.forget();
            self.log.doubt();
        }
        self.log.rest(now, group.rushed && told.is_ok());
        told.map(|()| group.outcomes)
    }

    pub(super) fn check_and_write(&mut self, draft: &Draft, now: i64) -> Result<Committed> {
        match self.check(&[draft])?.as_deref() {
            Some([kept]) => self.write(&[kept], now),
            _ => self.write(&[draft], now),
        }
    }

    /// Whether a batch can be written, as far as the records say that it speaks of. It comes back if it is to be written
    /// otherwise than it was given: records that are there keep narrower scopes.
    pub(in crate::store) fn check(&mut self, parts: &[impl Borrow<Draft>]) -> Result<Option<Vec<Arc<Draft>>>> {
        self.settle();
        check_parts(&self.state, parts)
    }

    /// Looks at a batch while it is still being spelled: the edition of the state on which it can be written as it is. `None`
    /// if it cannot, or that cannot be told yet; whoever writes it asks again then, and hears why.
    pub fn check_ahead(&self, parts: &[Arc<Draft>]) -> Option<Edition> {
        let fits = self.is_settled() && matches!(check_parts(&self.state, parts), Ok(None));
        fits.then(|| self.state.whole_edition())
    }
}

fn check_parts(state: &State, parts: &[impl Borrow<Draft>]) -> Result<Option<Vec<Arc<Draft>>>> {
    check_required(state, parts)?;
    let kept = match has_claims(state, parts) {
        true => check_claims(state, parts)?,
        false => None,
    };
    match &kept {
        Some(kept) => check_patches(state, kept)?,
        None => check_patches(state, parts)?,
    }
    Ok(kept)
}
