//! How do a million rows come in without an object for each?

use std::io;
use std::path::Path;
use std::sync::Arc;

use memchr::memchr;

use crate::blocks::{Misfit, misfit};
use crate::disk::{Access, DiskFile, read_upto};
use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::event::faces::{VECTORS, face_of};
use crate::json::{self, Value};
use crate::ordered::in_order;
use crate::scope::Viewer;
use crate::state::unspelled;

use crate::store::{Progress, Store};

/// How much of the source becomes one batch.
const PIECE_BYTES: u64 = 2 * 1024 * 1024;

/// How much more is read when a row reaches beyond its piece.
const REACH_BYTES: usize = 64 * 1024;

/// What was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// How many records.
    pub records: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// The seq of the first record; 0 if there is none.
    pub first_seq: u64,
    /// The seq of the last record.
    pub last_seq: u64,
}

/// The rows that begin in one piece of the source.
#[derive(Default)]
struct IngestRows {
    draft: Draft,
    lines: u64,
    /// The first row that is not a record: its line within the piece, and why.
    refused: Option<(u64, Error)>,
}

impl Store {
    /// Loads a file of records, one JSON object a line. Each part of some mebibytes is one atomic batch; at the first row that
    /// is not a record everything before its part is kept and nothing of its part is. With `faces` the rows may be
    /// records of any face, as an export writes them.
    ///
    /// # Errors
    /// `Invalid` or `TooLarge` names the line, the field and the reason; `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn ingest(
        &mut self,
        path: &Path,
        (writer, faces): (&Arc<Viewer>, bool),
        now: &dyn Fn() -> i64,
        progress: Progress<'_>,
    ) -> Result<Ingested> {
        let file = self.site.disk.open(path, Access::Read).at(path)?;
        let length = file.length().at(path)?;
        let depth = self.options.recursion_depth;
        let (pieces, threads) = (length.div_ceil(PIECE_BYTES), self.options.threads);
        let mut report = Ingested {
            bytes: length,
            ..Ingested::default()
        };
        let work = |index: u64, rows: &mut IngestRows| {
            rows.draft.written_by(writer);
            read_rows(&*file, (index * PIECE_BYTES, length), (depth, faces), rows)
        };
        if faces {
            // An export comes back as a whole or not at all: half a face is worth nothing.
            let mut lines = 0;
            let look = |rows: &mut IngestRows| match rows.refused.take() {
                Some((line, fault)) => Err(IngestStop::Refused(at_line(path, lines + line + 1, &fault, 0))),
                None => {
                    lines += rows.lines;
                    Ok(true)
                }
            };
            in_order(pieces, threads, work, look).map_err(|stop| stop.told(path))?;
        }
        let (mut lines, mut done) = (0, 0);
        let take = |rows: &mut IngestRows| {
            if let Some((line, fault)) = rows.refused.take() {
                return Err(IngestStop::Refused(at_line(
                    path,
                    lines + line + 1,
                    &fault,
                    report.records,
                )));
            }
            lines += rows.lines;
            if !rows.draft.is_empty() {
                let committed = self
                    .keep_scopes(&mut rows.draft)
                    .and_then(|()| self.commit(&rows.draft, now()));
                let committed = committed.map_err(IngestStop::Refused)?;
                if report.records == 0 {
                    report.first_seq = committed.first_seq;
                }
                report.records += rows.draft.changes().len() as u64;
                report.last_seq = committed.next_seq - 1;
            }
            done = (done + PIECE_BYTES).min(length);
            progress(done, length);
            Ok(true)
        };
        in_order(pieces, threads, work, take).map_err(|stop| stop.told(path))?;
        Ok(report)
    }
}

enum IngestStop {
    Refused(Error),
    Io(io::Error),
}

impl IngestStop {
    fn told(self, path: &Path) -> Error {
        match self {
            Self::Refused(fault) => fault,
            Self::Io(fault) => Error::io(path, fault),
        }
    }
}

impl From<io::Error> for IngestStop {
    fn from(fault: io::Error) -> Self {
        Self::Io(fault)
    }
}

fn at_line(path: &Path, line: u64, fault: &Error, kept: u64) -> Error {
    let (field, reason) = match fault {
        Error::Invalid { field, reason } | Error::TooLarge { field, reason } => (field.clone(), reason.clone()),
        other => ("record".to_owned(), other.to_string()),
    };
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let reason = format!("{name} line {line}: {reason} ({kept} records before it were kept)");
    match fault {
        Error::TooLarge { .. } => Error::too_large(field, reason),
        _ => Error::invalid(field, reason),
    }
}

/// A record of a face comes in as that face would have written it, or not at all.
fn check_shape(draft: &Draft, of_face: bool) -> Result<()> {
    let written = draft.changes().last().filter(|_| of_face);
    match written.and_then(|change| Some((change, misfit(draft.record(change))?))) {
        Some((change, Misfit { field, reason })) => {
            let id = unspelled(draft.id(change));
            Err(Error::invalid(field.clone(), format!("{id:?}: {field}: {reason}")))
        }
        None => Ok(()),
    }
}

fn read_rows(
    file: &dyn DiskFile,
    (start, length): (u64, u64),
    (depth, faces): (i64, bool),
    rows: &mut IngestRows,
) -> io::Result<()> {
    rows.draft.clear();
    (rows.lines, rows.refused) = (0, None);
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
    // The last row that begins here may end beyond.
    while at < inside && bytes.last() != Some(&b'\n') {
        let known = bytes.len();
        if read_upto(file, &mut bytes, origin + known as u64, REACH_BYTES)? == 0 {
            break;
        }
        if let Some(newline) = memchr(b'\n', &bytes[known..]) {
            bytes.truncate(known + newline + 1);
        }
    }
    while at < inside {
        let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
        let row = &bytes[at..end];
        let line = rows.lines;
        rows.lines += 1;
        at = end + 1;
        if row.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let outcome = json::parse(row)
            .map_err(|fault| Error::invalid("record", format!("not JSON: {fault}")))
            .and_then(|record| {
                let id = record.get("id").and_then(Value::as_str).filter(|_| faces);
                match id.and_then(|id| face_of(id.as_bytes())) {
                    // It names rows that are not in this file, and would take the place of what names those that are here.
                    Some(VECTORS) => Ok(()),
                    face => {
                        rows.draft.upsert_value(&record, depth, face)?;
                        check_shape(&rows.draft, face.is_some())
                    }
                }
            });
        if let Err(fault) = outcome {
            rows.refused = Some((line, fault));
            return Ok(());
        }
    }
    Ok(())
}
