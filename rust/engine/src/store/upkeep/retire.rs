//! Puts a new log in the place of another, by one rename.
//!
//! Base and archive stand under their final names, synced; then a log of one sentinel that names and hashes them is renamed
//! over `events.wal`: the only commit point. What no sentinel names is garbage, and removed only under the lock.

use chronolog::digest::Hex;
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::salt::{self, SaltTerms};
use chronolog::event::{Op, stamp};
use chronolog::json::Value;
use chronolog::layout::{NEW_BASE, base_name};
use chronolog::log::files::Scratch;
use chronolog::log::{Log, OpenLog, Site};
use chronolog::origin::{Origin, Repair};
use chronolog::wal::writer::{EventBody, Lines};
use chronomemory_state::snapshot::BaseWriter;
use chronomemory_state::state::State;

use crate::store::files::snapshots::header_of;
use crate::store::write::pending::system_event;
use crate::store::{Progress, Store};

const SENTINEL_ID: &str = "__compact__";

/// What a sentinel says beside the state that it starts from.
pub(in crate::store) struct Retirement {
    /// The sentinel's label.
    pub label: String,
    /// The archive's name and digest, if there is one.
    pub archive: Option<(String, String)>,
    /// More for its data.
    pub more: Vec<(String, Value)>,
    /// The repair that it comes from.
    pub repair: Option<Repair>,
    /// The trail goes on. Behind a repair the state is its own word, and where a history was dropped a trail over it would be
    /// a way to guess: there it begins anew.
    pub goes_on: bool,
}

impl Retirement {
    /// The line that a new log begins with.
    pub(in crate::store) fn sentinel(self, log: &Log, base: &str, depth: i64, now: i64) -> Result<Lines> {
        let mark = log.open().map(|log| *log.mark()).unwrap_or_default();
        let number = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
        let text = |text: &str| Value::Str(text.to_owned());
        let (archive, archive_sha256) = match &self.archive {
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
            ("previous_head".to_owned(), text(&header_of(log).last_hash)),
        ];
        let trail = log.open().and_then(OpenLog::trail).filter(|_| self.goes_on);
        if let Some(trail) = trail {
            data.push(("trail".to_owned(), text(trail.value.text())));
            data.push(("trail_from".to_owned(), number(trail.from)));
        }
        data.extend(self.more);
        let repairs: Vec<Value> = repairs(log).chain(self.repair).map(|repair| repair.value()).collect();
        if !repairs.is_empty() {
            data.push(("repairs".to_owned(), Value::Array(repairs)));
        }
        let record = Value::object([
            ("id", text(SENTINEL_ID)),
            ("label", Value::Str(self.label)),
            ("data", Value::object(data)),
        ]);
        let mut draft = Draft::default();
        draft.upsert_value(&record, depth, None)?;
        let mut link = log.link();
        link.head = None;
        let mut lines = Lines::after(link);
        let change = &draft.changes()[0];
        lines.push(EventBody {
            op: Op::Compact,
            id: SENTINEL_ID.as_bytes(),
            record: draft.record(change),
            ts: &stamp::digits(now.max(log.latest())),
            depth,
        });
        Ok(lines)
    }

    /// Swaps the log for one sentinel; the base must be there.
    pub(in crate::store) fn carry_out(self, store: &mut Store, base: Hex, now: i64) -> Result<()> {
        let lines = self.sentinel(&store.log, base.text(), store.options.recursion_depth, now)?;
        store.log.retire(&lines, now)?;
        // The memory follows the new log: the records stay, the events are those of the sentinel.
        store.state.forget_events();
        store.state.note(system_event(0, lines.link.next_seq - 1), now);
        store.snapshots.read_anew(store.state.len() as u64);
        // From here on everything is committed. The hint must speak of the new log, durably, before anyone appends to it:
        // others would take its word for it.
        store.make_ready()?;
        store.log.tell_head();
        Ok(())
    }
}

/// The repairs that the present log tells of.
fn repairs(log: &Log) -> impl Iterator<Item = Repair> {
    let known = match log.open().map(|log| &log.origin) {
        Some(Origin::Ours(sentinel)) => sentinel.repairs.clone(),
        _ => Vec::new(),
    };
    known.into_iter()
}

/// Writes a state as a base under its final name.
///
/// # Errors
/// `Io`, `OutOfMemory`.
pub(in crate::store) fn write_base(
    site: &Site,
    log: &Log,
    state: &mut State,
    salts: Option<SaltTerms<'_>>,
    progress: Progress<'_>,
) -> Result<Hex> {
    let (header, salt, frozen) = (header_of(log), base_salt(salts)?, state.freeze()?);
    let bases = site.layout.bases();
    site.make_folder(&bases, site.layout.folder())?;
    let scratch = Scratch::at(&site.disk, bases.join(NEW_BASE));
    let mut writer = BaseWriter::create(&*site.disk, scratch.path()).at(scratch.path())?;
    writer.add(frozen.rows(), progress).at(scratch.path())?;
    let sha256 = writer.finish(&header, salt.as_deref()).at(scratch.path())?.sha256;
    scratch.name(&site.layout.base(sha256.text()))?;
    Ok(sha256)
}

/// What keeps the digest of a base from being guessed, if there is anything.
pub(in crate::store) fn base_salt(salts: Option<SaltTerms<'_>>) -> Result<Option<String>> {
    salts
        .map(|terms| salt::of_base(terms.source))
        .transpose()
        .map_err(Error::randomness)
}
