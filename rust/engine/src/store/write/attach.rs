//! Attaches embeddings to records, and detaches them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::claims::check_owned;
use super::commit::{Bookmark, first_behind};
use crate::options::Durability;
use crate::store::vectors::changes::write::Attachment;
use crate::store::vectors::changes::write::{SyncAhead, check_attachment};
use crate::store::vectors::records::format::{self, Bound, write_gone};
use crate::store::{Committed, Store};
use chronolog::error::{Error, Result};
use chronolog::event::Op;
use chronolog::event::draft::Draft;
use chronolog::scope::Viewer;
use chronomemory_state::state::spelled;

impl Store {
    /// Gives records embeddings, all or none.
    ///
    /// # Errors
    /// `Invalid` for a record that is not there or a vector that is not finite, `Argument` for vectors that do not go with the
    /// ids and for a bad name, `Limit` if the space is full; `Bound` if
    /// the space belongs to another model or dimension; and as `commit`. Nothing is written then.
    pub fn attach(&mut self, attachment: &Attachment<'_>, writer: &Arc<Viewer>, now: i64) -> Result<Committed> {
        let committed = self.attach_unsynced(attachment, writer, now)?;
        self.with_lock(now, |store| store.sync_if_due(now))?;
        Ok(committed)
    }

    /// The same; a sync that is due in mode `normal` is left to the caller, who can wait for it while others go on.
    pub fn attach_unsynced(
        &mut self,
        attachment: &Attachment<'_>,
        writer: &Arc<Viewer>,
        now: i64,
    ) -> Result<Committed> {
        check_attachment(attachment)?;
        self.with_lock(now, |store| store.write_with(&nothing_by(writer), &[*attachment], now))
    }

    /// The same, unless one of the records has changed since it was read, or has an embedding in that space by now: `None`
    /// then, and nothing is written.
    pub fn attach_if_missing(
        &mut self,
        attachment: &Attachment<'_>,
        writer: &Arc<Viewer>,
        since: &Bookmark,
        now: i64,
    ) -> Result<Option<Committed>> {
        check_attachment(attachment)?;
        self.with_lock(now, |store| {
            let Some(first) = first_behind(store.live(), since)? else {
                return Ok(None);
            };
            let known = store.vectors.known(&store.state);
            let name = attachment.space.unwrap_or_else(|| known.spaces.choice());
            let index = known.spaces.spaces.get(name);
            let mut ids = (0..attachment.ids.len()).map(|place| attachment.ids.shown(place));
            let is_taken = ids.any(|id| {
                let has_one = |slot| index.is_some_and(|index| index.row_of(slot).is_some());
                store.state.is_spoken_of_from(&id, first) || store.state.slot_of(&id).is_some_and(has_one)
            });
            drop(known);
            if is_taken {
                return Ok(None);
            }
            store.write_with(&nothing_by(writer), &[*attachment], now).map(Some)
        })
    }

    /// Writes changes and embeddings as one atomic batch, the embeddings behind the changes: records that come with
    /// them may have one at once. Each space may be named once. Errors: As `attach` and `commit`; nothing is written
    /// then.
    pub(in crate::store) fn write_with(
        &mut self,
        changes: &Draft,
        attachments: &[Attachment<'_>],
        now: i64,
    ) -> Result<Committed> {
        let coming = coming(changes);
        let depth = self.options.recursion_depth;
        let syncs_at_all = self.options.durability != Durability::Off;
        let is_log_damaged = !self.log.report.damage.is_empty();
        let mut places = Vec::new();
        for attachment in attachments {
            let mut space = Draft::default();
            let (bound, first) = self
                .vectors
                .bound_for(&self.state, is_log_damaged, attachment, depth, &mut space)?;
            let is_there = |id: &[u8]| coming.get(id).copied();
            // First whose they are: of what somebody does not see nothing is told, not even that it is deleted.
            let ids = attachment.ids.spelled(0..attachment.ids.len());
            check_owned(&self.state, changes.writer(), ids.filter(|id| !coming.contains_key(id)))?;
            attachment.ids.check(&self.state, is_there, self.options.threads)?;
            if u64::from(first) + attachment.ids.len() as u64 >= u64::from(u32::MAX) {
                let what = format!(
                    "the space {:?} would have 2^32 rows, and a space holds fewer",
                    bound.name
                );
                return Err(Error::limit(what));
            }
            if places.iter().any(|place: &RowsPlace| place.bound.name == bound.name) {
                return Err(Error::argument("space", format!("{:?} is named twice", bound.name)));
            }
            let ahead = SyncAhead::of(&self.vectors.rows_file(&mut self.log, &bound)?, syncs_at_all);
            let path = self.site.layout.rows(&bound.name, bound.generation);
            places.push(RowsPlace {
                bound,
                first,
                space,
                ahead,
                path,
            });
        }
        let before = self.state.changes().watermark();
        let is_first = self.last_seq() == 0;
        let committed = std::thread::scope(|scope| {
            let mut groups = Vec::new();
            for (place, attachment) in places.iter().zip(attachments) {
                groups.push(self.vectors.write_rows(
                    depth,
                    (&place.bound, place.first),
                    attachment,
                    (scope, &place.ahead),
                )?);
                // A log is born synced, whatever the mode: what its first lines name must be on disk before.
                if self.syncs_every_commit() || is_first {
                    let synced = place.ahead.file.sync().and_then(|()| place.ahead.outcome());
                    self.log.record_sync(synced, &place.path)?;
                }
            }
            let named = places.iter().zip(&groups);
            let named = named.flat_map(|(place, groups)| std::iter::once(&place.space).chain(groups));
            let parts: Vec<&Draft> = std::iter::once(changes).chain(named).collect();
            self.write(&parts, now)
        })?;
        for place in &places {
            self.log.record_sync(place.ahead.outcome(), &place.path)?;
        }
        if self.syncs_every_commit() {
            self.vectors.on_disk.go_on(&before, self.state.changes().watermark());
            self.sync_if_due(now)?;
        }
        Ok(committed)
    }

    /// Takes the embeddings of records back; gives how many there were.
    pub fn detach(&mut self, space: Option<&str>, ids: &[String], writer: &Arc<Viewer>, now: i64) -> Result<usize> {
        self.with_lock(now, |store| {
            // Who does not see a record hears of it what he would of none.
            let is_seen = |id: &Vec<u8>| matches!(store.state.seen_by(writer, id), Some(Some(_)));
            let seen: Vec<Vec<u8>> = ids.iter().map(|id| spelled(id)).filter(is_seen).collect();
            check_owned(&store.state, writer, seen.iter().map(Vec::as_slice))?;
            let mut draft = Draft::default();
            let mut rows = Vec::new();
            {
                let known = store.vectors.known(&store.state);
                let index = known.find(space)?;
                rows.extend(seen.iter().filter_map(|id| index.row_of(store.state.slot_spelled(id)?)));
                rows.sort_unstable();
                rows.dedup();
                let group_of = |row: &u32| index.group_of(*row);
                for rows in rows.chunk_by(|a, b| group_of(a) == group_of(b)) {
                    if let Some(group) = group_of(&rows[0]) {
                        write_gone(&mut draft, &index.bound, group, rows)?;
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
    /// compaction. The space that is asked when none is named goes only if it is empty, or if `force`.
    ///
    /// # Errors
    /// `NoSpace`; `Argument` if it is in use; and as `commit`.
    pub fn drop_space(&mut self, name: &str, force: bool, now: i64) -> Result<u32> {
        self.with_lock(now, |store| {
            let mut draft = Draft::default();
            let known = store.vectors.known(&store.state);
            let index = known.find(Some(name))?;
            let living = index.living;
            if living > 0 && known.spaces.choice() == name && !force {
                let reason =
                    format!("{name:?} is the one that is asked when none is named, and holds {living} embeddings");
                return Err(Error::argument("space", reason));
            }
            if index.is_implied {
                // Its own record is lost, and there must be one to say that it is no more.
                format::write_space(&mut draft, &index.bound, store.options.recursion_depth)?;
            }
            let left_behind = index.left_behind.keys().map(|(_, group)| group);
            for group in index.groups.keys().chain(left_behind) {
                format::write_empty(&mut draft, name, *group)?;
            }
            format::write_dropped(&mut draft, name)?;
            drop(known);
            store.write(&[&draft], now)?;
            store.sync_if_due(now)?;
            Ok(living)
        })
    }

    /// Says which space is asked when none is named.
    pub fn choose_space(&mut self, name: &str, now: i64) -> Result<()> {
        self.with_lock(now, |store| {
            store.vectors.known(&store.state).find(Some(name))?;
            let mut draft = Draft::default();
            format::write_choice(&mut draft, name, store.options.recursion_depth)?;
            store.write(&[&draft], now)?;
            store.sync_if_due(now)
        })
    }
}

/// Where the rows of an attachment go.
struct RowsPlace {
    bound: Bound,
    first: u32,
    /// Binds the space, if it is new.
    space: Draft,
    ahead: SyncAhead,
    path: PathBuf,
}

/// Which ids changes speak of, and whether there is a record of them afterwards.
fn coming(changes: &Draft) -> HashMap<&[u8], bool> {
    let all = changes.changes().iter().filter(|change| change.op != Op::Act);
    all.map(|change| (changes.id(change), change.op != Op::Delete))
        .collect()
}

/// A draft that says nothing, by somebody.
fn nothing_by(writer: &Arc<Viewer>) -> Draft {
    let mut draft = Draft::default();
    draft.written_by(writer);
    draft
}
