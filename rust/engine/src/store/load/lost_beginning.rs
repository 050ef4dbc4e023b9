//! Loads what a log starts from if the line that tells it is lost.
//!
//! What is left of the line is tried first, then a line that adopts a base, then what the folder holds that fits. A log of
//! which nothing tells how it began is never taken to begin with nothing: the report says that its base is missing, or at
//! least that what came before is not known.

use std::io;

use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Bytes, DiskFile, Naming};
use chronolog::hint::{Hint, first_line};
use chronolog::layout::{LOG, SNAPSHOT, base_name};
use chronolog::log::files::open_inside;
use chronolog::origin::{Beginning, Origin, foreign_traces};
use chronolog::verify::{BaseState, finding};
use chronomemory_state::snapshot;

use super::base::{Base, BasePlace, Proof};
use super::found::{Traces, mended_sentinel};
use super::loader::Loader;
use super::rebuild::rebuild;
use super::unproven::mark_all;
use super::which_base::{self, Choice, Left};

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
            return self.load_left(place, &traces, loader);
        }
        if let Some(adoption) = foreign_traces(log, length, u64::MAX, Hint::None)?.adoption {
            return self.adopted(place, &adoption, loader);
        }
        let synced = traces.as_ref().and_then(|traces| traces.synced.as_ref());
        let left = Left::of_log(log, length, beginning, synced)?;
        let has_past = |traces: &Traces| traces.has_bases() || !traces.archives.is_empty();
        // Nothing was compacted before its first event, and the line that names the base is an event too.
        let is_late = left.first.is_none_or(|first| first > 2);
        if left.seems_compacted || is_late && traces.as_ref().is_some_and(has_past) {
            let mut found = self.load_unnamed(place, line.as_deref(), beginning, traces.as_ref(), &left, loader)?;
            if found.is_none() {
                self.proof = Proof::Nothing;
                let is_loaded = load_snapshot(place, log, length, &left, loader)?;
                found = is_loaded.then(|| SNAPSHOT.to_owned());
            }
            let more = match (&found, self.proof) {
                (None, _) => ", and nothing in the folder fits".to_owned(),
                (Some(name), Proof::Nothing) => format!(": {name} fits, but nothing proves that it is the one"),
                (Some(name), _) => format!(": {name} was found in its place"),
            };
            let reason = format!("the line that names the base is lost{more}");
            self.state = BaseState::Missing;
            self.damage.push(finding("base", DamageKind::BaseMissing, reason));
            return Ok(());
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
        let left = Left::of_nothing(None);
        if length == 0 || !load_snapshot(place, log, length, &left, loader)? {
            return Ok(());
        }
        self.proof = Proof::Nothing;
        let reason = format!("it holds no whole line, but there were some: {SNAPSHOT} was made of them");
        self.lost = Some(finding(LOG, DamageKind::LogMissing, reason));
        Ok(())
    }

    /// Loads what a line named that is lost, as far as it is found; says what that was.
    fn load_unnamed(
        &mut self,
        place: BasePlace<'_>,
        line: Option<&[u8]>,
        beginning: &Beginning,
        traces: Option<&Traces>,
        left: &Left,
        loader: &mut Loader,
    ) -> io::Result<Option<String>> {
        let choice = match traces {
            Some(traces) => which_base::find(place.disk, place.layout, traces, left)?,
            None => None,
        };
        // Only a log that was compacted has a first line that names something; to try bytes takes time.
        let is_spelled = choice.as_ref().is_some_and(|choice| choice.is_spelled);
        if let Some(line) = line.filter(|_| !is_spelled && traces.is_some_and(Traces::has_bases))
            && let Some(sentinel) = mended_sentinel(line, beginning, traces)
        {
            self.notes
                .push("what the first line said was found again by its hash".to_owned());
            let mut named = Self::default();
            named.named(place, &sentinel, loader)?;
            self.proof = named.proof;
            self.notes.extend(named.notes);
            let name = sentinel.base_sha256.map(|sha256| base_name(sha256.text()));
            return Ok(name.or(Some("base".to_owned())));
        }
        let Some(choice) = choice else { return Ok(None) };
        self.load_choice(place, &choice, loader)?;
        Ok(Some(choice.name))
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
        self.load_left(place, traces, loader)
    }

    /// Loads what a lost log started from.
    fn load_left(&mut self, place: BasePlace<'_>, traces: &Traces, loader: &mut Loader) -> io::Result<()> {
        let left = Left::of_nothing(traces.synced.as_ref());
        match which_base::find(place.disk, place.layout, traces, &left)? {
            Some(choice) => self.load_choice(place, &choice, loader),
            None if loader.is_salvaging() => {
                self.proof = Proof::Nothing;
                load_snapshot(place, &Bytes(Vec::new()), 0, &left, loader).map(|_| ())
            }
            None => Ok(()),
        }
    }

    fn load_choice(&mut self, place: BasePlace<'_>, choice: &Choice, loader: &mut Loader) -> io::Result<()> {
        let name = &choice.name;
        self.proof = Proof::Nothing;
        loader.start_over();
        if let Some(file) = &choice.file {
            loader.take_base(&**file).naming(&place.layout.inside(name))?;
        }
        if choice.is_spelled {
            self.proof = Proof::Fits;
            self.notes.push(format!(
                "the line that names the base is damaged, and still spells the digest of {name}, which is loaded"
            ));
            return Ok(());
        }
        let mut again = Loader::loading();
        let rebuilt = match &choice.before {
            Some(before) => rebuild(place, before, &mut again)?,
            None => None,
        };
        match (rebuilt, &choice.file) {
            (Some(archive), file) if choice.is_met => {
                // The archive is a chain: where base and archive differ, it is right.
                let is_same = file.is_some() && (loader.is_partial() || loader.agrees_with(&again));
                if !is_same && loader.keeps() {
                    loader.replace_state(again);
                }
                self.proof = Proof::Fits;
                self.notes.push(match (is_same, file) {
                    (true, _) => format!(
                        "the line that names the base is lost: {name} fits the archive before it, {archive}, and is loaded"
                    ),
                    (false, Some(_)) => format!(
                        "the line that names the base is lost: {name} fits no archive as the base of, {archive}, and is loaded"
                    ),
                    (false, None) => format!(
                        "the line that names the base is lost, and so is the base: what {archive} adds up to is loaded"
                    ),
                });
                return Ok(());
            }
            (_, Some(file)) if loader.is_salvaging() => {
                loader.take_unproved(&**file).naming(&place.layout.inside(name))?;
            }
            (Some(_), None) if loader.keeps() => {
                if let Some(state) = again.state.as_mut().filter(|_| loader.is_salvaging()) {
                    mark_all(state)?;
                }
                loader.replace_state(again);
            }
            _ => {}
        }
        self.notes.push(format!(
            "the line that names the base is lost: {name} fits and is loaded, but nothing proves that it is the one"
        ));
        Ok(())
    }
}

/// Another tool's compaction left its state in the snapshot, and ours holds all that a log came to: without anything better it
/// is loaded, and said to be unproved. It fits if it was made before the first line, or if the log holds the event that it
/// ends with: then the lines write over it what they say.
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
    if loader.keeps() {
        loader.take_unproved(&*file).naming(&path)?;
    }
    Ok(true)
}
