//! Erases from a copy what was erased here since it was made, before it becomes the log.
//!
//! The copy is opened in a folder that `erasing` names, and the records of which a line was erased here are erased in it. The
//! lines are known by seq and hash alone: the copy is refused if it is no beginning of this log, or if hashes are not kept.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::options::Options;
use crate::store::archives::way::{Hop, KeptLogs, pruned_until};
use crate::store::erasure::chosen::Chosen;
use crate::store::erasure::copies::CopyCheck;
use crate::store::erasure::erase::erase;
use crate::store::erasure::erase::{Erase, is_reserved};
use crate::store::erasure::scan::walk;
use crate::store::files::erasing::{Erasing, remove_draft};
use crate::store::files::proofs::past_files_beside;
use crate::store::follow::LockPurpose;
use crate::store::recovery::judge::verify;
use crate::store::recovery::returning::{KnownErasure, Returning, add_forgotten, known_erasures};
use crate::store::turns::{Alone, Turns};
use crate::store::upkeep::backup::{BackingUp, next_name};
use crate::store::upkeep::history_files::garbage;
use crate::store::{Progress, SealTerms, Store};
use chronolog::digest::Hex;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::event::{Known, Op};
use chronolog::hint::read_hint;
use chronolog::json::{self, Value};
use chronolog::layout::{Layout, is_redacted_name, is_rows_file};
use chronolog::log::files::ours_in;
use chronolog::log::{Durability, Site};
use chronolog::verify::{Report, Sink};
use chronomemory_state::state::unspelled;

pub(super) struct Cleaned {
    pub report: Report,
    /// The event in it that records what was erased in it.
    pub by: u64,
    pub folder: CleaningFolder,
}

/// The folder in which a copy is cleaned. It goes when the copy is restored.
pub(super) struct CleaningFolder {
    site: Arc<Site>,
    folder: PathBuf,
    is_named: bool,
}

impl CleaningFolder {
    /// Under the lock: a new folder, which goes whatever happens.
    fn begin(site: &Arc<Site>, now: i64) -> Result<Self> {
        let backups = site.layout.backups();
        site.make_folder(&backups, site.layout.folder())?;
        let taken = site.disk.list(&backups).at(&backups)?.into_iter();
        let taken = taken.filter_map(|name| Some(name.strip_suffix(".tmp")?.to_owned()));
        let name = next_name(taken, now);
        Erasing {
            base: None,
            remove: vec![format!("backup/{name}.tmp")],
        }
        .write(site)?;
        let draft = Self {
            site: Arc::clone(site),
            folder: backups.join(format!("{name}.tmp")),
            is_named: true,
        };
        site.make_folder(&draft.folder, &backups)?;
        Ok(draft)
    }

    pub fn layout(&self) -> Layout {
        Layout::of_folder(self.folder.clone())
    }

    fn fill(&self, source: &Layout, end: u64, progress: Progress<'_>) -> Result<()> {
        let disk = &self.site.disk;
        let log = disk.open(source.log(), Access::Read).at(source.log())?;
        let reached = read_hint(&**disk, source).at(&source.synced())?;
        let rows = ours_in(&**disk, &source.vectors(), is_rows_file)?;
        let rows = rows.into_iter().map(|name| (name, u64::MAX)).collect();
        let target = self.folder.with_extension("");
        let mut copy = BackingUp::of(disk, source, Some((log, end)), reached, rows, target);
        // The folder goes with this value, and not with the copy.
        copy.is_complete = true;
        copy.write(progress)
    }

    fn is_clean(&mut self) -> Result<()> {
        Erasing::end(&self.site)?;
        self.is_named = false;
        Ok(())
    }

    pub fn take_away(&self) -> Result<()> {
        remove_draft(&*self.site.disk, &self.folder)?;
        self.site.disk.unguard(&self.folder);
        match self.is_named {
            true => Erasing::end(&self.site),
            false => Ok(()),
        }
    }
}

impl Drop for CleaningFolder {
    fn drop(&mut self) {
        // If that fails, the next opening or maintenance removes it.
        let _ = self.take_away();
    }
}

/// Erases in a copy what was erased here since; `None` if nothing of it is there. Errors: `Refused` if that is unknown; `Io`, `Locked`, `Closed`, `Poisoned`.
pub(super) fn clean(
    turns: &impl Turns,
    (source, report): (&Layout, &Report),
    returning: &Returning,
    now: i64,
    progress: Progress<'_>,
) -> Result<Option<Cleaned>> {
    let refused = |why: &str| returning.refused(source, why);
    let told = |fault: Error| match fault {
        Error::Io { .. } | Error::OutOfMemory => fault,
        other => refused(&other.to_string()),
    };
    if let Some(damage) = report.damage.first() {
        return Err(refused(&format!("it is damaged: {damage}")));
    }
    if let Some(one) = returning.own().find(|one| one.is_dropped || one.lines == 0) {
        let seq = one.seq;
        return Err(refused(&format!("no hash is kept of what was erased at event {seq}")));
    }
    // The lock is held meanwhile: another holder would remove the folder as a leftover.
    turns.turn(|store| {
        store.with_lock_to(LockPurpose::Restore, now, |store| {
            store.settle();
            let last = report.head.map(|head| (report.last_seq, head));
            let (mut has_last, mut kept) = (false, KeptNeighbours::default());
            let mut see = |line: LineId, known: &Known<'_>| {
                has_last |= Some(line) == last;
                if known.seq > report.last_seq && returning.are_own() {
                    kept.see(known);
                }
            };
            let here = KeptHistory::read(store, &mut see).map_err(told)?;
            let kept = kept.ids(&here.erased);
            if !has_last && !last.is_some_and(|last| here.erased.contains(&last)) {
                let seq = report.last_seq;
                return Err(refused(&format!(
                    "it is no beginning of this log, whose history that is kept has not its last event, seq {seq}"
                )));
            }
            let mut draft = CleaningFolder::begin(&store.site, now)?;
            draft.fill(source, report.committed_end, progress)?;
            let cleaning = Cleaning {
                layout: draft.layout(),
                options: Options {
                    durability: Durability::Full,
                    exclusive: false,
                    strict: false,
                    attended: false,
                    head_file: None,
                    seal: SealTerms::NEVER,
                    ..store.options.clone()
                },
                here: &here,
                kept,
                returning,
                now,
            };
            let (disk, options) = (Arc::clone(&store.site.disk), cleaning.options.clone());
            let mut copy = Store::open(disk, draft.layout(), options, &mut |_, _| {})?;
            let erased = cleaning.erase_in(&mut copy, progress).map_err(told);
            let closed = copy.close();
            let by = erased?.map_err(|why| refused(&why))?;
            closed?;
            let Some(by) = by else {
                return Ok(None);
            };
            let (disk, threads) = (&*store.site.disk, store.options.threads);
            let report = verify(disk, &draft.layout(), threads, &mut |_, _| {})?;
            if let Some(damage) = report.damage.iter().chain(&report.returned).next() {
                return Err(refused(&format!("what would be left of it does not verify: {damage}")));
            }
            draft.is_clean()?;
            let folder = draft;
            Ok(Some(Cleaned { report, by, folder }))
        })
    })
}

struct Cleaning<'a> {
    layout: Layout,
    options: Options,
    here: &'a KeptHistory,
    /// Records that lost their past here, and stayed: the copy may keep their present.
    kept: HashSet<String>,
    returning: &'a Returning,
    now: i64,
}

#[derive(Default)]
struct ErasedInCopy {
    ids: BTreeSet<String>,
    lines: u64,
}

impl Cleaning<'_> {
    /// What is still said in a copy of what was erased here; and its history.
    fn said_in(&self, copy: &Store) -> Result<(ErasedInCopy, KeptHistory)> {
        let mut said = ErasedInCopy::default();
        let mut see = |line: LineId, known: &Known<'_>| {
            if !self.here.erased.contains(&line) {
                return;
            }
            said.lines += 1;
            let id = unspelled(known.id);
            // An act names records that stay, and a group of rows follows from the records in it.
            if known.op != Op::Act && !is_reserved(&id) {
                said.ids.insert(id);
            }
        };
        let history = KeptHistory::read(copy, &mut see)?;
        Ok((said, history))
    }

    /// Erases it; gives the event that tells of that, or why it cannot be done.
    fn erase_in(&self, copy: &mut Store, progress: Progress<'_>) -> Result<std::result::Result<Option<u64>, String>> {
        copy.with_lock(self.now, |copy| copy.anchor(self.now))?;
        copy.settle();
        let (said, there) = self.said_in(copy)?;
        if let Some(why) = self.unknown_in(&there) {
            return Ok(Err(why));
        }
        if said.lines == 0 {
            return Ok(Ok(None));
        }
        let (again, gone): (Vec<String>, Vec<String>) = said.ids.into_iter().partition(|id| self.kept.contains(id));
        let order = Erase {
            ids: gone.iter().chain(&again).cloned().collect(),
            again,
            reason: self.returning.reason(),
            is_reason_trusted: true,
            ..Erase::default()
        };
        let by = erase(&Alone::with(copy), &order, &|| self.now, progress)?.seq;
        // Nothing of what follows should be found: it is looked for all the same, before anybody relies on it.
        for path in &garbage(copy)? {
            copy.site.disk.remove(path).at(path)?;
        }
        let chosen = Chosen::by(&Erase {
            ids: gone,
            ..Erase::default()
        })?;
        let is_clean = CopyCheck::of(&copy.site, self.options.threads, &chosen).is_copy_clean(self.layout.folder())?;
        let (left, _) = self.said_in(copy)?;
        if left.lines > 0 || !is_clean {
            let lines = left.lines;
            return Ok(Err(format!(
                "{lines} of the lines in it do not tell which record was erased with them"
            )));
        }
        Ok(Ok(by))
    }

    /// Why the lines that are known here do not tell all that has to go from a copy.
    fn unknown_in(&self, there: &KeptHistory) -> Option<String> {
        let here = self.here;
        if !here.is_whole && (there.is_whole || there.first_seq < here.first_seq) {
            return Some("it goes further back than the history that is kept here".to_owned());
        }
        let lines: u64 = self.returning.own().map(|one| one.lines).sum();
        let fresh = here.erased.difference(&there.erased).count() as u64;
        if self.returning.lines_here > here.erased.len() as u64 && lines > fresh {
            return Some(format!("{lines} lines were erased, and only {fresh} hashes are kept"));
        }
        let stranger = there.words.iter().find(|base| !here.bases.contains(*base))?;
        Some(format!(
            "nothing tells what was erased of base/{}.json, with which its history begins",
            stranger.text()
        ))
    }
}

pub(super) type LineId = (u64, Hex);

/// All that a store keeps of what was said, looked through.
#[derive(Default)]
pub(super) struct KeptHistory {
    /// The lines of which nothing else is left.
    pub erased: HashSet<LineId>,
    pub first_seq: u64,
    /// It begins with the first event of all: no base stands before it.
    pub is_whole: bool,
    pub bases: HashSet<Hex>,
    /// Those of them that no kept line adds up to: the first, and unchecked ones.
    pub words: Vec<Hex>,
}

/// Shows every line that is not redacted, and collects the redacted ones.
struct Passing<'a> {
    show: &'a mut dyn FnMut(LineId, &Known<'_>),
    left: Vec<LineId>,
}

impl Sink for Passing<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        let Some(hash) = Hex::read(known.hash) else {
            return;
        };
        let line = (known.seq, hash);
        match known.op == Op::Other && known.id.is_empty() {
            true => self.left.push(line),
            false => (self.show)(line, &known),
        }
    }
}

impl KeptHistory {
    /// Reads all logs of a store, the oldest first, and shows each whole line. Errors: `Busy` for a hole, `Corrupted`, `Io`.
    pub fn read(store: &Store, show: &mut dyn FnMut(LineId, &Known<'_>)) -> Result<Self> {
        let site: &Site = &store.site;
        let Some(open) = store.log.open() else {
            return Err(Error::busy("there is no log"));
        };
        let (live, pruned) = ((&*open.file, open.walk.end), pruned_until(&store.state));
        let logs = KeptLogs::of(site, &open.origin, live, pruned)?;
        let mut history = Self::default();
        let mut passing = Passing { show, left: Vec::new() };
        let threads = store.options.threads;
        for Hop {
            archive, name, length, ..
        } in &logs.retired
        {
            let Some((archive, _)) = archive else { continue };
            let walk = walk(&*archive.log, *length, threads, &mut passing).at(&site.layout.inside(name))?;
            archive.rest();
            // What another tool wrote may look as if nothing were left of it.
            let ranges = &walk.redacted.ranges;
            let is_redacted = |line: &LineId| ranges.iter().any(|&(from, to)| (from..=to).contains(&line.0));
            history.erased.extend(passing.left.drain(..).filter(is_redacted));
        }
        walk(live.0, live.1, threads, &mut passing).at(site.log())?;
        let first = logs.retired.first().map(|log| log.span.unwrap_or_default().0);
        history.first_seq = first.or(open.mark().first_seq).unwrap_or(0);
        history.is_whole = logs.all().next().is_some_and(|first| first.base.1.is_none());
        history.bases = logs.all().filter_map(|log| log.base.1).collect();
        let is_word = |(number, log): (usize, &Hop)| log.base.1.filter(|_| number == 0 || log.is_base_declared());
        history.words = logs.all().enumerate().filter_map(is_word).collect();
        Ok(history)
    }
}

/// The records that erasures kept and wrote again because they had named erased ones.
#[derive(Default)]
pub(super) struct KeptNeighbours {
    ids: HashSet<String>,
    again: HashSet<String>,
    /// Of each erasure, the seqs of the records that it kept, and of those that it was asked to write again.
    windows: Vec<(Range<u64>, Range<u64>)>,
    is_unknown: bool,
}

impl KeptNeighbours {
    /// Takes in the next line of a history.
    pub fn see(&mut self, known: &Known<'_>) {
        if known.op == Op::Erase {
            let value = json::parse(known.record).unwrap_or(Value::Null);
            let count = |name: &str| value.get("data")?.get(name)?.as_u64();
            let first = known.seq + 1;
            match count("kept").zip(count("again")) {
                Some((kept, again)) => self
                    .windows
                    .push((first..first + kept, first + kept..first + kept + again)),
                None => self.is_unknown = true,
            }
        } else if let Some((kept, again)) = self.windows.last_mut() {
            if known.op == Op::Begin && known.seq == kept.start {
                for range in [&mut *kept, &mut *again] {
                    *range = range.start + 1..range.end + 1;
                }
            } else if kept.contains(&known.seq) {
                self.ids.insert(unspelled(known.id));
            } else if again.contains(&known.seq) {
                self.again.insert(unspelled(known.id));
            }
        }
    }

    /// Their ids: none where it is not known which others had to lose their past.
    pub fn ids(self, erased: &HashSet<LineId>) -> HashSet<String> {
        let is_erased = |(seq, _): &LineId| self.windows.iter().any(|(_, again)| again.contains(seq));
        match self.is_unknown || erased.iter().any(is_erased) {
            true => HashSet::new(),
            false => self.ids.difference(&self.again).cloned().collect(),
        }
    }
}

/// The erasures that a store knows of, by its state or by events of its history.
pub(super) fn all_erasures(store: &Store) -> Result<Vec<KnownErasure>> {
    let mut known = known_erasures(&store.state);
    let past = past_files_beside(&store.site, &BTreeSet::new())?;
    if !past.iter().any(|name| is_redacted_name(name)) {
        return Ok(known);
    }
    let mut told = Vec::new();
    let mut see = |_: LineId, event: &Known<'_>| {
        if event.op == Op::Erase {
            told.extend(KnownErasure::read(&unspelled(event.id), event.record));
        }
    };
    match KeptHistory::read(store, &mut see) {
        Err(fault @ (Error::Io { .. } | Error::OutOfMemory)) => return Err(fault),
        // Where the history has a hole, the state tells what it can.
        Err(_) | Ok(_) => add_forgotten(&mut known, told),
    }
    Ok(known)
}
