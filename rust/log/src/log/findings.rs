//! What the last look at a log found, and what became of that since.

use crate::damage::{Damage, DamageKind, Tail};
use crate::error::{Error, Result};
use crate::layout::LOG;
use crate::remembered::{HeadStanding, SeenHead};
use crate::verify::{BaseState, Report, finding};
use crate::wal::synced::Synced;

use super::body::Log;
use super::head_note::HeadNote;
use super::loss::gone;
use super::open::OpenLog;

impl Log {
    /// What the last look found.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Adds to it what is worth knowing.
    pub fn note(&mut self, note: String) {
        self.report.notes.push(note);
    }

    /// Adds to it which files are back that an erasure took away.
    pub fn note_returned(&mut self, found: Vec<Damage>) {
        self.report.returned = found;
    }

    /// Says what is wrong with it; nothing, once that was put right.
    pub fn set_damage(&mut self, damage: Vec<Damage>) {
        self.report.damage = damage;
    }

    /// Says which bytes lie behind its end.
    pub fn set_tail(&mut self, tail: Option<Tail>) {
        self.report.tail = tail;
    }

    /// The state that it starts from has its anchor now.
    pub fn set_adopted(&mut self) {
        self.report.base = BaseState::Adopted;
    }

    /// What comes next goes on from the log that took the place of this one, and starts from all that is known of it.
    pub fn go_over_to_next(&mut self, open: OpenLog) {
        self.go_over(open);
        self.report.base = BaseState::Anchored;
        self.report.tail = None;
    }

    /// Takes it for whole although its end was lost; says whether it was.
    pub fn accept_cut(&mut self) -> bool {
        self.report.cut.take().is_some()
    }

    /// The note about its head.
    pub fn head(&self) -> &HeadNote {
        &self.head
    }

    /// Finds out how it stands to that note.
    pub fn find_standing(&mut self) -> Result<()> {
        self.head.find_standing()
    }

    /// Under the lock: takes its head, or that there is none, for the right one.
    pub fn accept_head(&mut self, reached: Option<SeenHead>) -> Result<()> {
        self.head.accept(reached)
    }

    /// A log that is lost has no history, and nothing may be written that would begin another one.
    pub fn check_is_there(&self) -> Result<()> {
        let mut damage = self.report.damage.iter();
        if let Some(lost) = damage.find(|damage| damage.kind == DamageKind::LogMissing) {
            return Err(Error::Corrupted(Box::new(lost.clone())));
        }
        // Whoever holds the lock does not look around between two reads.
        match self.open.as_ref().filter(|open| open.is_cut()).and(self.reached()) {
            Some(known) => Err(gone(&self.site, &known)),
            None => Ok(()),
        }
    }

    /// Takes a log for the right one that another had taken the place of, if there is an event in it; says whether it was such.
    pub fn accept_replaced(&mut self) -> bool {
        let is_missing = |damage: &Damage| damage.kind == DamageKind::LogMissing;
        let is_it =
            self.report.damage.iter().any(is_missing) && self.open.as_ref().is_some_and(|log| log.mark().events > 0);
        if is_it {
            self.report.damage.retain(|damage| !is_missing(damage));
        }
        is_it
    }

    /// Nothing is written behind a log that has lost its end, or whose last line is not part of the chain: what was there
    /// could not be put back any more without losing what was written since. Nor is anything written on top of a base that is
    /// not the one that the log names: conditional writes and patches would build on it.
    pub fn check_end_is_known(&self) -> Result<()> {
        let is_of_base = |damage: &&Damage| damage.kind.is_of_base();
        if let Some(base) = self.report.damage.iter().find(is_of_base) {
            let reason = format!(
                "{}; nothing is written before repair() has restored the state that the log starts from, or restore() a backup",
                base.reason
            );
            return Err(Error::Corrupted(Box::new(Damage { reason, ..base.clone() })));
        }
        let Some(open) = &self.open else { return Ok(()) };
        let follower = &open.walk.follower;
        let is_adrift = || follower.mark.gap || follower.mark.highest_seq > follower.mark.last_seq;
        let last = follower.damage.last().filter(|_| is_adrift());
        let damage = match (&self.report.cut, last) {
            (Some(reason), _) => finding(LOG, DamageKind::LogMissing, reason.as_str()),
            (None, Some(last)) => last.clone(),
            (None, None) => return Ok(()),
        };
        let reason = format!("{}; nothing is written behind that before a repair", damage.reason);
        Err(Error::Corrupted(Box::new(Damage { reason, ..damage })))
    }

    /// A log that has lost its end, or took the place of another, is not compacted: what lies around it may be all that is
    /// left of the one that was here.
    pub fn check_head_is_kept(&mut self) -> Result<()> {
        self.check_end_is_known()?;
        self.head.find_standing()?;
        match self.head.standing() {
            HeadStanding::Lost(reason) => Err(Error::Corrupted(Box::new(finding(LOG, DamageKind::LogMissing, reason)))),
            _ => Ok(()),
        }
    }

    /// That the log is gone which was known so far.
    pub fn gone(&self, known: &Synced) -> Error {
        gone(&self.site, known)
    }
}
