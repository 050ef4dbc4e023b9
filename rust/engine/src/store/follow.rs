//! How does the memory follow the files?

use super::derived;
use super::load::{Examined, Look, Seen, look_for_lost, look_twice, nothing};
use super::loader::Loader;
use super::{Progress, Store, vectors};
use crate::damage::Tail;
use crate::error::{At, Error, Result};
use crate::log::{Log, OpenLog};
use crate::state::State;

impl Store {
    /// Reads what others committed since.
    ///
    /// # Errors
    /// `Io`, `Closed`.
    pub fn refresh(&mut self) -> Result<()> {
        self.check_open()?;
        // What this store writes itself is not news to it.
        let is_writing = self.log.is_locked() && self.log.is_prepared();
        if !is_writing && self.is_behind()? {
            self.catch_up()?;
        }
        Ok(())
    }

    /// Whether others changed the files since the last look: a few system calls, no reading.
    ///
    /// # Errors
    /// `Io`, `Closed`.
    pub fn is_behind(&self) -> Result<bool> {
        self.check_open()?;
        self.log.is_behind()
    }

    /// Forgets the memory and loads base and log anew.
    pub(super) fn reload(&mut self, progress: Progress<'_>) -> Result<()> {
        let path = self.layout.log().to_owned();
        let look = Look {
            threads: self.options.threads,
            checking: self.options.checking,
            archives: false,
        };
        let seen = look_twice(&*self.disk, &self.layout, look, Loader::loading, progress).at(&path)?;
        let Some(Seen {
            file,
            found,
            taker: loader,
        }) = seen
        else {
            let mut loader = Loader::loading();
            let lost = look_for_lost(&*self.disk, &self.layout, self.options.threads, &mut loader).at(&path)?;
            if let (true, Some(damage)) = (self.options.strict, lost.iter().flat_map(|lost| &lost.damage).next()) {
                return Err(Error::Corrupted(Box::new(damage.clone())));
            }
            let is_lost = lost.is_some();
            self.log.read_anew(None, lost.unwrap_or_else(nothing));
            self.state = loader.state.filter(|_| is_lost).unwrap_or_default();
            self.vectors = vectors::Vectors::default();
            self.snapshot_due = derived::FIRST_SNAPSHOT_EVENTS;
            return self.log.head.find_standing();
        };
        let Examined {
            walk,
            report,
            origin,
            anchored,
            synced,
            proof: _,
            unknown: _,
        } = found;
        if let (true, Some(damage)) = (self.options.strict, report.damage.first()) {
            return Err(Error::Corrupted(Box::new(damage.clone())));
        }
        let is_synced = synced == Some(walk.end);
        let open = OpenLog::reading(file, walk, origin).at(&path)?.anchored(anchored);
        self.log.read_anew(Some(open), report);
        if self.log.report.cut.is_some() && self.was_cut_by_restore()? {
            self.log.report.cut = None;
        }
        self.state = loader.state.unwrap_or_default();
        self.vectors = vectors::Vectors::default();
        let said = if is_synced { self.state.rows_named().len() } else { 0 };
        self.rows_on_disk.read_anew(said);
        self.snapshot_due = derived::next_snapshot(self.events().max(self.state.len() as u64));
        self.log.head.find_standing()
    }

    /// Takes in what was appended; anything that does not simply follow means a reload.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        let Some(length) = self.log.length_at_its_path()? else {
            return match self.follow_swap()? {
                true => Ok(()),
                false => {
                    self.check_follows()?;
                    self.reload(&mut |_, _| {})
                }
            };
        };
        if !self.log.still_holds(length)? {
            // It was cut, or another log was written over this one.
            self.check_follows()?;
            return self.reload(&mut |_, _| {});
        }
        let seen = self.log.look_at_tail()?;
        if self.log.knows_tail(seen.as_ref()) {
            return Ok(());
        }
        let damages = |log: &Log| log.open().map_or(0, |open| open.walk.follower.damage.len());
        let (before, threads) = (damages(&self.log), self.options.threads);
        let tail = self.take_in_lines(|log, loader| log.go_on(length, threads, loader))?;
        let is_tail = self.log.open().is_some_and(|open| open.walk.follower.tail.is_some());
        if damages(&self.log) > before || is_tail {
            self.reload(&mut |_, _| {})?;
            // The same before and after: then it was this that was loaded.
            let now = self.log.look_at_tail()?;
            self.log.know_tail(now.filter(|now| seen.as_ref() == Some(now)));
            return Ok(());
        }
        self.log.report.tail = tail;
        Ok(())
    }

    /// Shows the state what a log says behind that which it has seen.
    pub(super) fn take_in_lines(
        &mut self,
        read: impl FnOnce(&mut Log, &mut Loader) -> Result<Option<Tail>>,
    ) -> Result<Option<Tail>> {
        let mut loader = Loader::going_on(std::mem::take(&mut self.state));
        let outcome = read(&mut self.log, &mut loader);
        self.state = loader.state.unwrap_or_default();
        if outcome.is_err() {
            // Half of a piece may have been taken in; the next look starts from nothing, and may need the memory.
            self.log.forget();
            self.state = State::default();
        }
        outcome
    }
}
