//! Requests that check, compact, copy, erase, repair and configure a store, and their reports.

use std::path::PathBuf;
use std::sync::Arc;

use chronomemory::{
    CopyOrder, Damage, Engine as Core, Erase, HeadStanding, Prune, Quarantined, Repaired, Restoring, Setting, Store,
    Verified, WHY_NOT_RESTORABLE,
};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::Dict;
use crate::boundary::{Callback, detached, detached_reporting};
use crate::engine::Handle;
use crate::requests::{condition_of, item};

/// How many damaged places a report lists: a file of another kind may have one in every line.
const MOST_LISTED: usize = 20_000;

/// Upkeep of an open store.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Upkeep(pub Handle);

#[pymethods]
impl Upkeep {
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Dict<'py>> {
        let (found, short_rows) = self.0.run(py, Core::findings)?;
        let report = verified(py, &found)?;
        report.set_item("short_rows", short_rows)?;
        Ok(report)
    }

    fn in_doubt(&self, py: Python<'_>) -> PyResult<(u64, Vec<String>)> {
        self.0.read(py, |store| Ok(store.state().in_doubt(&self.0.viewer)))
    }

    fn verify<'py>(&self, py: Python<'py>, progress: Callback) -> PyResult<Dict<'py>> {
        let found = detached_reporting(py, progress, |report| self.0.engine.verify(report))?;
        verified(py, &found)
    }

    fn accept_head(&self, py: Python<'_>) -> PyResult<()> {
        self.0.run(py, |engine| engine.change(Store::accept_head))
    }

    fn verify_opened(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.engine.verify_opened())
    }

    fn compact(&self, py: Python<'_>, keep_history: bool, progress: Callback) -> PyResult<u64> {
        detached_reporting(py, progress, |report| self.0.engine.compact(keep_history, report))
    }

    #[pyo3(signature = (order, progress=None))]
    fn erase<'py>(&self, py: Python<'py>, order: &Dict<'py>, progress: Callback) -> PyResult<Dict<'py>> {
        let viewer = &self.0.viewer;
        let condition = condition_of(py, item(order, "condition")?)?;
        let condition = condition.map(|condition| (Arc::clone(viewer), condition));
        let due_at: Option<i64> = item(order, "due_at")?;
        // A sweep of a handle with names changes only records that the handle sees, and so does the erasure of a memory.
        let is_limited = due_at.is_some() || item::<Option<bool>>(order, "only_seen")?.unwrap_or_default();
        let by = (is_limited && !viewer.is_plain()).then(|| Arc::clone(viewer));
        let order = from_items!(Erase, order; ids, scope, reason, drop_history, again, derived, new_backup, dry_run;
            condition: condition, is_reason_trusted: false, due_at: due_at, by: by);
        let erased = detached_reporting(py, progress, |report| self.0.engine.erase(&order, report))?;
        let new_backup = erased.new_backup.map(|path| path.to_string_lossy().into_owned());
        let report = dict!(py, erased; seq, ids, belonging, mentions, lines, unsalted, replaced, again, backups,
            backup_fault, quarantine, copies, unread, missing_copies, done; logs: erased.by_log, new_backup: new_backup);
        Ok(report)
    }

    fn prune<'py>(&self, py: Python<'py>, order: &Dict<'py>) -> PyResult<Dict<'py>> {
        let order = from_items!(Prune, order; before, keep_backups, reason, dry_run;);
        let pruned = self.0.run(py, |engine| engine.prune(&order))?;
        Ok(dict!(py, pruned; seq, archives, last_seq, held, backups))
    }

    fn backup(&self, py: Python<'_>, progress: Callback) -> PyResult<String> {
        let folder = detached_reporting(py, progress, |report| self.0.engine.backup(report))?;
        Ok(folder.to_string_lossy().into_owned())
    }

    fn copy_out<'py>(
        &self,
        py: Python<'py>,
        to: PathBuf,
        keep: Option<u64>,
        progress: Callback,
    ) -> PyResult<Dict<'py>> {
        let order = CopyOrder { to, keep };
        let made = detached_reporting(py, progress, |report| self.0.engine.copy_out(&order, report))?;
        Ok(dict!(py, made; seq, head, bytes, removed; path: made.path.to_string_lossy()))
    }

    fn copies<'py>(&self, py: Python<'py>) -> PyResult<Vec<Dict<'py>>> {
        let copies = self.0.run(py, Core::copies)?.into_iter().map(|copy| {
            Ok(dict!(py, copy; at, seq, head, bytes; path: copy.path.to_string_lossy(),
                verified: copy.is_verified, there: copy.is_there, inside: copy.is_inside))
        });
        copies.collect()
    }

    fn forget_copies(&self, py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<u64> {
        self.0.run(py, |engine| engine.forget_copies(&paths))
    }

    fn restore<'py>(&self, py: Python<'py>, order: &Dict<'py>, progress: Callback) -> PyResult<Option<Dict<'py>>> {
        let source: PathBuf = item(order, "source")?;
        let wanted = from_items!(Restoring, order; damaged, bring_back;);
        let done = detached_reporting(py, progress, |report| self.0.engine.restore(&source, wanted, report))?;
        done.map(|done| repaired(py, Some(&done), &[])).transpose()
    }

    fn repair<'py>(&self, py: Python<'py>, progress: Callback, unproven: bool) -> PyResult<Dict<'py>> {
        let (done, kept) = detached_reporting(py, progress, |report| self.0.engine.repair(unproven, report))?;
        repaired(py, done.as_ref(), &kept)
    }

    fn require(&self, py: Python<'_>, level: &str, wanted: bool) -> PyResult<bool> {
        self.0
            .change(py, |store, now| store.set(&Setting::required(level)?, wanted, now))
    }

    fn create_index(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.0
            .change(py, |store, now| store.set(&Setting::index(path)?, true, now))
    }

    fn drop_index(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.0
            .change(py, |store, now| store.set(&Setting::index(path)?, false, now))
    }

    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.read(py, Setting::indexes)
    }
}

/// The report of a verification.
pub fn verified<'py>(py: Python<'py>, found: &Verified) -> PyResult<Dict<'py>> {
    let (report, fault) = (&found.report, found.fault.as_deref());
    let (remembered, reason) = match &found.standing {
        HeadStanding::Unseen => ("unseen", fault.unwrap_or_default()),
        HeadStanding::Kept => ("kept", ""),
        HeadStanding::Lost(reason) => ("lost", reason.as_str()),
        HeadStanding::Unknown(reason) => ("unknown", reason.as_str()),
        HeadStanding::Unreadable(reason) => ("unreadable", reason.as_str()),
    };
    let notes = PyList::new(py, &report.notes)?;
    if let Some(fault) = fault.filter(|_| found.standing != HeadStanding::Unseen) {
        notes.append(fault)?;
    }
    if report.damage.len() > MOST_LISTED {
        let more = report.damage.len() - MOST_LISTED;
        notes.append(format!("{more} more damaged places are not listed"))?;
    }
    let scopes = report.scopes.iter();
    let scopes = scopes.map(|one| Ok(dict!(py, one; id, seq; kind: one.fault.word())));
    let tail = report.tail.as_ref();
    let tail = tail.map(|tail| Ok::<_, PyErr>(dict!(py, tail; offset, length, reason, events)));
    let report = dict!(py, report; events, first_seq, last_seq, fast_lines, slow_lines, blank_lines, bytes,
        committed_end, cut; valid: report.valid(), base: report.base.word(), damaged_synced: report.is_hint_damaged,
        head: report.head.map_or_else(String::new, |head| head.text().to_owned()), notes: notes,
        damage: damages(py, &report.damage)?, altered_indexes: damages(py, &report.altered)?,
        returned: damages(py, &report.returned)?, tail: tail.transpose()?,
        scopes: scopes.collect::<PyResult<Vec<_>>>()?, remembered: remembered, remembered_reason: reason);
    Ok(report)
}

/// Damaged places, at most [`MOST_LISTED`].
fn damages<'py>(py: Python<'py>, found: &[Damage]) -> PyResult<Vec<Dict<'py>>> {
    let listed = found.iter().take(MOST_LISTED);
    let listed =
        listed.map(|damage| Ok(dict!(py, damage; path, offset, line, seq, reason, id; kind: damage.kind.word())));
    listed.collect()
}

/// The report of a repair; without one nothing was damaged. `found` is what lies in `quarantine/` and is no store.
fn repaired<'py>(py: Python<'py>, done: Option<&Repaired>, found: &[Quarantined]) -> PyResult<Dict<'py>> {
    let kept = found.iter().map(|kept| match kept {
        Quarantined::Tail {
            path,
            offset,
            events,
            first_seq,
            is_next,
        } => Ok(dict!(py; what: "tail", path: path,
            offset: offset, events: events, first_seq: first_seq, restorable: is_next,
            why: (!is_next).then_some(WHY_NOT_RESTORABLE))),
        Quarantined::Hint { path, offset, seq, .. } => {
            Ok(dict!(py; what: "synced", path: path, offset: offset, seq: seq))
        }
    });
    let quarantine = kept.collect::<PyResult<Vec<_>>>()?;
    let report = match done {
        Some(done) => dict!(py, done; kept, records, healed, history_kept, changed, lost, unsettled, unproven;
            damage: damages(py, &done.damage)?, quarantine: quarantine),
        None => dict!(py; damage: [0; 0], kept: None::<&str>, records: None::<u64>, healed: 0, history_kept: true,
            changed: [""; 0], lost: [""; 0], unsettled: [""; 0], unproven: [""; 0], quarantine: quarantine),
    };
    Ok(report)
}
