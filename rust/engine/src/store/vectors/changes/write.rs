//! Binds the space of new embeddings, and writes their rows to its file.
//!
//! Several threads copy, check, hash and write them, a few at a time while they are in the cache, and write the groups
//! that name them. Of a large attachment the first rows are on disk before the last are written, and the rest follow
//! while the log takes the groups.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{self, Bound, GROUP_ROWS, check_dim, check_name};
use crate::store::vectors::records::index::Spaces;
use chronolog::digest::{Hex, at_once, sha256_each};
use chronolog::disk::{Access, DiskFile};
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::json;
use chronolog::layout::rows_name;
use chronolog::log::files::{copy_range, is_taken_by_others, with_suffix};
use chronolog::log::{Log, Site};
use chronolog::ordered::in_order;
use chronolog::scope::Viewer;
use chronomemory_search::text::is_searched;
use chronomemory_state::state::{Query, State, unspelled};

/// The bits of a float32 that are all set if it is not finite.
const EXPONENT: u32 = 0x7f80_0000;
/// A large attachment is synced each time so much was written, while more is written.
const AHEAD_BYTES: u64 = 64 * 1024 * 1024;
/// So much is copied, hashed and written before the next is looked at: it stays in the cache of one core meanwhile.
const AT_ONCE_BYTES: usize = 192 * 1024;

/// A sync that runs while other work is done: one at a time.
pub(in crate::store) struct SyncAhead {
    pub(in crate::store) file: Arc<dyn DiskFile>,
    wanted: bool,
    runs: AtomicBool,
    failed: Mutex<Option<io::Error>>,
}

impl SyncAhead {
    /// Of this file; if nobody wants it synced, nothing ever happens.
    pub(in crate::store) fn of(file: &Arc<dyn DiskFile>, wanted: bool) -> Self {
        Self {
            file: Arc::clone(file),
            wanted,
            runs: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    /// Begins one, unless one is running.
    fn begin<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> bool {
        if !self.wanted || self.runs.swap(true, Ordering::Relaxed) {
            return false;
        }
        let sync = || {
            if let Err(fault) = self.file.sync() {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
            }
            self.runs.store(false, Ordering::Relaxed);
        };
        if Builder::new().spawn_scoped(scope, sync).is_err() {
            self.runs.store(false, Ordering::Relaxed);
        }
        true
    }

    /// What became of those that ended.
    pub(in crate::store) fn outcome(&self) -> io::Result<()> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), Err)
    }
}

/// What a thread makes of the rows of one group.
#[derive(Default)]
struct RowPiece {
    floats: Vec<f32>,
    digests: Vec<[u8; 32]>,
    group: Draft,
    refused: Option<Error>,
}

struct Target<'a> {
    file: &'a dyn DiskFile,
    bound: &'a Bound,
    first: u32,
    depth: i64,
}

impl Target<'_> {
    /// Writes the rows of one group, and spells it.
    fn write(&self, attachment: &Attachment<'_>, number: usize, piece: &mut RowPiece) -> io::Result<()> {
        let dim = self.bound.dim;
        let start = number * GROUP_ROWS;
        let end = attachment.ids.len().min(start + GROUP_ROWS);
        // So that none is left over that would have to be hashed alone.
        let each = (AT_ONCE_BYTES / (4 * dim)).max(1).next_multiple_of(at_once()) * dim;
        let mut offset = (u64::from(self.first) + start as u64) * self.bound.stride();
        piece.digests.clear();
        for floats in attachment.rows[start * dim..end * dim].chunks(each) {
            // From here on only this copy counts, whatever becomes of the caller's memory.
            piece.floats.clear();
            piece.floats.extend_from_slice(floats);
            if !is_finite(&piece.floats) {
                let odd = piece.floats.chunks_exact(dim).position(|row| !is_finite(row));
                let row = start + piece.digests.len() + odd.unwrap_or_default();
                piece.refused = Some(not_finite(&attachment.ids.shown(row)));
                return Ok(());
            }
            let bytes: &[u8] = bytemuck::cast_slice(&piece.floats);
            sha256_each(bytes, 4 * dim, &mut piece.digests);
            self.file.write_at(bytes, offset)?;
            offset += bytes.len() as u64;
        }
        let digests: Vec<Hex> = piece.digests.iter().map(Hex::spell).collect();
        let rows: Vec<(&[u8], &Hex)> = attachment.ids.spelled(start..end).zip(&digests).collect();
        let row = self.first + start as u32;
        piece.refused = format::write_groups(&mut piece.group, self.bound, row, &rows, self.depth).err();
        Ok(())
    }
}

impl Vectors {
    /// Puts rows behind those that the log names; gives the groups that name them.
    ///
    /// # Errors
    /// `Invalid` for a vector that is not finite; `Io`.
    pub fn write_rows<'scope>(
        &self,
        depth: i64,
        (bound, first): (&Bound, u32),
        attachment: &Attachment<'_>,
        (scope, ahead): (&'scope Scope<'scope, '_>, &'scope SyncAhead),
    ) -> Result<Vec<Draft>> {
        let target = Target {
            file: &*ahead.file,
            bound,
            first,
            depth,
        };
        let pieces = attachment.ids.len().div_ceil(GROUP_ROWS);
        let mut groups = Vec::with_capacity(pieces);
        let mut refused = None;
        let mut unsynced = 0;
        in_order(
            pieces as u64,
            self.threads,
            |number, piece| target.write(attachment, number as usize, piece),
            |piece: &mut RowPiece| {
                refused = piece.refused.take();
                groups.push(std::mem::take(&mut piece.group));
                unsynced += piece.digests.len() as u64 * bound.stride();
                if unsynced >= AHEAD_BYTES && ahead.begin(scope) {
                    unsynced = 0;
                }
                Ok::<bool, io::Error>(refused.is_none())
            },
        )
        .at(&self.site.layout.rows(&bound.name, bound.generation))?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if pieces as u64 * GROUP_ROWS as u64 * bound.stride() >= AHEAD_BYTES {
            ahead.begin(scope);
        }
        Ok(groups)
    }

    /// The file of a space's rows, to be written; its name is durable. Whoever created it may have died before it was.
    ///
    /// # Errors
    /// `Io`; the log is poisoned if a sync fails.
    pub fn rows_file(&mut self, log: &mut Log, bound: &Bound) -> Result<Arc<dyn DiskFile>> {
        let path = self.site.layout.rows(&bound.name, bound.generation);
        let folder = self.site.layout.vectors();
        let file = match self.site.disk.open(&path, Access::Write) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                self.site.make_folder(&folder, self.site.layout.folder())?;
                self.durable_names.remove(&path);
                self.site.disk.create(&path).at(&path)?
            }
            opened => {
                let file = opened.at(&path)?;
                if file.is_shared().at(&path)? {
                    self.keep_to_itself(bound, &*file)?
                } else {
                    file
                }
            }
        };
        if !self.durable_names.contains(&path) {
            let synced = self.site.disk.sync_dir(&folder);
            log.record_sync(synced, &folder)?;
            self.durable_names.insert(path);
        }
        Ok(file)
    }

    /// Another name leads to the file of a space's rows: what is written here must not be written there.
    fn keep_to_itself(&mut self, bound: &Bound, shared: &dyn DiskFile) -> Result<Arc<dyn DiskFile>> {
        let path = self.site.layout.rows(&bound.name, bound.generation);
        let length = shared.length().at(&path)?;
        copy_range(&*self.site.disk, shared, 0..length, &path, None)?;
        self.durable_names.remove(&path);
        self.site.disk.open(&path, Access::Write).at(&path)
    }
}

/// How many rows of a space lie where damaged lines of the log may have named some: as many as its file has.
pub(in crate::store) fn rows_not_to_touch(site: &Site, is_log_damaged: bool, bound: &Bound) -> Result<u32> {
    if !is_log_damaged {
        return Ok(0);
    }
    let path = site.layout.rows(&bound.name, bound.generation);
    match site.disk.status(&path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(0),
        status => {
            let rows = status.at(&path)?.length.div_ceil(bound.stride());
            u32::try_from(rows).map_err(|_| Error::limit(format!("the space {:?} has no rows left", bound.name)))
        }
    }
}

/// The first generation from some on whose file can be written: a folder or a link in its place is somebody else's, and
/// in a damaged log a file may hold rows that damaged lines named.
pub(in crate::store) fn free_generation(
    site: &Site,
    is_log_damaged: bool,
    name: &str,
    from: u64,
    awaited: &[String],
) -> u64 {
    let is_taken = |generation: &u64| {
        // Somebody is about to bring a file of this name.
        if awaited
            .iter()
            .any(|file| rows_name(name, *generation).ends_with(&format!("/{file}")))
        {
            return true;
        }
        let path = site.layout.rows(name, *generation);
        let is_kept = is_log_damaged && site.disk.exists(&path);
        let is_others = |path: &Path| is_taken_by_others(&*site.disk, path);
        is_kept || is_others(&path) || is_others(&with_suffix(&path, ".tmp"))
    };
    (from..).find(|generation| !is_taken(generation)).unwrap_or(from)
}

/// Whether every component is a number.
pub(in crate::store) fn is_finite(row: &[f32]) -> bool {
    // Without a way out the compiler compares many at a time.
    let is_odd = |value: &f32| value.to_bits() & EXPONENT == EXPONENT;
    !row.iter().fold(false, |odd, value| odd | is_odd(value))
}

/// A vector that is refused.
pub(in crate::store) fn not_finite(id: &str) -> Error {
    Error::invalid("vector", format!("the vector of {id:?} is not finite"))
}

impl Vectors {
    /// The space of an attachment and its next row; a new space is put into the draft.
    pub fn bound_for(
        &self,
        state: &State,
        is_log_damaged: bool,
        attachment: &Attachment<'_>,
        depth: i64,
        draft: &mut Draft,
    ) -> Result<(Bound, u32)> {
        let known = self.known(state);
        let name = attachment.space.unwrap_or_else(|| known.spaces.choice());
        if let Some(index) = known.spaces.spaces.get(name) {
            let bound = &index.bound;
            let is_lost = bound.model.is_empty();
            let shown = if is_lost {
                "a model whose name is lost"
            } else {
                &bound.model
            };
            let model = attachment.model.unwrap_or(&bound.model);
            if is_lost && model.is_empty() {
                let reason = format!("the record that bound {name:?} is lost: name its model, and it is bound anew");
                return Err(Error::argument("model", reason));
            }
            if (model != bound.model && !is_lost) || attachment.dim != bound.dim {
                return Err(Error::Bound {
                    space: name.to_owned(),
                    model: shown.to_owned(),
                    dim: bound.dim,
                    given_model: model.to_owned(),
                    given_dim: attachment.dim,
                });
            }
            let mut bound = bound.clone();
            if attachment.tokens != bound.tokens && !is_lost {
                return Err(Error::argument("space", of_another_kind(&bound, attachment.tokens)));
            }
            if is_lost {
                bound.tokens = attachment.tokens;
                model.clone_into(&mut bound.model);
                format::write_space(draft, &bound, depth)?;
            }
            let row = index
                .rows
                .max(index.reserved())
                .max(rows_not_to_touch(&self.site, is_log_damaged, &bound)?);
            return Ok((bound, row));
        }
        check_name(name)?;
        let Spaces { spaces, dropped, .. } = &known.spaces;
        let mut others = spaces.keys().chain(dropped.keys()).filter(|other| *other != name);
        if let Some(other) = others.find(|other| other.eq_ignore_ascii_case(name)) {
            return Err(Error::argument(
                "space",
                format!("{name:?} differs from {other:?} only in case"),
            ));
        }
        let Some(model) = attachment.model.filter(|model| !model.is_empty()) else {
            return Err(Error::argument(
                "model",
                format!("the new space {name:?} needs the name of its model"),
            ));
        };
        let generation = free_generation(
            &self.site,
            is_log_damaged,
            name,
            dropped.get(name).map_or(0, |last| last + 1),
            &[],
        );
        let bound = Bound {
            name: name.to_owned(),
            model: model.to_owned(),
            dim: attachment.dim,
            generation,
            tokens: attachment.tokens,
        };
        format::write_space(draft, &bound, depth)?;
        Ok((bound, 0))
    }
}

/// What to say if rows of one kind are meant for a space of the other, or are codes of other token vectors.
fn of_another_kind(bound: &Bound, tokens: usize) -> String {
    let kind = |tokens: usize| match tokens {
        0 => "vectors".to_owned(),
        _ => format!("codes of token vectors of {tokens} components"),
    };
    format!("{:?} holds {}, not {}", bound.name, kind(bound.tokens), kind(tokens))
}

/// Whether an attachment can be meant. Errors: `Argument`, and `Invalid` for a vector that is not finite.
pub(in crate::store) fn check_attachment(attachment: &Attachment<'_>) -> Result<()> {
    check_dim(attachment.dim)?;
    if attachment.ids.is_empty() {
        return Err(Error::argument("ids", "there must be at least one"));
    }
    if attachment.ids.len().checked_mul(attachment.dim) != Some(attachment.rows.len()) {
        let rows = attachment.rows.len() / attachment.dim;
        return Err(Error::argument(
            "vector",
            format!("{} ids and {rows} vectors do not go together", attachment.ids.len()),
        ));
    }
    // More are looked at when they are copied: reading all of them twice takes longer than writing garbage.
    let mut few = attachment.rows.chunks_exact(attachment.dim).take(GROUP_ROWS);
    match few.position(|row| !is_finite(row)) {
        Some(odd) => Err(not_finite(&attachment.ids.shown(odd))),
        None => Ok(()),
    }
}

/// The ids of some records, in order.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// Embeddings of some records, all of one model.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The space, or the one that is asked when none is named.
    pub space: Option<&'a str>,
    /// The model they come from; may be left out once the space is bound.
    pub model: Option<&'a str>,
    /// How many components each has.
    pub dim: usize,
    /// How many components the token vectors had whose codes they are; 0 if they are vectors.
    pub tokens: usize,
    /// The records.
    pub ids: &'a Ids,
    /// The vectors, end to end.
    pub rows: &'a [f32],
}

impl Ids {
    /// No ids yet, and room for so many.
    #[must_use]
    pub fn with_capacity(ids: usize) -> Self {
        Self {
            text: Vec::new(),
            ends: Vec::with_capacity(ids),
        }
    }

    /// Adds an id behind the others.
    pub fn push(&mut self, id: &str) {
        json::write_string(id, &mut self.text);
        self.ends.push(self.text.len());
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Some of them, as they stand between quotes.
    pub(in crate::store) fn spelled(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let mut start = range.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends[range].iter().map(move |end| {
            let id = &self.text[start + 1..end - 1];
            start = *end;
            id
        })
    }

    /// One of them as people write it.
    pub(in crate::store) fn shown(&self, number: usize) -> String {
        self.spelled(number..number + 1).map(unspelled).collect()
    }

    /// Whether all of them are records that may have an embedding, once the changes that come with it are made:
    /// `coming` knows whether there is a record of this id then, if they speak of it. Errors: `Invalid` names the first
    /// that is not.
    pub(in crate::store) fn check(&self, state: &State, coming: impl Fn(&[u8]) -> Option<bool>) -> Result<()> {
        let tombstones = Query {
            status: Some("tombstone".to_owned()),
            faces: true,
            viewer: Arc::new(Viewer::Everyone),
            ..Query::default()
        };
        let tombstones = tombstones.sieve(state);
        let mut next = 0;
        for id in self.spelled(0..self.len()) {
            let slot = state.slots.of_spelled_near(id, next);
            next = slot.map_or(0, |slot| slot + 1);
            let is_deleted = |slot: u32| tombstones.passes(state, slot);
            let name = || format!("{:?}", unspelled(id));
            let reason = match (coming(id), slot) {
                _ if !is_searched(id) => format!("{} keeps the books, and is found by no search", name()),
                (Some(true), _) => continue,
                (Some(false), _) => format!("the record {} is deleted by the same change", name()),
                (None, None) => format!("there is no record {}", name()),
                (None, Some(slot)) if is_deleted(slot) => format!("the record {} is deleted", name()),
                _ => continue,
            };
            return Err(Error::invalid("id", reason));
        }
        Ok(())
    }
}

impl<S: AsRef<str>> FromIterator<S> for Ids {
    fn from_iter<I: IntoIterator<Item = S>>(ids: I) -> Self {
        let ids = ids.into_iter();
        let mut these = Self::with_capacity(ids.size_hint().0);
        ids.for_each(|id| these.push(id.as_ref()));
        these
    }
}
