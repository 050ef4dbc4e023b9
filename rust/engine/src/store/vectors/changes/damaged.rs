//! What is done about rows that are not what the log says: they are kept in `quarantine/`, and taken back by an event.

use std::collections::BTreeMap;
use std::io;

use super::left_behind::LeftBehind;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{self, Bound, write_gone};
use crate::store::vectors::records::read::{VectorRecord, read};
use crate::store::vectors::rows::check::{bad_rows, is_of_this_file};
use chronolog::digest::write_hex;
use chronolog::disk::{Access, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::VECTORS;
use chronolog::event::stamp;
use chronolog::log::files::{Scratch, free_name, with_suffix};
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

/// So much is written at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// The number of a row, and the id of its record.
type OwnedRow = (u32, Vec<u8>);

/// Rows that are not what the log says.
pub(in crate::store) struct DamagedRows {
    /// Takes them back.
    draft: Draft,
    /// By space: which they are, and whose.
    lost: BTreeMap<String, (Bound, Vec<OwnedRow>)>,
    left_behind: LeftBehind,
    /// Why a file could not be read.
    unread: Option<Error>,
}

impl DamagedRows {
    /// Looks at all rows that a state names. Files that cannot be read are left as they are.
    ///
    /// # Errors
    /// `Io`.
    pub fn find(vectors: &Vectors, state: &State) -> Result<Self> {
        let mut found = Self {
            draft: Draft::default(),
            lost: BTreeMap::new(),
            left_behind: LeftBehind::default(),
            unread: None,
        };
        let (disk, layout) = (&*vectors.site.disk, &vectors.site.layout);
        let known = vectors.known(state);
        for slot in state.of_face(VECTORS) {
            let word = read(state.spelled_id(slot), state.record_in(slot));
            let Some(VectorRecord::Group(group)) = word else {
                continue;
            };
            let Some(index) = known.spaces.spaces.get(&group.space) else {
                continue;
            };
            if found.left_behind.takes(state, index, &group) || group.generation > index.bound.generation {
                continue;
            }
            let rows = match bad_rows(disk, layout, &index.bound, &group) {
                Err(Error::Io { path, source }) if is_of_this_file(&source) => {
                    found.unread = Some(Error::Io { path, source });
                    continue;
                }
                bad => bad?,
            };
            if !rows.is_empty() {
                write_gone(&mut found.draft, &index.bound, group.row, &rows)?;
                let id = |row: u32| group.ids[(row - group.row) as usize].to_vec();
                let these = rows.into_iter().map(|row| (row, id(row)));
                let entry = found.lost.entry(group.space.clone());
                entry
                    .or_insert_with(|| (index.bound.clone(), Vec::new()))
                    .1
                    .extend(these);
            }
        }
        Ok(found)
    }

    /// Whether some of them can be taken back: an error if all that could be damaged cannot be read.
    ///
    /// # Errors
    /// What the disk said.
    pub fn check(self) -> Result<()> {
        let is_nothing = self.draft.is_empty() && self.left_behind.is_empty();
        self.unread.filter(|_| is_nothing).map_or(Ok(()), Err)
    }

    /// Keeps what they hold in `quarantine/`; gives the changes that take them back,
    /// or `None` if there is nothing to say.
    ///
    /// # Errors
    /// `Io`; also if a file could not be read, and nothing else is to be done, in a log that is whole.
    pub fn take_back(mut self, vectors: &Vectors, log: &Log, depth: i64, now: i64) -> Result<Option<Draft>> {
        for (bound, rows) in self.lost.values_mut() {
            rows.sort();
            keep_rows(&vectors.site, bound, rows, now)?;
        }
        self.left_behind.take_back(depth, &mut self.draft)?;
        if !self.draft.is_empty() {
            return Ok(Some(self.draft));
        }
        // If there is nothing else to do, at least it should be known why.
        let unread = self.unread.filter(|_| log.report().damage.is_empty());
        unread.map_or(Ok(None), Err)
    }
}

/// Keeps what rows hold, as far as they are there: a line for each.
fn keep_rows(site: &Site, bound: &Bound, rows: &[OwnedRow], now: i64) -> Result<()> {
    let path = site.layout.rows(&bound.name, bound.generation);
    let file = match site.disk.open(&path, Access::Read) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.at(&path)?,
    };
    let quarantine = site.layout.quarantine();
    site.make_folder(&quarantine, site.layout.folder())?;
    let name = format!("{}-{}-rows.jsonl", stamp::spell_name(now), format::file_name(bound));
    let target = free_name(&*site.disk, &quarantine, &name)?;
    let scratch = Scratch::at(&site.disk, with_suffix(&target, ".tmp"));
    let kept = site.disk.create(scratch.path()).at(scratch.path())?;
    let (mut bytes, mut lines, mut written) = (Vec::new(), Vec::new(), 0);
    for (number, (row, id)) in rows.iter().enumerate() {
        bytes.clear();
        let offset = u64::from(*row) * bound.stride();
        read_upto(&*file, &mut bytes, offset, bound.stride() as usize).at(&path)?;
        lines.extend_from_slice(b"{\"bytes\":\"");
        write_hex(&bytes, &mut lines);
        lines.extend_from_slice(b"\",\"id\":\"");
        lines.extend_from_slice(id);
        lines.extend_from_slice(format!("\",\"row\":{row}}}\n").as_bytes());
        if lines.len() >= BUFFER_BYTES || number + 1 == rows.len() {
            kept.write_at(&lines, written).at(scratch.path())?;
            written += lines.len() as u64;
            lines.clear();
        }
    }
    kept.sync().at(scratch.path())?;
    scratch.name(&target)
}
