//! What is known of the embeddings of a store, and the files of rows that its log names.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringBitmap;

use super::records::format::{self, Bound};
use super::records::index::{RowIndex, Spaces};
use super::rows::check::short_files;
use super::rows::durable::{DirtyRows, RowBarrier, RowsOnDisk};
use super::rows::filter::Filters;
use super::rows::space_cache::SpaceCache;
use chronolog::disk::Access;
use chronolog::error::{At, Error, Result};
use chronolog::layout::{Shape, codes_of, is_codes_draft, is_old_codes, is_rows_file};
use chronolog::log::Site;
use chronolog::log::files::{copy_range, is_folder, is_ours};
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

impl Vectors {
    /// Files of rows, and what is derived from them, that the log does not name. Others may have named some since.
    pub fn unnamed_rows(&self, state: &State) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let (rows, codes) = (self.site.layout.vectors(), self.site.layout.codes_folder());
        let is_codes: Shape = |name| codes_of(name).is_some() || is_codes_draft(name) || is_old_codes(name);
        for (folder, is_shaped) in [(rows, is_rows_file as Shape), (codes, is_codes)] {
            if !is_folder(&*self.site.disk, &folder) {
                continue;
            }
            for name in self.site.disk.list(&folder).at(&folder)? {
                let path = folder.join(&name);
                // Other names, folders and links are not ours.
                if is_shaped(&name) && is_ours(&*self.site.disk, &path) && !self.names_rows(state, &path) {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// Whether a file holds rows that the log names, or what is derived from them.
    pub fn names_rows(&self, state: &State, path: &Path) -> bool {
        let known = self.known(state);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let codes = codes_of(name).filter(|_| path.starts_with(self.site.layout.indexes()));
        known.spaces.spaces.values().any(|index| {
            let Bound { name, generation, .. } = &index.bound;
            let is_of = |generation: u64| path == self.site.layout.rows(name, generation);
            is_of(*generation)
                || codes == Some((name, *generation))
                || index.left_behind.keys().any(|(generation, _)| is_of(*generation))
        })
    }

    /// The files of rows that the log names, and how many bytes of each.
    pub fn named_rows(&self, state: &State) -> Vec<(String, u64)> {
        let known = self.known(state);
        let named = known.spaces.spaces.values().map(|index| {
            let bound = &index.bound;
            let name = format::file_name(bound);
            (name, u64::from(index.rows) * bound.stride())
        });
        named.collect()
    }

    /// After a failed sync: copies all rows into fresh files, which the disk must take.
    pub fn renew_rows(&self, state: &State) -> Result<()> {
        let folder = self.site.layout.vectors();
        for (name, bytes) in self.named_rows(state) {
            let path = folder.join(name);
            let file = match self.site.disk.open(&path, Access::Read) {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.at(&path)?,
            };
            let there = file.length().at(&path)?.min(bytes);
            copy_range(&*self.site.disk, &*file, 0..there, &path, None)?;
            self.site.disk.sync_dir(&folder).at(&folder)?;
        }
        Ok(())
    }
}
