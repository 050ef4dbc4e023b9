//! How does an embedding get into a space?

use std::io;
use std::sync::Arc;

use super::words::{self, Bound, GROUP_ROWS, check_dim, check_name, shown, write_gone};
use crate::digest::{Hex, sha256};
use crate::disk::{Access, DiskFile};
use crate::error::{At, Error, Result};
use crate::event::draft::Draft;
use crate::ordered::in_order;
use crate::state::{Query, spelled};
use crate::store::{Committed, Store};

/// Embeddings of some records, all of one model.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The space, or the one that is asked when none is named.
    pub space: Option<&'a str>,
    /// The model they come from; may be left out once the space is bound.
    pub model: Option<&'a str>,
    /// How many components each has.
    pub dim: usize,
    /// The records.
    pub ids: &'a [String],
    /// The vectors, end to end.
    pub rows: &'a [f32],
}

/// Some rows as they lie on disk.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    digests: Vec<Hex>,
}

impl Store {
    /// Gives records embeddings, all or none.
    ///
    /// # Errors
    /// `Invalid` for a record that is not there, a vector that is not finite or of the wrong length, a bad name; `Bound` if
    /// the space belongs to another model or dimension; and as `commit`. Nothing is written then.
    pub fn attach(&mut self, attachment: &Attachment<'_>, now: i64) -> Result<Committed> {
        let committed = self.attach_unsynced(attachment, now)?;
        self.with_lock(now, |store| store.sync_if_due(now))?;
        Ok(committed)
    }

    /// The same; a sync that is due in mode `normal` is left to the caller, who can wait for it while others go on.
    ///
    /// # Errors
    /// As `attach`.
    pub fn attach_unsynced(&mut self, attachment: &Attachment<'_>, now: i64) -> Result<Committed> {
        check(attachment)?;
        self.with_lock(now, |store| {
            let mut draft = Draft::default();
            let (bound, first) = store.bound_for(attachment, &mut draft)?;
            store.check_records(attachment.ids)?;
            if u64::from(first) + attachment.ids.len() as u64 >= u64::from(u32::MAX) {
                return Err(Error::invalid("space", "a space holds fewer than 2^32 rows"));
            }
            let digests = store.write_rows(&bound, first, attachment)?;
            store.draft_groups(&mut draft, &bound, first, (attachment.ids, &digests))?;
            let said = store.state.vector_changes().len();
            let committed = store.write(&[&draft], now)?;
            if store.syncs_every_commit() {
                if store.unsynced.rows == said {
                    store.unsynced.rows = store.state.vector_changes().len();
                }
                store.sync_if_due(now)?;
            }
            Ok(committed)
        })
    }

    /// Takes the embeddings of records back; gives how many there were.
    ///
    /// # Errors
    /// `NoSpace`, and as `commit`.
    pub fn detach(&mut self, space: Option<&str>, ids: &[String], now: i64) -> Result<usize> {
        self.with_lock(now, |store| {
            let mut draft = Draft::default();
            let mut rows = Vec::new();
            {
                let known = store.known_spaces();
                let index = known.find(space)?;
                rows.extend(ids.iter().filter_map(|id| index.row_of(store.state.slot_of(id)?)));
                rows.sort_unstable();
                rows.dedup();
                let group_of = |row: &u32| index.group_of(*row);
                for rows in rows.chunk_by(|a, b| group_of(a) == group_of(b)) {
                    if let Some(group) = group_of(&rows[0]) {
                        write_gone(&mut draft, &index.bound.name, group, rows)?;
                    }
                }
            }
            if !draft.is_empty() {
                store.write(&[&draft], now)?;
                store.sync_if_due(now)?;
            }
            Ok(rows.len())
        })
    }

    /// Says which space is asked when none is named.
    ///
    /// # Errors
    /// `NoSpace`, and as `commit`.
    pub fn choose_space(&mut self, name: &str, now: i64) -> Result<()> {
        self.with_lock(now, |store| {
            store.known_spaces().find(Some(name))?;
            let mut draft = Draft::default();
            words::write_choice(&mut draft, name, store.options.recursion_depth)?;
            store.write(&[&draft], now)?;
            store.sync_if_due(now)
        })
    }

    /// The space of an attachment and its next row; a new space is put into the draft.
    fn bound_for(&self, attachment: &Attachment<'_>, draft: &mut Draft) -> Result<(Bound, u32)> {
        let known = self.known_spaces();
        let name = attachment.space.unwrap_or_else(|| known.spaces.choice());
        if let Some(index) = known.spaces.spaces.get(name) {
            let bound = &index.bound;
            let model = attachment.model.unwrap_or(&bound.model);
            if model != bound.model || attachment.dim != bound.dim {
                return Err(Error::Bound {
                    space: name.to_owned(),
                    model: bound.model.clone(),
                    dim: bound.dim,
                    given_model: model.to_owned(),
                    given_dim: attachment.dim,
                });
            }
            return Ok((bound.clone(), index.rows));
        }
        check_name(name)?;
        if let Some(other) = known
            .spaces
            .spaces
            .keys()
            .find(|other| other.eq_ignore_ascii_case(name))
        {
            return Err(Error::invalid(
                "space",
                format!("{name:?} differs from {other:?} only in case"),
            ));
        }
        let Some(model) = attachment.model.filter(|model| !model.is_empty()) else {
            return Err(Error::invalid(
                "model",
                format!("the new space {name:?} needs the name of its model"),
            ));
        };
        let bound = Bound {
            name: name.to_owned(),
            model: model.to_owned(),
            dim: attachment.dim,
            generation: 0,
        };
        words::write_space(draft, &bound, self.options.recursion_depth)?;
        Ok((bound, 0))
    }

    fn check_records(&self, ids: &[String]) -> Result<()> {
        let tombstones = self.state.sieve(&Query {
            status: Some("tombstone".to_owned()),
            faces: true,
            ..Query::default()
        });
        for id in ids {
            match self.state.slot_of(id) {
                None => return Err(Error::invalid("id", format!("there is no record {id:?}"))),
                Some(slot) if self.state.passes(&tombstones, slot) => {
                    return Err(Error::invalid("id", format!("the record {id:?} is deleted")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Puts rows behind those that the log names, hashing some while others are written.
    fn write_rows(&mut self, bound: &Bound, first: u32, attachment: &Attachment<'_>) -> Result<Vec<Hex>> {
        let file = self.rows_file(bound)?;
        let path = self.layout.rows(&bound.name, bound.generation);
        let (dim, each) = (bound.dim, GROUP_ROWS * bound.dim);
        let mut digests = Vec::with_capacity(attachment.ids.len());
        let mut offset = u64::from(first) * bound.stride();
        let work = |index: u64, piece: &mut Piece| {
            let start = index as usize * each;
            let floats = &attachment.rows[start..attachment.rows.len().min(start + each)];
            // From here on only this copy counts, whatever becomes of the caller's memory.
            piece.bytes.clear();
            piece.bytes.extend(floats.iter().flat_map(|value| value.to_le_bytes()));
            piece.digests.clear();
            piece.digests.extend(piece.bytes.chunks_exact(4 * dim).map(sha256));
            Ok(())
        };
        let pieces = attachment.ids.len().div_ceil(GROUP_ROWS) as u64;
        in_order(pieces, self.options.threads, work, |piece: &mut Piece| {
            file.write_at(&piece.bytes, offset)?;
            offset += piece.bytes.len() as u64;
            digests.extend_from_slice(&piece.digests);
            Ok::<bool, io::Error>(true)
        })
        .at(&path)?;
        if self.syncs_every_commit()
            && let Err(fault) = file.sync()
        {
            self.poison(&fault.to_string());
            return Err(Error::io(&path, fault));
        }
        Ok(digests)
    }

    /// The file of a space's rows, to be written; its name is durable.
    pub(super) fn rows_file(&self, bound: &Bound) -> Result<Arc<dyn DiskFile>> {
        let path = self.layout.rows(&bound.name, bound.generation);
        match self.disk.open(&path, Access::Write) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                let folder = self.layout.vectors();
                self.make_folder(&folder, self.layout.folder())?;
                let file = self.disk.create(&path).at(&path)?;
                self.disk.sync_dir(&folder).at(&folder)?;
                Ok(file)
            }
            opened => opened.at(&path),
        }
    }

    fn draft_groups(
        &self,
        draft: &mut Draft,
        bound: &Bound,
        first: u32,
        (ids, digests): (&[String], &[Hex]),
    ) -> Result<()> {
        let mut row = first;
        for (ids, digests) in ids.chunks(GROUP_ROWS).zip(digests.chunks(GROUP_ROWS)) {
            let spelled: Vec<Vec<u8>> = ids.iter().map(|id| spelled(id)).collect();
            let rows: Vec<(&[u8], Hex)> = spelled.iter().map(Vec::as_slice).zip(digests.iter().copied()).collect();
            words::write_group(draft, bound, row, &rows, self.options.recursion_depth)?;
            row += ids.len() as u32;
        }
        Ok(())
    }
}

fn check(attachment: &Attachment<'_>) -> Result<()> {
    check_dim(attachment.dim)?;
    if attachment.ids.is_empty() {
        return Err(Error::invalid("ids", "there must be at least one"));
    }
    if attachment.ids.len().checked_mul(attachment.dim) != Some(attachment.rows.len()) {
        let rows = attachment.rows.len() / attachment.dim;
        return Err(Error::invalid(
            "vector",
            format!("{} ids and {rows} vectors do not go together", attachment.ids.len()),
        ));
    }
    for (id, row) in attachment.ids.iter().zip(attachment.rows.chunks_exact(attachment.dim)) {
        // A sum of nothing but zeros, unless something is not finite: one pass without a branch for each.
        let odd = row.iter().fold(0.0_f32, |sum, value| sum + value * 0.0);
        if odd != 0.0 {
            return Err(not_finite(id));
        }
    }
    Ok(())
}

fn not_finite(id: &str) -> Error {
    Error::invalid(
        "vector",
        format!("the vector of {:?} is not finite", shown(&spelled(id))),
    )
}
