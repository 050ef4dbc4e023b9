//! Attaches embeddings to records.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::claims::check_owned;
use super::commit::Bookmark;
use crate::options::Durability;
use crate::store::vectors::changes::write::{Attachment, SyncAhead, check_attachment};
use crate::store::vectors::records::format::Bound;
use crate::store::{Committed, Store};
use chronolog::error::{Error, Result};
use chronolog::event::Op;
use chronolog::event::draft::{Author, Draft};
use chronolog::scope::Viewer;

impl Store {
    /// Gives records embeddings, all or none. With a bookmark: `None`, and nothing written, if a record has changed behind it or
    /// has an embedding in that space by now. The caller runs a sync that is due in mode `normal`.
    ///
    /// # Errors
    /// `Invalid` for a missing record or a vector that is not finite, `Argument`, `Limit`, `Bound`; and as `commit`.
    pub fn attach(
        &mut self,
        attachment: &Attachment<'_>,
        writer: &Arc<Viewer>,
        since: Option<&Bookmark>,
        now: i64,
    ) -> Result<Option<Committed>> {
        check_attachment(attachment)?;
        self.with_lock(now, |store| {
            if let Some(since) = since
                && store.embeddings().have_changed(since, attachment)?
            {
                return Ok(None);
            }
            let mut changes = Draft::default();
            changes.author = Author::plainly(writer);
            store.write_with(&changes, &[*attachment], now).map(Some)
        })
    }

    /// Writes changes and embeddings as one atomic batch, embeddings behind the changes. Each space may be named once.
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
            // Scopes first: an error must not reveal that a record that the writer does not see is deleted.
            let ids = attachment.ids.spelled(0..attachment.ids.len());
            check_owned(
                &self.state,
                &changes.author.writer,
                ids.filter(|id| !coming.contains_key(id)),
            )?;
            attachment.ids.check(&self.state, is_there)?;
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
                if self.options.syncs_every_commit() || is_first {
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
        if self.options.syncs_every_commit() {
            self.vectors.on_disk.go_on(&before, self.state.changes().watermark());
            self.sync_if_due(now)?;
        }
        Ok(committed)
    }
}

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
