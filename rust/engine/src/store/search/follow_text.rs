//! Brings the text index up to date with the state, and seals it again in the background.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::live_text::{Attached, TextFiles, attach};
use super::live_text::{ChangedRows, KeptIndex, Lack, LiveTextIndex, can_be_sealed, check_room, source_of};
use crate::store::Store;
use crate::store::shared::Shared;
use chronolog::error::Result;
use chronomemory_search::text::{Fields, Sealed, TextIndex};

/// Brings the index up to date with the state.
pub(in crate::store) fn catch_up(shared: &Shared) -> Result<Arc<LiveTextIndex>> {
    loop {
        let look = |store: &Store| {
            Ok((
                Arc::clone(&store.views.text),
                TextFiles::of(store),
                store.views.text.lack(store.live()),
            ))
        };
        let (live, files, lack) = shared.read(look)?;
        match lack {
            Lack::Nothing => return Ok(live),
            Lack::Changes(changed) => {
                live.take_in(&changed);
                live.save(&files);
            }
            Lack::Everything => make(shared, &live)?,
        }
    }
}

/// Seals the index of a store again if enough changed, while searches go on. It takes long for many records, so a background
/// thread calls it.
pub fn seal_text(shared: &Shared) -> Result<()> {
    let live = Arc::clone(&shared.read_guard().views.text);
    let Ok(_turn) = live.building.try_lock() else {
        return Ok(());
    };
    // Later changes set the flag again.
    live.ragged.store(false, Ordering::Relaxed);
    let Some(mut sealed) = live.sealed_copy() else {
        return Ok(());
    };
    let source = sealed.source.clone();
    let files = loop {
        let (files, changed) = shared.read(|store| {
            let choice = sealed.source.choice.as_deref();
            let changed = ChangedRows::since(store.live(), &sealed.mark, choice);
            Ok((TextFiles::of(store), changed))
        })?;
        let Some(changed) = changed else { return Ok(()) };
        changed.rows.iter().for_each(|row| row.put_into(&mut sealed.index));
        (sealed.mark, sealed.source) = (changed.mark, changed.source);
        if live.replace(&mut sealed, &source) {
            break files;
        }
    };
    live.save(&files);
    Ok(())
}

/// Makes the first index: from a file, or from all records.
fn make(shared: &Shared, live: &LiveTextIndex) -> Result<()> {
    let _turn = live.building.lock().unwrap_or_else(PoisonError::into_inner);
    if !matches!(
        shared.read(|store| Ok(store.views.text.lack(store.live())))?,
        Lack::Everything
    ) {
        return Ok(());
    }
    let files = TextFiles::of(&shared.read_guard());
    live.discard_failed(&files);
    let found = if live.avoids_files() { None } else { files.newest() };
    let mut store = shared.write_guard();
    store.refresh()?;
    let files = TextFiles::of(&store);
    let mark = store.state.changes().watermark();
    let source = source_of(store.live());
    let threads = store.options.threads;
    if let Some(attached) = found.and_then(|(source, sealed)| attach(store.live(), &source, sealed)) {
        drop(store);
        let Attached {
            mut index,
            changed,
            mut unsaved,
            has_gone,
        } = attached;
        changed.iter().for_each(|row| row.put_into(&mut index));
        // A file that is far behind may get too many changes at once. Documents without a record may have been erased: a file with
        // such documents is not kept open.
        if (has_gone || index.is_overgrown()) && can_be_sealed(&index) {
            index.seal();
            unsaved = Some(source.clone());
        }
        live.keep(KeptIndex { index, mark, source }, unsaved);
        live.save(&files);
        return Ok(());
    }
    check_room(store.state.slots.len(), store.state.slots.bytes())?;
    let rows = store.state.freeze()?;
    drop(store);
    let fields = Fields::chosen(source.choice.as_deref());
    let index = TextIndex::new(fields.clone(), Sealed::build(&rows, &fields, threads)?);
    rows.check()?;
    let unsaved = Some(source.clone());
    live.keep(KeptIndex { index, mark, source }, unsaved);
    live.save(&files);
    Ok(())
}
