//! How does a log become short without losing its evidence?
//!
//! Base and archive first, under their final names; then a log of one sentinel that names and hashes them; its rename over
//! `events.wal` is the only commit point. What no sentinel names is garbage, and removed only under the lock.

use std::collections::BTreeSet;
use std::path::Path;

use crate::disk::Access;
use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::event::{Op, stamp};
use crate::json::Value;
use crate::layout::{archive_name, base_name};
use crate::origin::{Origin, beginning_of, origin_of};
use crate::snapshot;
use crate::wal::writer::{Lines, Saying};

use super::copies::{copy_range, with_suffix};
use super::{Progress, Store};

const SENTINEL_ID: &str = "__compact__";

/// What a sentinel says beside the history it names.
pub(super) struct Retirement {
    /// The sentinel's label.
    pub label: String,
    /// The archive's name and digest, if there is one.
    pub archive: Option<(String, String)>,
    /// More for its data.
    pub more: Vec<(String, Value)>,
}

impl Store {
    /// Retires the log; gives the number of events that it held.
    ///
    /// # Errors
    /// `Corrupted` if the log is damaged (it must be repaired first), `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn compact(&mut self, keep_history: bool, now: i64, progress: Progress<'_>) -> Result<u64> {
        self.with_lock(now, |store| {
            if let Some(damage) = store.report.damage.first() {
                return Err(Error::Corrupted(Box::new(damage.clone())));
            }
            store.anchor(now)?;
            let Some(log) = &store.log else {
                return Ok(0);
            };
            let events = log.walk.mark().events;
            // A log of one sentinel has nothing to retire, unless the history that it names is to be dropped.
            let is_short = match &log.origin {
                Origin::Ours(sentinel) => events <= 1 && (keep_history || sentinel.archive.is_none()),
                _ => events == 0,
            };
            if is_short {
                return Ok(0);
            }
            store.sync_log()?;
            let archive = if keep_history {
                Some(store.archive_log(progress)?)
            } else {
                None
            };
            let retirement = Retirement {
                label: format!("Compacted at seq={}", store.last_seq()),
                archive,
                more: Vec::new(),
            };
            store.retire(retirement, now, progress)?;
            store.clear_out(None)?;
            Ok(events)
        })
    }

    /// Copies the log into `archive/`; gives the name and the digest.
    fn archive_log(&mut self, progress: Progress<'_>) -> Result<(String, String)> {
        let archives = self.layout.archives();
        self.disk.create_dir(&archives).at(&archives)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        let Some(log) = &self.log else {
            return Err(Error::Closed);
        };
        let mark = log.walk.mark();
        let draft = archives.join("new.wal");
        let digest = copy_range(&*self.disk, &*log.file, 0..log.walk.end, &draft, Some(progress))?;
        let name = archive_name(mark.first_seq.unwrap_or(0), mark.last_seq, digest.text());
        let path = self.layout.inside(&name);
        self.disk.rename(&draft, &path).at(&path)?;
        self.disk.sync_dir(&archives).at(&archives)?;
        Ok((name, digest.text().to_owned()))
    }

    /// Writes the base, swaps the log for one sentinel and tidies up behind it.
    pub(super) fn retire(&mut self, retirement: Retirement, now: i64, progress: Progress<'_>) -> Result<()> {
        let bases = self.layout.bases();
        self.disk.create_dir(&bases).at(&bases)?;
        self.disk.sync_dir(self.layout.folder()).at(self.layout.folder())?;
        let draft = with_suffix(&bases.join("new.json"), ".tmp");
        let frozen = self.state.freeze();
        let written = snapshot::write(&*self.disk, &draft, &self.header(), frozen.records(), progress).at(&draft)?;
        written.file.sync().at(&draft)?;
        let sha256 = written.sha256;
        drop(frozen);
        let path = self.layout.base(sha256.text());
        self.disk.rename(&draft, &path).at(&path)?;
        self.disk.sync_dir(&bases).at(&bases)?;

        let lines = self.sentinel(retirement, sha256.text(), now)?;
        self.replace_log(&lines.bytes)?;
        self.start_over(&lines, now)?;
        // From here on everything is committed; what follows can be done again by the next writer.
        self.sync_log()?;
        if let Some(reached) = self.reached() {
            self.tell_head_now(&reached);
        }
        self.write_durable_snapshot()
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

    /// Removes bases and archives that no sentinel of this log or of its archives names, or puts them aside.
    pub(super) fn clear_out(&mut self, aside: Option<&Path>) -> Result<()> {
        let Some(named) = self.named_files()? else {
            return Ok(());
        };
        for folder in ["base", "archive"] {
            let path = self.layout.inside(folder);
            for name in self.disk.list(&path).at(&path)? {
                if !named.contains(&format!("{folder}/{name}")) {
                    let file = path.join(&name);
                    match aside {
                        Some(folder) => self.disk.rename(&file, &folder.join(&name)).at(&file)?,
                        None => self.disk.remove(&file).at(&file)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// All files that this log and its past name; `None` if the past cannot be followed to its end: then nothing is garbage.
    fn named_files(&self) -> Result<Option<BTreeSet<String>>> {
        let mut named = BTreeSet::new();
        let mut origin = self.log.as_ref().map(|log| log.origin.clone());
        while let Some(Origin::Ours(sentinel)) = origin {
            named.extend(sentinel.base_sha256.map(|sha256| base_name(sha256.text())));
            if sentinel.archive.is_none() {
                return Ok(Some(named));
            }
            let Some((name, _)) = sentinel.safe_archive() else {
                return Ok(None);
            };
            let path = self.layout.inside(name);
            let Ok(file) = self.disk.open(&path, Access::Read) else {
                return Ok(None);
            };
            named.insert(name.to_owned());
            let length = file.length().at(&path)?;
            let earlier = beginning_of(&*file, length).at(&path)?;
            match &earlier.origin {
                // Something else stands before the first event: who knows what that event was.
                _ if earlier.offset > 0 => return Ok(None),
                // Its adopted base is named somewhere inside; finding it is not worth losing it.
                Origin::Foreign => return Ok(None),
                Origin::Ours(before) if before.last_seq >= sentinel.last_seq => return Ok(None),
                _ => origin = Some(earlier.origin),
            }
        }
        Ok(Some(named))
    }
}
