//! Loads what a log starts from, and reports a log whose first line is damaged or missing.
//!
//! Such a log is never taken to begin with nothing: the report says that its base is missing, or at least that what came before
//! is not known. Only a repair that may believe it takes the newest base of the folder, or the snapshot, in its place.

use std::io;

use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Bytes, DiskFile, Naming};
use chronolog::hint::{Hint, first_line};
use chronolog::layout::{LOG, SNAPSHOT};
use chronolog::log::files::open_inside;
use chronolog::origin::{Beginning, Origin, foreign_traces};
use chronolog::verify::{BaseState, finding};
use chronomemory_state::snapshot;

use super::base::{Base, BasePlace, Proof};
use super::found::Traces;
use super::left::{Left, newest_base};
use super::loader::Loader;

/// There was a log, and it is lost.
fn lost(traces: &Traces, how: &str) -> Damage {
    let reason = format!("{how}, but there was one: {}", traces.tell());
    finding(LOG, DamageKind::LogMissing, reason)
}

impl Base {
    /// Loads what a log starts from.
    ///
    /// # Errors
    /// What the disk says.
    pub fn load(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        beginning: &Beginning,
        hint: Hint,
        loader: &mut Loader,
    ) -> io::Result<()> {
        match &beginning.origin {
            Origin::Ours(sentinel) => self.named(place, sentinel, loader),
            Origin::Foreign => self.foreign(place, log, length, beginning.seq, hint, loader),
            Origin::Nothing if beginning.seq.is_some() && beginning.prev_hash.is_none() => Ok(()),
            Origin::Nothing => self.lost_beginning(place, log, length, beginning, loader),
        }
    }

    /// The first line cannot be read, or there is none.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn lost_beginning(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        beginning: &Beginning,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let line = first_line(log, length)?;
        let traces = Traces::look(place.disk, place.layout)?;
        if line.is_none() && beginning.seq.is_none() {
            let Some(traces) = traces else {
                return self.only_snapshot(place, log, length, loader);
            };
            self.lost = Some(lost(&traces, "it is empty"));
            return self.load_newest(place, log, length, &Left::of_nothing(), loader);
        }
        if let Some(adoption) = foreign_traces(log, length, u64::MAX, Hint::None)?.adoption {
            return self.adopted(place, &adoption, loader);
        }
        let left = Left::of_log(log, length, beginning)?;
        let has_past = |traces: &Traces| traces.has_bases() || !traces.archives.is_empty();
        // Nothing was compacted before its first event, and the line that names the base is an event too.
        let is_late = left.first.is_none_or(|first| first > 2);
        if left.seems_compacted || is_late && traces.as_ref().is_some_and(has_past) {
            let reason = "the line that names the base is lost";
            self.hurt(BaseState::Missing, "base", DamageKind::BaseMissing, reason);
            return self.load_newest(place, log, length, &left, loader);
        }
        let unaccounted = left.unaccounted();
        if unaccounted.is_none() && left.first.is_some() {
            return Ok(());
        }
        if load_snapshot(place, log, length, &left, loader)? {
            let reason =
                "the lines are lost that tell what the log starts from: it fits, but nothing proves what it says";
            self.hurt(BaseState::Missing, SNAPSHOT, DamageKind::BaseMissing, reason);
        } else if let Some(first) = unaccounted {
            let unknown = format!("it is not known what came before event {first}: the first lines are lost");
            self.notes.push(unknown.clone());
            self.unknown = Some(unknown);
        }
        Ok(())
    }

    /// The log holds bytes and no line, and nothing else shows that there was one: but a snapshot is made of events.
    fn only_snapshot(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        loader: &mut Loader,
    ) -> io::Result<()> {
        let left = Left::of_nothing();
        if length == 0 || !load_snapshot(place, log, length, &left, loader)? {
            return Ok(());
        }
        self.proof = Proof::Nothing;
        let reason = format!("it holds no whole line, but there were some: {SNAPSHOT} was made of them");
        self.lost = Some(finding(LOG, DamageKind::LogMissing, reason));
        Ok(())
    }

    /// There is no log, or nothing in it, and something shows that there was one.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn lost_log(
        &mut self,
        place: BasePlace<'_>,
        traces: &Traces,
        loader: &mut Loader,
        how: &str,
    ) -> io::Result<()> {
        self.damage.push(lost(traces, how));
        self.load_newest(place, &Bytes(Vec::new()), 0, &Left::of_nothing(), loader)
    }

    /// For a repair: loads the newest base that the log may have started from, or the snapshot. Nothing proves that it is the
    /// one.
    fn load_newest(
        &mut self,
        place: BasePlace<'_>,
        log: &dyn DiskFile,
        length: u64,
        left: &Left,
        loader: &mut Loader,
    ) -> io::Result<()> {
        self.proof = Proof::Nothing;
        if !loader.is_salvaging() {
            return Ok(());
        }
        let name = match newest_base(place.disk, place.layout, left.first)? {
            Some((name, file)) => {
                loader.take_unproved(&*file).naming(&place.layout.inside(&name))?;
                name
            }
            None if load_snapshot(place, log, length, left, loader)? => SNAPSHOT.to_owned(),
            None => return Ok(()),
        };
        self.notes.push(format!(
            "{name} is loaded, but nothing proves that the log starts from it"
        ));
        Ok(())
    }
}

/// Whether the snapshot may hold what a log started from: it was made before the first line, or the log holds the event that it
/// ends with. A repair loads it.
fn load_snapshot(
    place: BasePlace<'_>,
    log: &dyn DiskFile,
    length: u64,
    left: &Left,
    loader: &mut Loader,
) -> io::Result<bool> {
    let Some(file) = open_inside(place.disk, place.layout, SNAPSHOT)? else {
        return Ok(false);
    };
    let path = place.layout.snapshot();
    let read = snapshot::read(&*file, &mut snapshot::NoTaker).naming(&path)?;
    let Ok(header) = read.header else {
        return Ok(false);
    };
    // A log of which nothing can be read may have begun with nothing, and told all that the snapshot says.
    if left.first.is_none() && !left.seems_compacted && header.seq <= left.lines {
        return Ok(false);
    }
    let hashes = foreign_traces(log, length, header.seq, Hint::None)?.hashes;
    let is_before = left.first.is_none_or(|first| header.seq < first);
    if !is_before && !hashes.iter().any(|hash| hash == header.last_hash.as_bytes()) {
        return Ok(false);
    }
    if loader.is_salvaging() {
        loader.take_unproved(&*file).naming(&path)?;
    }
    Ok(true)
}
