//! Finds the bytes of damaged rows elsewhere, and puts them back.
//!
//! Backups and set-aside folders hold files of rows too, and the log names the digest of each row: it is looked for
//! among all rows of its space. Rows are put back when the new log is in place. Those that are found nowhere are kept in
//! `quarantine/` and taken back by an event.
//!
//! A compaction moves a space by one batch of lines. If one of them is lost, the old groups stay, while others have
//! written to the new file since: all old rows are taken back.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::store::files::proofs::other_folders;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{
    self, Bound, RowGroup, shown, with_group, write_empty, write_gone, write_space,
};
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::rows::check::{damaged_rows, id_of_row, is_of_this_file, map_rows, open_rows, row_bytes};
use chronolog::digest::{sha256, sha256_each, write_hex};
use chronolog::disk::{Access, Disk, Mapping, open_if_there, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::stamp;
use chronolog::layout::{ROWS_SUFFIX, is_rows_file, rows_name};
use chronolog::log::files::{Scratch, copy_bytes, free_name, with_suffix};
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

/// So many bytes are hashed between two looks whether anything is still missing, or written at a time.
const PIECE_BYTES: usize = 1024 * 1024;

/// A row that is not what the log says.
struct BadRow {
    row: u32,
    /// The first row of its group.
    group: u32,
    id: Vec<u8>,
    digest: [u8; 32],
    /// It is the embedding of its record; else there was a later one, or the record is gone.
    is_living: bool,
    /// A file that holds its bytes, and the row there.
    found: Option<(Arc<Mapping>, u32)>,
}

/// Rows that are not what the log says, and groups that a space has left behind.
#[derive(Default)]
pub(in crate::store) struct DamagedRows {
    spaces: Vec<(Bound, Vec<BadRow>)>,
    left_behind: Vec<SpaceLeft>,
    /// Why a file could not be read.
    unread: Option<Error>,
}

impl DamagedRows {
    /// Looks at all rows that a state names. Nothing is changed; files that cannot be read are left as they are.
    pub fn find(vectors: &Vectors, state: &State) -> Result<Self> {
        let (disk, layout) = (&*vectors.site.disk, &vectors.site.layout);
        let known = vectors.known(state);
        let mut found = Self::default();
        for index in known.spaces.spaces.values() {
            let bound = &index.bound;
            found.left_behind.extend(SpaceLeft::of(state, index));
            let rows = match map_rows(disk, layout, bound, u64::MAX).at(&layout.rows(&bound.name, bound.generation)) {
                Err(Error::Io { path, source }) if is_of_this_file(&source) => {
                    found.unread = Some(Error::Io { path, source });
                    continue;
                }
                mapped => mapped?,
            };
            let bad = damaged_rows(rows.bytes(), index, vectors.threads)
                .into_iter()
                .map(|row| BadRow {
                    row,
                    group: index.group_of(row).unwrap_or(row),
                    id: id_of_row(state, index, row),
                    digest: index.digest_of(row).unwrap_or_default(),
                    is_living: index.is_living(row),
                    found: None,
                });
            let bad: Vec<BadRow> = bad.collect();
            if !bad.is_empty() {
                found.spaces.push((bound.clone(), bad));
            }
        }
        Ok(found)
    }

    /// Fails if nothing can be taken back because a file cannot be read.
    pub fn check(self) -> Result<()> {
        let is_nothing = self.spaces.is_empty() && self.left_behind.is_empty();
        self.unread.filter(|_| is_nothing).map_or(Ok(()), Err)
    }

    /// Looks for the bytes of these rows elsewhere; gives the embeddings that nothing in the folder holds, one sentence each.
    pub fn look_elsewhere(&mut self, site: &Site) -> Vec<String> {
        let mut lost = Vec::new();
        for (bound, bad) in &mut self.spaces {
            look_elsewhere(site, bound, bad);
            let missing = bad.iter().filter(|bad| bad.found.is_none());
            lost.extend(missing.map(|bad| describe_embedding(&bad.id, &bound.name, bad.is_living)));
        }
        for space in self.left_behind.iter().filter(|space| space.is_implied) {
            let ids = space.ids.iter();
            lost.extend(ids.map(|id| describe_embedding(id, &space.bound.name, true)));
        }
        lost
    }

    /// The files that hold damaged rows, from the store's folder on.
    pub fn files(&self) -> impl Iterator<Item = String> {
        let bounds = self.spaces.iter().map(|(bound, _)| bound);
        bounds.map(|bound| rows_name(&bound.name, bound.generation))
    }

    /// Puts found bytes of rows back; gives how many. Others may have mapped the file, so another one takes its name.
    pub fn put_back(&self, vectors: &mut Vectors) -> Result<u64> {
        let mut count = 0;
        let (disk, layout) = (&vectors.site.disk, &vectors.site.layout);
        for (bound, rows) in &self.spaces {
            // What was right a moment ago may lie in a file of somebody else.
            let found: Vec<(u32, &[u8])> = rows
                .iter()
                .filter_map(|bad| {
                    let (file, at) = bad.found.as_ref()?;
                    let bytes = row_bytes(file.bytes(), *at, bound)?;
                    (sha256(bytes).raw() == bad.digest).then_some((bad.row, bytes))
                })
                .collect();
            if found.is_empty() {
                continue;
            }
            vectors.site.make_folder(&layout.vectors(), layout.folder())?;
            let path = layout.rows(&bound.name, bound.generation);
            let scratch = Scratch::at(disk, with_suffix(&path, ".tmp"));
            match open_rows(&**disk, layout, bound).at(&path)? {
                Some(own) => {
                    let length = own.length().at(&path)?;
                    copy_bytes(&**disk, &*own, 0..length, scratch.path(), None)?;
                }
                None => drop(disk.create(scratch.path()).at(scratch.path())?),
            }
            let file = disk.open(scratch.path(), Access::Write).at(scratch.path())?;
            for (row, bytes) in &found {
                let offset = u64::from(*row) * bound.stride();
                file.write_at(bytes, offset).at(scratch.path())?;
            }
            file.sync().at(scratch.path())?;
            scratch.name(&path)?;
            count += found.len() as u64;
        }
        if count > 0 {
            vectors.forget();
        }
        Ok(count)
    }

    /// Keeps what the rows hold in `quarantine/`; gives the changes that take them back, or `None` if there are none.
    ///
    /// # Errors
    /// `Io`; also if a file could not be read, and nothing else is to be done, in a log that is whole.
    pub fn take_back(self, vectors: &Vectors, log: &Log, depth: i64, now: i64) -> Result<Option<Draft>> {
        let mut draft = Draft::default();
        for (bound, rows) in &self.spaces {
            for rows in rows.chunk_by(|a, b| a.group == b.group) {
                let gone: Vec<u32> = rows.iter().map(|bad| bad.row).collect();
                write_gone(&mut draft, bound, rows[0].group, &gone)?;
            }
            keep_rows(&vectors.site, bound, rows, now)?;
        }
        for SpaceLeft {
            bound,
            is_implied,
            groups,
            ..
        } in &self.left_behind
        {
            for group in groups {
                write_empty(&mut draft, &bound.name, *group)?;
            }
            if *is_implied {
                write_space(&mut draft, bound, depth)?;
            }
        }
        if !draft.is_empty() {
            return Ok(Some(draft));
        }
        // If there is nothing else to do, at least it should be known why.
        let unread = self.unread.filter(|_| log.report.damage.is_empty());
        unread.map_or(Ok(None), Err)
    }
}

/// What one space has left behind.
struct SpaceLeft {
    bound: Bound,
    /// The space has no record of its own for the new generation.
    is_implied: bool,
    groups: Vec<u32>,
    /// The records that have no row since.
    ids: BTreeSet<Vec<u8>>,
}

impl SpaceLeft {
    /// What a space has left behind, if anything.
    fn of(state: &State, index: &RowIndex) -> Option<Self> {
        let mut left = Self {
            bound: index.bound.clone(),
            is_implied: index.is_implied && !index.bound.model.is_empty(),
            groups: Vec::new(),
            ids: BTreeSet::new(),
        };
        let has_none = |id: &[u8]| {
            let owner = state.slots.of_spelled(id);
            owner.is_some_and(|owner| index.ever_of(owner).is_none())
        };
        for (_, first) in index.left_behind.keys() {
            with_group(state, &index.bound.name, *first, |group: &RowGroup<'_>| {
                left.groups.push(group.row);
                let ids = group.living().map(|row| group.ids[(row - group.row) as usize].to_vec());
                left.ids.extend(ids.filter(|id| has_none(id)));
            });
        }
        (!left.groups.is_empty()).then_some(left)
    }
}

/// Finds the bytes of rows in the files of their space, in other folders and in this one: a compaction moves rows.
fn look_elsewhere(site: &Site, bound: &Bound, bad: &mut [BadRow]) {
    let mut missing: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
    for (at, bad) in bad.iter().enumerate() {
        missing.entry(bad.digest).or_default().push(at);
    }
    let others = other_folders(&*site.disk, &site.layout).into_iter();
    for folder in others.map(|other| other.vectors()).chain([site.layout.vectors()]) {
        let names = site.disk.list(&folder).unwrap_or_default();
        for name in names.iter().filter(|name| is_of_space(name, &bound.name)) {
            let Some(rows) = mapped(&*site.disk, &folder.join(name)) else {
                continue;
            };
            for (row, digest) in digests(rows.bytes(), bound) {
                for at in missing.remove(&digest).unwrap_or_default() {
                    bad[at].found = Some((Arc::clone(&rows), row));
                }
                if missing.is_empty() {
                    return;
                }
            }
        }
    }
}

/// A file of rows; what cannot be read holds none.
fn mapped(disk: &dyn Disk, path: &Path) -> Option<Arc<Mapping>> {
    let file = disk.open(path, Access::Read).ok()?;
    file.map(u64::MAX).ok().map(Arc::new)
}

/// Whether a file of this name holds rows of a space, of any generation.
fn is_of_space(name: &str, space: &str) -> bool {
    let parts = name.strip_suffix(ROWS_SUFFIX).and_then(|name| name.rsplit_once('.'));
    is_rows_file(name) && parts.is_some_and(|(of, _)| of == space)
}

/// All rows of a file with their digests, a piece at a time.
fn digests<'a>(rows: &'a [u8], bound: &Bound) -> impl Iterator<Item = (u32, [u8; 32])> + 'a {
    let stride = 4 * bound.dim.max(1);
    let piece = (PIECE_BYTES / stride).max(1) * stride;
    let all = rows.chunks(piece).flat_map(move |piece| {
        let mut found = Vec::new();
        sha256_each(piece, stride, &mut found);
        found
    });
    (0..).zip(all)
}

/// Keeps what rows hold, as far as they are there: a line for each.
fn keep_rows(site: &Site, bound: &Bound, rows: &[BadRow], now: i64) -> Result<()> {
    let path = site.layout.rows(&bound.name, bound.generation);
    let Some(file) = open_if_there(&*site.disk, &path).at(&path)? else {
        return Ok(());
    };
    let quarantine = site.layout.quarantine();
    site.make_folder(&quarantine, site.layout.folder())?;
    let name = format!("{}-{}-rows.jsonl", stamp::spell_name(now), format::file_name(bound));
    let target = free_name(&*site.disk, &quarantine, &name)?;
    let scratch = Scratch::at(&site.disk, with_suffix(&target, ".tmp"));
    let kept = site.disk.create(scratch.path()).at(scratch.path())?;
    let (mut bytes, mut lines, mut written) = (Vec::new(), Vec::new(), 0);
    for (number, BadRow { row, id, .. }) in rows.iter().enumerate() {
        bytes.clear();
        let offset = u64::from(*row) * bound.stride();
        read_upto(&*file, &mut bytes, offset, bound.stride() as usize).at(&path)?;
        lines.extend_from_slice(b"{\"bytes\":\"");
        write_hex(&bytes, &mut lines);
        lines.extend_from_slice(b"\",\"id\":\"");
        lines.extend_from_slice(id);
        lines.extend_from_slice(format!("\",\"row\":{row}}}\n").as_bytes());
        if lines.len() >= PIECE_BYTES || number + 1 == rows.len() {
            kept.write_at(&lines, written).at(scratch.path())?;
            written += lines.len() as u64;
            lines.clear();
        }
    }
    kept.sync().at(scratch.path())?;
    scratch.name(&target)
}

/// How a report names an embedding that is lost.
pub(in crate::store) fn describe_embedding(id: &[u8], space: &str, is_living: bool) -> String {
    let which = if is_living { "the" } else { "an earlier" };
    format!("{which} embedding of {:?} in space {space:?}", shown(id))
}
