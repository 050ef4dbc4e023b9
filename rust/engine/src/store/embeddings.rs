//! Reads the embeddings of an open store, and drafts changes of its spaces.

use std::sync::Arc;

use super::history::lines::LiveLog;
use super::vectors::records::format::{self, write_gone};
use super::vectors::{Attachment, Vectors};
use super::write::claims::check_owned;
use super::write::commit::{Bookmark, first_behind};
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronolog::scope::Viewer;
use chronomemory_state::state::spelled;

/// The embeddings of a store, as fresh as its state.
pub struct Embeddings<'a> {
    pub(in crate::store) live: LiveLog<'a>,
    pub(in crate::store) vectors: &'a Vectors,
    /// The recursion depth of records that a draft adds.
    pub(super) depth: i64,
}

impl Embeddings<'_> {
    /// The embedding of a record as little-endian bytes; `None` if it has none.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupted` if the row is not the one that the log names; `Io`.
    pub fn embedding(&self, space: Option<&str>, id: &str) -> Result<Option<Vec<u8>>> {
        let everyone = Viewer::Everyone.with_expired();
        self.vectors.embedding(self.live.state, &everyone, space, id)
    }

    /// Whether one of the records has changed since it was read, or has an embedding in that space by now.
    pub(super) fn have_changed(&self, since: &Bookmark, attachment: &Attachment<'_>) -> Result<bool> {
        let (state, Some(first)) = (self.live.state, first_behind(self.live, since)?) else {
            return Ok(true);
        };
        let known = self.vectors.known(state);
        let name = attachment.space.unwrap_or_else(|| known.spaces.choice());
        let index = known.spaces.spaces.get(name);
        let has_one = |slot| index.is_some_and(|index| index.row_of(slot).is_some());
        let mut ids = (0..attachment.ids.len()).map(|place| attachment.ids.shown(place));
        Ok(ids.any(|id| state.is_spoken_of_from(&id, first) || state.slots.of_id(&id).is_some_and(has_one)))
    }

    /// A draft that takes the embeddings of records back, and how many there are.
    pub fn detach(&self, space: Option<&str>, ids: &[String], writer: &Arc<Viewer>) -> Result<(Draft, usize)> {
        let state = self.live.state;
        // A record that the writer does not see is treated as one that is not there.
        let is_seen = |id: &Vec<u8>| matches!(state.slot_seen_by(writer, id), Some((_, Some(_))));
        let seen: Vec<Vec<u8>> = ids.iter().map(|id| spelled(id)).filter(is_seen).collect();
        check_owned(state, writer, seen.iter().map(Vec::as_slice))?;
        let known = self.vectors.known(state);
        let index = known.find(space)?;
        let row_of = |id: &Vec<u8>| index.row_of(state.slots.of_spelled(id)?);
        let mut rows: Vec<u32> = seen.iter().filter_map(row_of).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut draft = Draft::default();
        for rows in rows.chunk_by(|a, b| index.group_of(*a) == index.group_of(*b)) {
            if let Some(group) = index.group_of(rows[0]) {
                write_gone(&mut draft, &index.bound, group, rows)?;
            }
        }
        Ok((draft, rows.len()))
    }

    /// A draft that drops a space with its embeddings, and how many those are; the default space only with `force` or empty.
    ///
    /// # Errors
    /// `NoSpace`; `Argument` if it is in use.
    pub fn drop_space(&self, name: &str, force: bool) -> Result<(Draft, u32)> {
        let mut draft = Draft::default();
        let known = self.vectors.known(self.live.state);
        let index = known.find(Some(name))?;
        let living = index.living;
        if living > 0 && known.spaces.choice() == name && !force {
            let reason = format!("{name:?} is the one that is asked when none is named, and holds {living} embeddings");
            return Err(Error::argument("space", reason));
        }
        if index.is_implied {
            // Its own record is lost, and a tombstone needs one.
            format::write_space(&mut draft, &index.bound, self.depth)?;
        }
        let left_behind = index.left_behind.keys().map(|(_, group)| group);
        for group in index.groups.keys().chain(left_behind) {
            format::write_empty(&mut draft, name, *group)?;
        }
        format::write_dropped(&mut draft, name)?;
        Ok((draft, living))
    }

    /// A draft that makes a space the default one.
    pub fn choose_space(&self, name: &str) -> Result<(Draft, ())> {
        self.vectors.known(self.live.state).find(Some(name))?;
        let mut draft = Draft::default();
        format::write_choice(&mut draft, name, self.depth)?;
        Ok((draft, ()))
    }
}
