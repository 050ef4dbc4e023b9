//! Catches up with what others wrote, or reads everything anew.

use super::lost::check_follows;
use super::swap::{follow_swap, take_in_lines};
use crate::store::load::examine::{Examined, ExaminedLog, Look, look_for_lost, look_twice, nothing};
use crate::store::load::loader::Loader;
use crate::store::{Progress, Store};
use chronolog::damage::DamageKind;
use chronolog::error::{At, Error, Result};
use chronolog::layout::LOG;
use chronolog::log::{Log, OpenLog};
use chronolog::verify::finding;

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
    pub(in crate::store) fn reload(&mut self, progress: Progress<'_>) -> Result<()> {
        let path = self.site.layout.log().to_owned();
        let look = Look {
            threads: self.options.threads,
            checking: self.options.checking,
            archives: false,
            is_past: false,
            way: None,
            onlooker: None,
        };
        let seen = look_twice(&*self.site.disk, &self.site.layout, look, Loader::loading, progress).at(&path)?;
        let Some(ExaminedLog {
            file,
            found,
            taker: loader,
        }) = seen
        else {
            let mut loader = Loader::loading();
            let lost =
                look_for_lost(&*self.site.disk, &self.site.layout, self.options.threads, &mut loader).at(&path)?;
            if let (true, Some(damage)) = (self.options.strict, lost.iter().flat_map(|lost| &lost.damage).next()) {
                return Err(Error::Corrupted(Box::new(damage.clone())));
            }
            let is_lost = lost.is_some();
            self.log.read_anew(None, lost.unwrap_or_else(nothing));
            self.state = loader.state.filter(|_| is_lost).unwrap_or_default();
            self.clock.tell_again(&mut self.state);
            self.vectors.forget();
            self.snapshots.read_anew(0);
            return self.log.find_standing();
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
        if self.options.strict {
            let cut = report
                .cut
                .as_deref()
                .map(|reason| finding(LOG, DamageKind::LogMissing, reason));
            if let Some(damage) = report.damage.first().cloned().or(cut) {
                return Err(Error::Corrupted(Box::new(damage)));
            }
        }
        let is_synced = synced == Some(walk.end);
        let open = OpenLog::reading(file, walk, origin).at(&path)?.anchored(anchored);
        self.log.read_anew(Some(open), report);
        self.state = loader.state.unwrap_or_default();
        self.clock.tell_again(&mut self.state);
        self.vectors.forget();
        let on_disk = is_synced.then(|| self.state.changes().watermark());
        self.vectors.on_disk.read_anew(on_disk.unwrap_or_default());
        let events = self.live().events();
        self.snapshots.read_anew(events.max(self.state.len() as u64));
        self.log.find_standing()
    }

    /// Takes in what was appended; anything that does not simply follow means a reload.
    pub(in crate::store) fn catch_up(&mut self) -> Result<()> {
        let Some(length) = self.log.length_at_its_path()? else {
            return match follow_swap(&self.site, &mut self.log, &mut self.state, self.options.threads)? {
                true => {
                    let events = self.live().events();
                    self.snapshots.read_anew(events.max(self.state.len() as u64));
                    Ok(())
                }
                false => {
                    check_follows(&self.site, &self.log)?;
                    self.reload(&mut |_, _| {})
                }
            };
        };
        if !self.log.still_holds(length)? {
            // It was cut, or another log was written over this one.
            check_follows(&self.site, &self.log)?;
            return self.reload(&mut |_, _| {});
        }
        let seen = self.log.look_at_tail()?;
        if self.log.knows_tail(seen.as_ref()) {
            return Ok(());
        }
        let damages = |log: &Log| log.open().map_or(0, |open| open.walk.follower.damage.len());
        let (before, threads) = (damages(&self.log), self.options.threads);
        let tail = take_in_lines(&mut self.log, &mut self.state, |log, loader| {
            log.go_on(length, threads, loader)
        })?;
        let is_tail = self.log.open().is_some_and(|open| open.walk.follower.tail.is_some());
        if damages(&self.log) > before || is_tail {
            self.reload(&mut |_, _| {})?;
            // The same before and after: then it was this that was loaded.
            let now = self.log.look_at_tail()?;
            self.log.know_tail(now.filter(|now| seen.as_ref() == Some(now)));
            return Ok(());
        }
        self.log.set_tail(tail);
        Ok(())
    }
}
