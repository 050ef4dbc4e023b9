//! How does an embedding get into a space?

use super::index::Spaces;
use super::rows::{is_finite, not_finite};
use super::words::{self, Bound, GROUP_ROWS, check_dim, check_name, write_gone};
use crate::digest::Hex;
use crate::error::{Error, Result};
use crate::event::draft::Draft;
use crate::json;
use crate::state::{Query, unspelled};
use crate::store::{Committed, Store};
use crate::text::is_searched;

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
            let ids = Spelled::of(attachment.ids);
            store.check_records(&ids)?;
            if u64::from(first) + attachment.ids.len() as u64 >= u64::from(u32::MAX) {
                return Err(Error::invalid("space", "a space holds fewer than 2^32 rows"));
            }
            let digests = store.write_rows(&bound, first, attachment)?;
            store.draft_groups(&mut draft, &bound, first, (&ids, &digests))?;
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

    /// Takes all embeddings of a space back, and the space with them; gives how many there were. Its rows go with the next
    /// compaction. The space that is asked when none is named goes only if it is empty, or if `anyway`.
    ///
    /// # Errors
    /// `NoSpace`; `Invalid` if it is in use; and as `commit`.
    pub fn drop_space(&mut self, name: &str, anyway: bool, now: i64) -> Result<u32> {
        self.with_lock(now, |store| {
            let mut draft = Draft::default();
            let known = store.known_spaces();
            let index = known.find(Some(name))?;
            let living = index.living;
            if living > 0 && known.spaces.choice() == name && !anyway {
                let reason =
                    format!("{name:?} is the one that is asked when none is named, and holds {living} embeddings");
                return Err(Error::invalid("space", reason));
            }
            for group in index.groups.keys() {
                words::write_empty(&mut draft, name, *group)?;
            }
            words::write_dropped(&mut draft, name)?;
            drop(known);
            store.write(&[&draft], now)?;
            store.sync_if_due(now)?;
            Ok(living)
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
        let Spaces { spaces, dropped, .. } = &known.spaces;
        let mut others = spaces.keys().chain(dropped.keys()).filter(|other| *other != name);
        if let Some(other) = others.find(|other| other.eq_ignore_ascii_case(name)) {
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
            generation: dropped.get(name).map_or(0, |last| last + 1),
        };
        words::write_space(draft, &bound, self.options.recursion_depth)?;
        Ok((bound, 0))
    }

    fn check_records(&self, ids: &Spelled) -> Result<()> {
        let tombstones = self.state.sieve(&Query {
            status: Some("tombstone".to_owned()),
            faces: true,
            ..Query::default()
        });
        for id in ids.iter() {
            if !is_searched(id) {
                let reason = format!("{:?} keeps the books, and is found by no search", unspelled(id));
                return Err(Error::invalid("id", reason));
            }
            match self.state.slot_spelled(id) {
                None => return Err(Error::invalid("id", format!("there is no record {:?}", unspelled(id)))),
                Some(slot) if self.state.passes(&tombstones, slot) => {
                    return Err(Error::invalid(
                        "id",
                        format!("the record {:?} is deleted", unspelled(id)),
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn draft_groups(
        &self,
        draft: &mut Draft,
        bound: &Bound,
        mut row: u32,
        (ids, digests): (&Spelled, &[Hex]),
    ) -> Result<()> {
        let mut ids = ids.iter();
        for digests in digests.chunks(GROUP_ROWS) {
            let rows: Vec<(&[u8], &Hex)> = ids.by_ref().zip(digests).collect();
            words::write_group(draft, bound, row, &rows, self.options.recursion_depth)?;
            row += digests.len() as u32;
        }
        Ok(())
    }
}

/// Ids as they stand between quotes in canonical JSON, end to end.
struct Spelled {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Spelled {
    fn of(ids: &[String]) -> Self {
        let mut text = Vec::with_capacity(ids.iter().map(|id| id.len() + 2).sum());
        let mut ends = Vec::with_capacity(ids.len());
        for id in ids {
            json::write_string(id, &mut text);
            ends.push(text.len());
        }
        Self { text, ends }
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start + 1..end - 1])
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
    // More are looked at when they are copied: reading all of them twice takes longer than writing garbage.
    let few = attachment.ids.iter().take(GROUP_ROWS);
    for (id, row) in few.zip(attachment.rows.chunks_exact(attachment.dim)) {
        if !is_finite(row) {
            return Err(not_finite(id));
        }
    }
    Ok(())
}
