//! What is known of the embeddings of a store.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringBitmap;

use super::records::index::{RowIndex, Spaces};
use super::rows::check::short_files;
use super::rows::durable::{DirtyRows, RowBarrier, RowsOnDisk};
use super::rows::filter::Filters;
use super::rows::space_cache::SpaceCache;
use chronolog::error::{Error, Result};
use chronolog::log::Site;
use chronomemory_state::state::State;

/// What is known of the embeddings of a store, where their rows are, and how many of them are on disk. All of it is derived,
/// and what is known is forgotten when the log is read anew.
pub(in crate::store) struct Vectors {
    pub(super) site: Arc<Site>,
    pub(super) threads: usize,
    known: Mutex<KnownSpaces>,
    /// Files of rows whose names this process knows to be on disk.
    pub(super) durable_names: HashSet<PathBuf>,
    /// How many of the rows that the log names are on disk.
    pub on_disk: RowsOnDisk,
}

/// The spaces, and what was read of them so far.
#[derive(Default)]
pub(in crate::store) struct KnownSpaces {
    pub(in crate::store) spaces: Spaces,
    pub(super) filters: Filters,
    /// What was mapped and checked, by space.
    pub(super) caches: HashMap<String, Arc<SpaceCache>>,
}

impl Vectors {
    /// Embeddings of which nothing is known yet.
    pub fn new(site: Arc<Site>, threads: usize) -> Self {
        Self {
            site,
            threads,
            known: Mutex::default(),
            durable_names: HashSet::new(),
            on_disk: RowsOnDisk::default(),
        }
    }

    /// Forgets what was read; how many rows are on disk is known still.
    pub fn forget(&mut self) {
        self.known = Mutex::default();
        self.durable_names = HashSet::new();
    }

    /// What a state says of all spaces.
    pub fn known(&self, state: &State) -> MutexGuard<'_, KnownSpaces> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.spaces.follow(state, self.threads);
        let KnownSpaces { spaces, caches, .. } = &mut *known;
        caches.retain(|name, _| spaces.spaces.contains_key(name));
        known
    }

    /// What must be on disk before the log may be.
    pub fn barrier<'a>(&'a mut self, state: &'a State) -> RowBarrier<'a> {
        RowBarrier {
            site: &self.site,
            state,
            on_disk: &mut self.on_disk,
        }
    }

    /// What must be synced before the log may be.
    pub fn dirty_rows(&self, state: &State) -> Option<DirtyRows> {
        self.on_disk.dirty(&self.site, state)
    }

    /// What is wrong with the files of rows at first sight, one sentence each.
    pub fn short_rows(&self, state: &State) -> Vec<String> {
        short_files(&*self.site.disk, &self.site.layout, state)
    }
}

impl KnownSpaces {
    /// The rows of a space that are known to be damaged.
    pub(super) fn damaged(&self, index: &RowIndex) -> RoaringBitmap {
        let cache = self.caches.get(&index.bound.name);
        cache.map(|cache| cache.damaged(index.rows)).unwrap_or_default()
    }

    /// A space by name, or the one to ask when none is named.
    pub(in crate::store) fn find(&self, name: Option<&str>) -> Result<&RowIndex> {
        let name = name.unwrap_or_else(|| self.spaces.choice());
        self.spaces.spaces.get(name).ok_or_else(|| Error::NoSpace {
            name: name.to_owned(),
            known: self.spaces.spaces.keys().cloned().collect(),
        })
    }
}
