//! Answers what is asked about embeddings beside which are near: spaces, single vectors, where rows lie.

use std::path::PathBuf;
use std::sync::Arc;

use crate::store::embeddings::Embeddings;
use crate::store::vectors::known::{KnownSpaces, Vectors};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::rows::check::{is_row, row_damage};
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{open_if_there, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::layout::rows_name;
use chronolog::scope::Viewer;
use chronomemory_state::state::{Query, State, unspelled};

/// What there is to say about a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceReport {
    /// Its name.
    pub name: String,
    /// The model that it is bound to.
    pub model: String,
    /// How many components its rows have.
    pub dim: usize,
    /// Which file holds them.
    pub generation: u64,
    /// How many components the token vectors had whose codes they are; 0 if they are vectors.
    pub tokens: usize,
    /// How many rows the log names.
    pub rows: u32,
    /// How many of them are the embedding of a record.
    pub living: u32,
    /// How many bytes the rows take.
    pub bytes: u64,
    /// How many rows this process has found damaged so far.
    pub damaged: u64,
    /// Whether it is asked when no space is named.
    pub is_default: bool,
}

/// Where the rows of a space lie.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The file.
    pub path: PathBuf,
    /// How many rows there are.
    pub rows: u32,
    /// How many components each has.
    pub dim: usize,
    /// The record of each row; none where a row is nobody's embedding any more.
    pub ids: Vec<Option<String>>,
}

impl Vectors {
    /// Whether a question of so many numbers can be compared with a space; nobody minds if there is none of that name.
    ///
    /// # Errors
    /// `Argument` if it cannot.
    pub fn check_fits(&self, state: &State, space: &str, numbers: usize) -> Result<()> {
        let known = self.known(state);
        let Some(bound) = known.spaces.spaces.get(space).map(|index| &index.bound) else {
            return Ok(());
        };
        if bound.dim == numbers {
            return Ok(());
        }
        let (dim, model) = (bound.dim, &bound.model);
        let reason = format!("{numbers} numbers for a query do not fit {dim} of '{model}'");
        Err(Error::argument("embedding", reason))
    }

    /// The embedding of a record as bytes, little-endian; `None` if it has none, or is not seen.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupted` if the row is not the one that the log names; `Io`.
    pub fn embedding(&self, state: &State, viewer: &Viewer, space: Option<&str>, id: &str) -> Result<Option<Vec<u8>>> {
        let mut known = self.known(state);
        let index = known.find(space)?;
        let slot = state.seen(viewer, id);
        let Some(row) = slot.and_then(|slot| index.row_of(slot)) else {
            return Ok(None);
        };
        let bound = &index.bound;
        let path = self.site.layout.rows(&bound.name, bound.generation);
        let mut bytes = Vec::new();
        if let Some(file) = open_if_there(&*self.site.disk, &path).at(&path)? {
            let offset = u64::from(row) * bound.stride();
            read_upto(&*file, &mut bytes, offset, bound.stride() as usize).at(&path)?;
        }
        if is_row(&bytes, 0, bound, &index.digest_of(row).unwrap_or_default()) {
            return Ok(Some(bytes));
        }
        let is_there = bytes.len() as u64 == bound.stride();
        let damage = row_damage(bound, row, &chronomemory_state::state::spelled(id), is_there);
        if is_there {
            let bound = bound.clone();
            self.cache_of(&mut known, &bound).fail(row);
        }
        Err(Error::Corrupted(Box::new(damage)))
    }

    /// Hears what was found damaged: such rows are passed over from now on.
    pub fn note_damage(&self, state: &State, found: &[Damage]) {
        let mut known = self.known(state);
        for damage in found.iter().filter(|damage| damage.kind == DamageKind::RowAltered) {
            let bounds = known.spaces.spaces.values().map(|index| &index.bound);
            let of_file = |bound: &&Bound| rows_name(&bound.name, bound.generation) == damage.path;
            let Some(bound) = bounds.into_iter().find(of_file).cloned() else {
                continue;
            };
            if let Ok(row) = u32::try_from(damage.offset / bound.stride()) {
                self.cache_of(&mut known, &bound).fail(row);
            }
        }
    }
}

impl Embeddings<'_> {
    /// All spaces, by name.
    pub fn spaces(&self) -> Vec<SpaceReport> {
        let known = self.vectors.known(self.live.state);
        let report = |index: &RowIndex| SpaceReport {
            name: index.bound.name.clone(),
            model: index.bound.model.clone(),
            dim: index.bound.dim,
            generation: index.bound.generation,
            tokens: index.bound.tokens,
            rows: index.rows,
            living: index.living,
            bytes: u64::from(index.rows) * index.bound.stride(),
            damaged: known.damaged(index).len(),
            is_default: known.spaces.choice() == index.bound.name,
        };
        known.spaces.spaces.values().map(report).collect()
    }

    /// How many rows of a space are embeddings of records that somebody sees, and how many of these are known to be damaged;
    /// `None` for one who sees all scopes.
    pub fn rows_seen(&self, viewer: &Arc<Viewer>, space: &str) -> Result<Option<(u64, u64)>> {
        let state = self.live.state;
        if state.sight(viewer).is_of_all_scopes() {
            return Ok(None);
        }
        let mut known = self.vectors.known(state);
        known.find(Some(space))?;
        let query = Query {
            viewer: Arc::clone(viewer),
            min_confidence: f64::NEG_INFINITY,
            faces: true,
            ..Query::default()
        };
        let KnownSpaces { spaces, filters, .. } = &mut *known;
        let seen = filters.rows_for(state, &spaces.spaces[space], &query);
        let damaged = known.damaged(&known.spaces.spaces[space]).intersection_len(&seen.rows);
        Ok(Some((seen.rows.len(), damaged)))
    }

    /// Where the rows of a space lie, and whose they are.
    pub fn matrix(&self, space: Option<&str>) -> Result<Matrix> {
        let state = self.live.state;
        let known = self.vectors.known(state);
        let index = known.find(space)?;
        let name = |row: u32| {
            let owner = index.owner_of(row).filter(|_| index.is_living(row))?;
            Some(unspelled(&state.slots.id(owner)))
        };
        Ok(Matrix {
            path: self.vectors.site.layout.rows(&index.bound.name, index.bound.generation),
            rows: index.rows,
            dim: index.bound.dim,
            ids: (0..index.rows).map(name).collect(),
        })
    }
}
