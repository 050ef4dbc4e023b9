//! Checks that a sentinel and the event behind it tell of the same erasure.

use std::collections::{HashMap, HashSet};

use chronolog::digest::Hex;
use chronolog::event::erasure::{Erasure, Replacement};
use chronolog::origin::Sentinel;

use super::way::Hop;

/// What logs name: how many lines of each archive are redacted, and which bases there are.
#[derive(Clone, Default)]
pub(super) struct NamedByLogs {
    archives: HashMap<Hex, u64>,
    bases: HashSet<Hex>,
}

impl NamedByLogs {
    /// Takes what a log names: its own files, and those that it put in the place of others.
    pub fn take(&mut self, hop: &Hop) {
        self.bases.extend(hop.base.0);
        let Some(sentinel) = &hop.sentinel else {
            return;
        };
        if let Some(digest) = Hex::read(sentinel.told.archive.as_bytes()) {
            let told = sentinel.told.erasure.as_ref();
            self.archives.insert(digest, told.map_or(0, |told| told.erased));
        }
        for one in sentinel.told.erasure.iter().flat_map(|told| &told.replaced) {
            match (one.new, one.erased) {
                (Some(new), Some(erased)) => {
                    self.archives.insert(new, erased);
                }
                (new, _) => self.bases.extend(new),
            }
        }
    }
}

/// What is wrong with a sentinel that tells of an erasure, and the event that should follow it. `before` is what the logs
/// before it name, and whether that is all of them.
pub(super) fn unbound(
    sentinel: &Sentinel,
    event: Option<&Erasure>,
    before: &NamedByLogs,
    is_all_known: bool,
) -> Option<&'static str> {
    let told = sentinel.told.erasure.as_ref()?;
    if !told.is_sound {
        return Some("erased and replaced are not as they should be");
    }
    let Some(event) = event else {
        return Some("no erase event follows the sentinel");
    };
    let (mut olds, mut news) = (HashSet::new(), HashSet::new());
    let is_first = |one: &Replacement| {
        olds.insert(one.old) && one.new.is_none_or(|new| news.insert(new)) && Some(one.old) != one.new
    };
    if !told.replaced.iter().all(is_first) {
        return Some("a file is replaced twice, by one that replaces another, or by itself");
    }
    let is_dropped = sentinel.archive.is_none();
    if is_dropped != event.is_dropped || is_dropped && (told.erased > 0 || !told.replaced.is_empty()) {
        return Some("what became of the history is not what the event says");
    }
    let mut lines = told.erased;
    let mut is_more = true;
    for one in &told.replaced {
        let was = match one.erased {
            Some(_) => before.archives.get(&one.old).copied(),
            None => before.bases.contains(&one.old).then_some(0),
        };
        let Some(was) = was else {
            return is_all_known.then_some("a file is replaced that nothing names");
        };
        if let Some(now) = one.erased {
            is_more &= now > was;
            lines = lines.saturating_add(now.saturating_sub(was));
        }
    }
    if !is_more {
        return Some("a file was replaced in which nothing was erased");
    }
    (!is_dropped && event.lines != lines).then_some("the event counts other lines than were erased")
}
