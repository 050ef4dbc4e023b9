//! How does one log take the place of another?
//!
//! Base and archive stand under their final names, synced; then a log of one sentinel that names and hashes them is renamed
//! over `events.wal`: the only commit point. What no sentinel names is garbage, and removed only under the lock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive;
use crate::digest::Hex;
use crate::disk::Access;
use crate::error::{At, Result};
use crate::event::draft::Draft;
use crate::event::{Op, stamp};
use crate::json::Value;
use crate::layout::{base_name, is_history_index};
use crate::origin::{Origin, beginning_of, origin_of};
use crate::snapshot;
use crate::wal::writer::{Lines, Saying};

use super::care::{Scratch, Turns};
use super::copies::free_name;
use super::{Progress, Store};

const SENTINEL_ID: &str = "__compact__";

/// What a sentinel says beside the state that it starts from.
pub(super) struct Retirement {
    /// The sentinel's label.
    pub label: String,
    /// The archive's name and digest, if there is one.
    pub archive: Option<(String, String)>,
    /// More for its data.
    pub more: Vec<(String, Value)>,
}

impl Store {
    /// Writes the present state as a base under its final name.
    pub(super) fn write_base(&mut self, progress: Progress<'_>) -> Result<Hex> {
        let bases = self.layout.bases();
        self.make_folder(&bases, self.layout.folder())?;
        let scratch = Scratch::at(&self.disk, bases.join("new.json.tmp"));
        let mut writer = snapshot::Writer::base(&*self.disk, scratch.path()).at(scratch.path())?;
        let frozen = self.state.freeze();
        writer.add(frozen.records(), progress).at(scratch.path())?;
        let sha256 = writer.finish_base(&self.header()).at(scratch.path())?.sha256;
        scratch.name(&self.layout.base(sha256.text()))?;
        Ok(sha256)
    }

    /// Swaps the log for one sentinel; the base must be there.
    pub(super) fn retire(&mut self, retirement: Retirement, base: Hex, now: i64) -> Result<()> {
        let lines = self.sentinel(retirement, base.text(), now)?;
        self.announce_log(&lines);
        self.replace_log(&lines.bytes)?;
        self.start_over(&lines, now)?;
        // From here on everything is committed. The hint must speak of the new log, durably, before anyone appends to it:
        // others would take its word for it.
        self.make_ready()?;
        if let Some(reached) = self.reached() {
            self.tell_head_now(&reached);
        }
        Ok(())
    }

    fn sentinel(&self, retirement: Retirement, base: &str, now: i64) -> Result<Lines> {
        let mark = self.log.as_ref().map(|log| *log.walk.mark()).unwrap_or_default();
        let number = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
        let text = |text: &str| Value::Str(text.to_owned());
        let (archive, archive_sha256) = match &retirement.archive {
            Some((name, digest)) => (text(name), text(digest)),
            None => (Value::Null, Value::Null),
        };
        let mut data = vec![
            ("archive".to_owned(), archive),
            ("archive_sha256".to_owned(), archive_sha256),
            ("base".to_owned(), text(&base_name(base))),
            ("base_sha256".to_owned(), text(base)),
            ("events".to_owned(), number(mark.events)),
            ("first_seq".to_owned(), number(mark.first_seq.unwrap_or(0))),
            ("last_seq".to_owned(), number(mark.last_seq)),
            ("previous_head".to_owned(), text(&self.head())),
        ];
        data.extend(retirement.more);
        let depth = self.options.recursion_depth;
        let record = Value::object([
            ("id", text(SENTINEL_ID)),
            ("label", Value::Str(retirement.label)),
            ("data", Value::object(data)),
        ]);
        let mut draft = Draft::default();
        draft.upsert_value(&record, depth, None)?;
        let mut link = self.link();
        link.head = None;
        let mut lines = Lines::after(link);
        let change = &draft.changes()[0];
        lines.push(Saying {
            op: Op::Compact,
            id: SENTINEL_ID.as_bytes(),
            record: draft.record(change),
            ts: &stamp::digits(now.max(self.latest())),
            depth,
        });
        Ok(lines)
    }

    /// The memory follows the new log: the records stay, the events are those of the sentinel.
    fn start_over(&mut self, lines: &Lines, now: i64) -> Result<()> {
        let latest = self.latest();
        let path = self.layout.log().to_owned();
        let file = self.disk.open(&path, Access::Write).at(&path)?;
        let length = file.length().at(&path)?;
        let mut walk = crate::verify::Walk::new(None);
        walk.go(
            &*file,
            length,
            crate::origin::ALONE,
            &mut crate::verify::Nobody,
            &mut |_, _| {},
        )
        .at(&path)?;
        walk.latest = latest.max(now);
        self.log = Some(super::Log {
            identity: file.identity().at(&path)?,
            origin: origin_of(&*file, length).at(&path)?,
            file,
            writable: true,
            walk,
            anchored: false,
        });
        self.state.forget_events();
        let seq = lines.link.next_seq - 1;
        self.state.note(super::write::system_event(0, seq));
        self.report.base = crate::verify::BaseState::Anchored;
        self.report.damage.clear();
        self.snapshot_due = super::derived::next_snapshot(self.state.len() as u64);
        Ok(())
    }

    /// The bases and archives that neither this log nor any of its archives names, and rows that the log does not name.
    fn garbage(&self) -> Result<Vec<PathBuf>> {
        let mut found = self.unnamed_rows()?;
        let Some(named) = self.named_files()? else {
            return Ok(found);
        };
        for folder in super::copies::IMMUTABLE {
            let path = self.layout.inside(folder);
            let names = self.disk.list(&path).at(&path)?;
            let unnamed = names.iter().filter(|name| !named.contains(&format!("{folder}/{name}")));
            found.extend(unnamed.map(|name| path.join(name)));
        }
        found.extend(self.orphaned_indexes(&named)?);
        Ok(found)
    }

    /// Indexes of archives that are gone, or about to go.
    fn orphaned_indexes(&self, named: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
        let needed: BTreeSet<PathBuf> = named.iter().map(|name| self.layout.history_index(name)).collect();
        let indexes = self.layout.indexes();
        let names = self.disk.list(&indexes).at(&indexes)?;
        let ours = names.iter().filter(|name| is_history_index(name));
        Ok(ours
            .map(|name| indexes.join(name))
            .filter(|path| !needed.contains(path))
            .collect())
    }

    /// All files that this log and its past name; `None` if the past cannot be followed to its end: then nothing is garbage.
    fn named_files(&self) -> Result<Option<BTreeSet<String>>> {
        let mut named = BTreeSet::new();
        let mut origin = self.log.as_ref().map(|log| log.origin.clone());
        if origin == Some(Origin::Foreign) {
            // Its adopted base is named somewhere inside; finding it is not worth losing it.
            return Ok(None);
        }
        while let Some(Origin::Ours(sentinel)) = origin {
            named.extend(sentinel.base_sha256.map(|sha256| base_name(sha256.text())));
            if sentinel.archive.is_none() {
                return Ok(Some(named));
            }
            let Some((name, _)) = sentinel.safe_archive() else {
                return Ok(None);
            };
            let path = self.layout.inside(name);
            let Ok(archive) = archive::open(&*self.disk, &path) else {
                return Ok(None);
            };
            named.insert(name.to_owned());
            let beginning = archive
                .log
                .length()
                .and_then(|length| beginning_of(&*archive.log, length));
            let earlier = match beginning {
                Ok(beginning) => beginning,
                Err(fault) if archive::damage_in(&fault).is_some() => return Ok(None),
                Err(fault) => return Err(fault).at(&path),
            };
            match &earlier.origin {
                // Something else stands before the first event: who knows what that event was.
                _ if earlier.offset > 0 => return Ok(None),
                Origin::Foreign => return Ok(None),
                Origin::Ours(before) if before.last_seq >= sentinel.last_seq => return Ok(None),
                _ => origin = Some(earlier.origin),
            }
        }
        Ok(Some(named))
    }
}

/// Removes garbage, or puts it aside, one file at a time: nobody waits for more than one.
pub(super) fn clear_out(turns: &impl Turns, aside: Option<&Path>, now: i64) -> Result<()> {
    let garbage = turns.turn(|store| store.garbage())?;
    let disk = turns.turn(|store| Ok(Arc::clone(&store.disk)))?;
    for file in garbage {
        // The handle is closed when nobody waits any more: only then the system takes the file apart.
        let _removed = disk.open(&file, Access::Read).ok();
        turns.turn(|store| {
            // What is derived is not worth keeping.
            let aside = aside.filter(|_| !file.starts_with(store.layout.indexes()));
            store.with_lock(now, |store| {
                // Bases and archives are only named by whoever looks after the store. Rows are named by every writer: now
                // that the lock is held and the log read to its end, it shows whether one has done so since.
                if store.names_rows(&file) {
                    return Ok(());
                }
                match (aside, file.file_name()) {
                    (Some(folder), Some(name)) => {
                        let kept = free_name(&*store.disk, folder, &name.to_string_lossy())?;
                        store.disk.rename(&file, &kept).at(&file)
                    }
                    _ => store.disk.remove(&file).at(&file),
                }
            })
        })?;
    }
    Ok(())
}
