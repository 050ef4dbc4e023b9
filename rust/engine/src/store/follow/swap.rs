//! Follows from a log that was compacted to the one that took its place, without reading it again.
//!
//! Its handle still reads the old log to its end, and what is known there is what the new log starts from: nothing has to be
//! read again. That counts, because writers follow under the lock and others wait for them.

use crate::store::live_log::LiveLog;
use crate::store::load::loader::Loader;
use chronolog::damage::Tail;
use chronolog::disk::Access;
use chronolog::error::{At, Result};
use chronolog::log::{Log, OpenLog, Site};
use chronolog::origin::{Origin, TrailTold, origin_of};
use chronolog::verify::{BaseState, Walk};
use chronomemory_state::state::State;

/// Shows the state what a log says behind that which it has seen.
///
/// # Errors
/// What reading says; then the log and the state are forgotten.
pub(in crate::store) fn take_in_lines(
    log: &mut Log,
    state: &mut State,
    read: impl FnOnce(&mut Log, &mut Loader) -> Result<Option<Tail>>,
) -> Result<Option<Tail>> {
    let mut loader = Loader::going_on(std::mem::take(state));
    let outcome = read(log, &mut loader);
    *state = loader.state.unwrap_or_default();
    if outcome.is_err() {
        // Half of a piece may have been taken in; the next look starts from nothing, and may need the memory.
        log.forget();
        *state = State::default();
    }
    outcome
}

/// Goes over from a retired log to the one that followed it; false if that is not what happened: then all is read anew.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn follow_swap(site: &Site, log: &mut Log, state: &mut State, threads: usize) -> Result<bool> {
    let path = site.layout.log().to_owned();
    let report = log.report();
    let is_damaged = !report.damage.is_empty() || report.cut.is_some();
    if log.open().is_none() || is_damaged || report.base == BaseState::Unanchored {
        return Ok(false);
    }
    let Ok(file) = site.disk.open(&path, Access::Read) else {
        return Ok(false);
    };
    let length = file.length().at(&path)?;
    let Origin::Ours(sentinel) = origin_of(&*file, length).at(&path)? else {
        return Ok(false);
    };
    // A repair starts from what the files said, which may be less than what is known here. So does a process of version 1, which
    // says no trail: it passes over events that tell of erasures and prunings.
    if sentinel.repaired || sentinel.told.trail == TrailTold::Nothing {
        return Ok(false);
    }
    if !read_old_log(site, log, state, threads)? {
        return Ok(false);
    }
    let live = LiveLog {
        site,
        open: log.open(),
        state,
    };
    if live.head() != sentinel.previous_head || live.last_seq() != sentinel.last_seq {
        return Ok(false);
    }
    let mut walk = Walk::new(None).with_trail();
    walk.latest = log.latest();
    let mut open = OpenLog::reading(file, walk, Origin::Ours(sentinel)).at(&path)?;
    state.forget_events();
    let length = open.file.length().at(&path)?;
    let tail = take_in_lines(log, state, |_, loader| open.go_on(length, threads, loader).at(&path))?;
    let is_whole = tail.is_none() && open.is_whole();
    log.go_over_to_next(open);
    // A tail or a fault is judged by the hint about the last sync, and that takes a look at everything.
    Ok(is_whole)
}

/// Takes in what the old log still held; false if it does not simply go on.
fn read_old_log(site: &Site, log: &mut Log, state: &mut State, threads: usize) -> Result<bool> {
    let Some(open) = log.open() else {
        return Ok(false);
    };
    let length = open.file.length().at(site.log())?;
    let tail = take_in_lines(log, state, |log, loader| log.go_on(length, threads, loader))?;
    Ok(tail.is_none() && log.open().is_some_and(OpenLog::is_whole))
}
