//! Verifies in the background what an opening took from segments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Store;
use super::turns::Turns;
use chronolog::archive::file_digest;
use chronolog::digest::Hex;
use chronolog::disk::{Access, DiskFile};
use chronolog::error::Result;
use chronolog::event::Known;
use chronolog::log::Site;
use chronolog::origin::Origin;
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::state::StateId;

/// How far the chain was verified since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedChain {
    /// Up to this event; `None` while what segments hold is not verified.
    pub seq: Option<u64>,
    /// When that was finished in the background; `None` if it was verified when the store was opened.
    pub at: Option<i64>,
    /// The background verification has not finished.
    pub is_pending: bool,
}

pub(in crate::store) struct Verification {
    log: Arc<dyn DiskFile>,
    until: u64,
    head: Hex,
    seq: u64,
    base: Option<Hex>,
    site: Arc<Site>,
    state_id: StateId,
}

impl Verification {
    /// Reads the log and its base; `None` if it was stopped before the end. `progress` is called after each piece.
    pub fn run(&self, reading: Reading, stopped: &AtomicBool, progress: &mut dyn FnMut()) -> Option<bool> {
        let mut walk = Walk::new(None);
        let mut sink = Stoppable(stopped);
        let read = walk.go_with_progress(&*self.log, self.until, reading, &mut sink, &mut |_, _| progress());
        if stopped.load(Ordering::Relaxed) {
            return None;
        }
        let is_whole = read.is_ok_and(|tail| tail.is_none())
            && walk.follower.damage.is_empty()
            && walk.mark().head.is_some_and(|head| head == self.head);
        let is_base = |sha256: &Hex| {
            let base = self.site.disk.open(&self.site.layout.base(sha256.text()), Access::Read);
            base.and_then(|base| file_digest(&*base))
                .is_ok_and(|found| found == *sha256)
        };
        Some(is_whole && self.base.as_ref().is_none_or(is_base))
    }
}

struct Stoppable<'a>(&'a AtomicBool);

impl Sink for Stoppable<'_> {
    fn count(&mut self, _: Known<'_>, _: i64) {}

    fn minds_salt(&self, _: &[u8]) -> bool {
        false
    }

    fn is_satisfied(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Verifies what an opening took without a check, unless that was done, before new authoritative files are made from it. Damage is reported
/// as if it had been found when the store was opened.
///
/// # Errors
/// `Io`, `Closed`.
pub fn verify_opened(turns: &impl Turns, now: i64) -> Result<()> {
    let (work, threads) = turns.turn(|store| {
        store.refresh()?;
        Ok((unverified(store), store.options.threads))
    })?;
    let run = |work: &Verification| work.run(Reading::new(threads), &AtomicBool::new(false), &mut || {});
    let Some((work, is_whole)) = work.and_then(|work| run(&work).map(|is_whole| (work, is_whole))) else {
        return Ok(());
    };
    turns.turn(|store| {
        end_verifying(store, &work, is_whole, now);
        store.refresh()
    })
}

/// What the background verification has to read, if anything.
pub(in crate::store) fn start_verifying(store: &Store) -> Option<Verification> {
    unverified(store).filter(|_| store.verified.is_pending)
}

/// What has not been verified since the store was opened.
fn unverified(store: &Store) -> Option<Verification> {
    let log = store.log.open().filter(|_| store.verified.seq.is_none())?;
    let base = match &log.origin {
        Origin::Ours(sentinel) => sentinel.base_sha256,
        _ => None,
    };
    Some(Verification {
        site: Arc::clone(&store.site),
        log: Arc::clone(&log.file),
        until: log.walk.end,
        head: log.mark().head.unwrap_or(Hex::spell(&[0; 32])),
        seq: log.mark().last_seq,
        base,
        state_id: store.state.changes().state_id().clone(),
    })
}

/// Takes the outcome of a verification. If the log or its base is not what was sealed, the next call reads all of it and reports
/// what is damaged.
pub(in crate::store) fn end_verifying(store: &mut Store, work: &Verification, is_whole: bool, now: i64) {
    if *store.state.changes().state_id() != work.state_id {
        return;
    }
    if !is_whole {
        return distrust(store);
    }
    store.verified = VerifiedChain {
        seq: Some(work.seq),
        at: Some(now),
        is_pending: false,
    };
}

/// What was not verified is not used for answers any more: the next call reads and checks the whole log.
pub(in crate::store) fn distrust(store: &Store) {
    // Segments without names were made from a log that was read and checked.
    if let Some(sealed) = store.state.slots.sealed().filter(|sealed| sealed.named_len() > 0) {
        sealed.mark().store(true, Ordering::Relaxed);
    }
    if store.verified.seq.is_none() {
        store.is_distrusted.store(true, Ordering::Relaxed);
    }
}
