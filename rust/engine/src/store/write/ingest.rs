//! Loads many rows in bulk, without an object for each.

use std::io;
use std::path::Path;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::claims::refused_claims;
use super::commit::Committed;
use crate::store::Store;
use chronolog::digest::sha256;
use chronolog::disk::{Access, Bytes, DiskFile, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::{Author, Draft};
use chronolog::event::draft_value::JsonFields;
use chronolog::event::faces::{ERASURES, VECTORS, face_of};
use chronolog::json::{self, MAX_LINE_BYTES, Value};
use chronolog::ordered::in_order;
use chronolog::wal::reader::reach_newline;
use chronomemory_search::blocks::{BlockMisfit, misfit};
use chronomemory_state::state::unspelled;

const PIECE_BYTES: u64 = 2 * 1024 * 1024;

const ID_DIGITS: usize = 32;

/// Where rows come from.
#[derive(Clone, Debug)]
pub enum RowSource<'a> {
    /// A file.
    File(&'a Path),
    /// Whole lines that the caller has read.
    Text {
        /// What it is called.
        name: &'a Path,
        /// The lines.
        bytes: Vec<u8>,
        /// How many lines came before.
        lines: u64,
        /// How many of their records were written.
        kept: u64,
    },
}

/// How rows are taken in.
#[derive(Clone, Copy, Debug)]
pub struct Intake<'a> {
    /// Their writer.
    pub author: &'a Author,
    /// Whether they may be records of any face, as an export writes them.
    pub faces: bool,
    /// Whether rows that cannot be written are left out; else the first of them ends the load.
    pub skips: bool,
    /// The secret seed of ids for rows without one.
    pub seed: &'a [u8],
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// How many records.
    pub records: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// How many lines were read.
    pub lines: u64,
    /// The seq of the first record; 0 if there is none.
    pub first_seq: u64,
    /// The seq of the last record.
    pub last_seq: u64,
    /// How many rows were left out.
    pub skipped: u64,
    /// The first of them.
    pub refusals: Vec<RowRefusal>,
}

/// A row that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRefusal {
    /// Its line, from 1.
    pub line: u64,
    /// The id in it, if there is one.
    pub id: Option<String>,
    /// The field that is wrong.
    pub field: String,
    /// Why.
    pub reason: String,
}

/// Loads records, one JSON object a line, in atomic batches. At the first bad row the load ends, and its batch is not kept,
/// unless bad rows are skipped; so it does if `go_on` returns false. Records of faces are loaded all or none.
///
/// # Errors
/// `InFile` names the line and holds the reason; `Io`, `Locked`, `Closed`, `Poisoned`.
pub fn ingest(
    store: &mut Store,
    source: RowSource<'_>,
    intake: Intake<'_>,
    now: &dyn Fn() -> i64,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Ingested> {
    let (path, file, before, kept): (&Path, Arc<dyn DiskFile>, u64, u64) = match source {
        RowSource::File(path) => (path, store.site.disk.open(path, Access::Read).at(path)?, 0, 0),
        RowSource::Text {
            name,
            bytes,
            lines,
            kept,
        } => (name, Arc::new(Bytes(bytes)), lines, kept),
    };
    let length = file.length().at(path)?;
    let depth = store.options.recursion_depth;
    let (pieces, threads) = (length.div_ceil(PIECE_BYTES), store.options.threads);
    let mut report = Ingested::default();
    let work = |index: u64, rows: &mut RowBatch| {
        rows.draft.author = intake.author.importing(intake.faces);
        read_rows(&*file, (index * PIECE_BYTES, length), depth, intake, rows)
    };
    let in_file = |row: RefusedRow, lines: u64, kept: u64| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        io::Error::other(Error::InFile {
            file: name.unwrap_or_default(),
            line: before + lines + row.line + 1,
            id: row.id,
            fault: Box::new(row.fault),
            kept,
        })
    };
    // A refusal stops the threads inside an `io::Error`.
    let unpacked = |fault: io::Error| fault.downcast().unwrap_or_else(|fault| Error::io(path, fault));
    if intake.faces {
        let mut lines = 0;
        let look = |rows: &mut RowBatch| match rows.refused.pop() {
            Some(row) => Err(in_file(row, lines, kept)),
            None => {
                lines += rows.lines;
                Ok(true)
            }
        };
        in_order(pieces, threads, work, look).map_err(unpacked)?;
    }
    let take = |rows: &mut RowBatch| {
        let wanted = rows.draft.changes().len();
        if !intake.skips
            && let Some(row) = rows.refused.pop()
        {
            return Err(in_file(row, report.lines, kept + report.records));
        }
        match commit_rows(store, rows, intake.skips, now) {
            Ok(Some(committed)) => {
                if report.records == 0 {
                    report.first_seq = committed.first_seq;
                }
                report.records += committed.next_seq - committed.first_seq;
                report.last_seq = committed.next_seq - 1;
            }
            Ok(None) => {}
            // The writer may not write one of the rows.
            Err(fault) => {
                return Err(match row_of(fault, wanted) {
                    Ok((row, fault)) => {
                        let id = unspelled(rows.draft.id(&rows.draft.changes()[row]));
                        let line = rows.places[row];
                        let row = RefusedRow {
                            line,
                            id: Some(id),
                            fault,
                        };
                        in_file(row, report.lines, kept + report.records)
                    }
                    Err(fault) => io::Error::other(fault),
                });
            }
        }
        report.skipped += rows.skipped;
        rows.refused.sort_by_key(|row| row.line);
        for row in rows.refused.drain(..) {
            if report.refusals.len() < KEPT_REFUSALS {
                report.refusals.push(told(row, before + report.lines));
            }
        }
        report.lines += rows.lines;
        report.bytes = (report.bytes + PIECE_BYTES).min(length);
        Ok(go_on(report.bytes, length) || intake.faces)
    };
    let outcome = in_order(pieces, threads, work, take);
    store.settle();
    outcome.map_err(unpacked)?;
    Ok(report)
}

fn told(row: RefusedRow, before: u64) -> RowRefusal {
    let (field, reason) = match &row.fault {
        Error::Invalid { field, .. } | Error::TooLarge { field, .. } => (field.clone(), row.fault.to_string()),
        other => ("id".to_owned(), other.to_string()),
    };
    RowRefusal {
        line: before + row.line + 1,
        id: row.id,
        field,
        reason,
    }
}

/// Refuses a record of a face that the face would not have written so.
fn check_shape(draft: &Draft, of_face: bool) -> Result<()> {
    let written = draft.changes().last().filter(|_| of_face);
    match written.and_then(|change| Some((change, misfit(draft.record(change))?))) {
        Some((change, BlockMisfit { field, reason })) => {
            let id = unspelled(draft.id(change));
            Err(Error::invalid(field.clone(), format!("{id:?}: {field}: {reason}")))
        }
        None => Ok(()),
    }
}

fn read_rows(
    file: &dyn DiskFile,
    (start, length): (u64, u64),
    depth: i64,
    intake: Intake<'_>,
    rows: &mut RowBatch,
) -> io::Result<()> {
    rows.draft.clear();
    rows.places.clear();
    rows.refused.clear();
    (rows.lines, rows.skipped) = (0, 0);
    let origin = start.saturating_sub(1);
    let end = (start + PIECE_BYTES).min(length);
    let mut bytes = Vec::new();
    read_upto(file, &mut bytes, origin, (end - origin) as usize)?;
    let mut at = 0;
    if start > 0 {
        match memchr(b'\n', &bytes) {
            Some(newline) => at = newline + 1,
            None => return Ok(()),
        }
    }
    let inside = bytes.len();
    let last = memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1);
    // The last row that begins here may end beyond.
    if last < inside
        && let Some(newline) = reach_newline(file, origin, length, last, &mut bytes)?
    {
        bytes.truncate(newline + 1);
    }
    while at < inside {
        let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
        let (row, place) = (&bytes[at..end], origin + at as u64);
        let line = rows.lines;
        rows.lines += 1;
        at = end + 1;
        if row.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let drafted = rows.draft.changes().len();
        if let Err((id, fault)) = draft_row(&mut rows.draft, row, place, depth, intake) {
            rows.draft.retain(|change| change < drafted);
            rows.refuse(line, id, fault);
            if !intake.skips {
                return Ok(());
            }
        } else if rows.draft.changes().len() > drafted {
            rows.places.push(line);
        }
    }
    Ok(())
}

/// Drafts a row. An error names the id of the row, if it has one, and the reason.
fn draft_row(
    draft: &mut Draft,
    row: &[u8],
    place: u64,
    depth: i64,
    intake: Intake<'_>,
) -> std::result::Result<(), (Option<String>, Error)> {
    if row.len() > MAX_LINE_BYTES {
        return Err((None, Error::too_large("record", "the line is longer than 16 MiB")));
    }
    // Fields of an export; the events of this log have their own.
    let ignored: &[&str] = if intake.faces {
        &["created_at", "updated_at"]
    } else {
        &[]
    };
    let mut fields = match JsonFields::scanned(row, ignored) {
        Some(fields) => fields,
        None => {
            let not_json = |fault| (None, Error::invalid("record", format!("not JSON: {fault}")));
            let mut parsed = json::parse(row).map_err(not_json)?;
            ignored.iter().for_each(|name| _ = parsed.remove(name));
            let id = parsed.get("id").and_then(Value::as_str).map(str::to_owned);
            JsonFields::parsed(&parsed).map_err(|fault| (id, fault))?
        }
    };
    let is_unnamed = !intake.faces && !fields.has_id();
    if is_unnamed {
        fields.set_id(format!("\"{}\"", made_id(intake.seed, place)));
    }
    let id = fields.id().filter(|_| !is_unnamed);
    let id = id.as_deref();
    let face = id.filter(|_| intake.faces).and_then(|id| face_of(id.as_bytes()));
    if matches!(face, Some(VECTORS | ERASURES)) {
        // Records about rows, erasures and pruning of another log.
        return Ok(());
    }
    let refused = |fault| (id.map(str::to_owned), fault);
    let outcome = draft.upsert_fields(&fields, depth, face);
    outcome
        .and_then(|()| check_shape(draft, face.is_some()))
        .map_err(refused)
}

fn made_id(seed: &[u8], place: u64) -> String {
    let text = [seed, &place.to_le_bytes()].concat();
    sha256(&text).text()[..ID_DIGITS].to_owned()
}

/// How many refusals are kept; all are counted.
pub(in crate::store) const KEPT_REFUSALS: usize = 1000;

/// Changes that were left out: their places, and why.
pub type RefusedChanges = Vec<(usize, Error)>;

/// The rows that begin in one piece of the source.
#[derive(Default)]
pub(in crate::store) struct RowBatch {
    pub draft: Draft,
    /// The line of each change, within the piece.
    pub places: Vec<u64>,
    pub lines: u64,
    pub refused: Vec<RefusedRow>,
    /// How many were left out; not all of them are kept.
    pub skipped: u64,
}

/// A row that is no record: its line within the piece, its id, and why.
pub(in crate::store) struct RefusedRow {
    pub line: u64,
    pub id: Option<String>,
    pub fault: Error,
}

impl RowBatch {
    pub fn refuse(&mut self, line: u64, id: Option<String>, fault: Error) {
        self.skipped += 1;
        if self.refused.len() < KEPT_REFUSALS {
            self.refused.push(RefusedRow { line, id, fault });
        }
    }

    /// Takes changes out that cannot be written, given by their places among the changes.
    fn leave_out(&mut self, mut faults: Vec<(usize, Error)>) {
        faults.sort_by_key(|(row, _)| *row);
        faults.dedup_by_key(|(row, _)| *row);
        let rows: Vec<usize> = faults.iter().map(|(row, _)| *row).collect();
        for (row, fault) in faults {
            let id = unspelled(self.draft.id(&self.draft.changes()[row]));
            self.refuse(self.places[row], Some(id), fault);
        }
        self.draft.retain(|row| rows.binary_search(&row).is_err());
        let mut row = 0;
        self.places.retain(|_| {
            row += 1;
            rows.binary_search(&(row - 1)).is_err()
        });
    }
}

/// Writes rows as one batch; those that are not the writer's to write are left out if that is asked for.
pub(in crate::store) fn commit_rows(
    store: &mut Store,
    rows: &mut RowBatch,
    skips: bool,
    now: &dyn Fn() -> i64,
) -> Result<Option<Committed>> {
    while !rows.draft.is_empty() {
        let part = Arc::new(std::mem::take(&mut rows.draft));
        let moment = now();
        let written = store.write_and_sync(moment, |store| store.write_parts(&[Arc::clone(&part)], None, moment));
        if written.is_ok() {
            return written.map(Some);
        }
        // What was not written is not kept elsewhere.
        rows.draft = Arc::into_inner(part).unwrap_or_default();
        let fault = match written {
            Err(fault) if skips => fault,
            outcome => return outcome.map(Some),
        };
        let first = row_of(fault, rows.draft.changes().len())?;
        let mut faults: Vec<(usize, Error)> = refused_claims(&store.state, &[&rows.draft])?.collect();
        faults.push(first);
        rows.leave_out(faults);
    }
    Ok(None)
}

/// Writes a draft as one batch without the changes that its writer may not make; gives these with their places.
pub(in crate::store) fn commit_allowed(
    store: &mut Store,
    draft: &mut Draft,
    now: i64,
) -> Result<(Option<Committed>, RefusedChanges)> {
    let mut rows = RowBatch {
        places: (0..draft.changes().len() as u64).collect(),
        draft: std::mem::take(draft),
        ..RowBatch::default()
    };
    let committed = commit_rows(store, &mut rows, true, &|| now)?;
    let refused = rows.refused.into_iter().map(|row| (row.line as usize, row.fault));
    Ok((committed, refused.collect()))
}

/// Which of so many changes a refusal is about, if it is about one.
pub(in crate::store) fn row_of(fault: Error, changes: usize) -> std::result::Result<(usize, Error), Error> {
    match fault {
        Error::InBatch { row, fault } => Ok((row, *fault)),
        Error::IdTaken { .. } | Error::OutOfScope { .. } | Error::Invalid { .. } if changes == 1 => Ok((0, fault)),
        other => Err(other),
    }
}

/// Deletes an author's own records that have expired at a moment, as one batch; gives their ids.
pub(in crate::store) fn sweep(store: &mut Store, author: &Author, moment: i64, now: i64) -> Result<Vec<String>> {
    store.write_and_sync(now, |store| {
        store.settle();
        let due = store.state.due_at(&author.writer, moment);
        if due.is_empty() {
            return Ok(due);
        }
        let mut draft = Draft::default();
        draft.author = author.clone();
        for id in &due {
            draft.make_room()?;
            draft.delete(id, face_of(id.as_bytes()))?;
        }
        store.check_and_write(&draft, now)?;
        Ok(due)
    })
}
