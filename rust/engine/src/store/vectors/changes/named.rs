//! The files of rows that the log names, and those that it does not.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{self, Bound};
use chronolog::disk::Access;
use chronolog::error::{At, Result};
use chronolog::layout::{CODES_SUFFIX, ROWS_SUFFIX, is_file_of_space};
use chronolog::log::files::{copy_range, is_folder, is_ours};
use chronomemory_state::state::State;

impl Vectors {
    /// Files of rows, and what is derived from them, that the log does not name. Others may have named some since.
    ///
    /// # Errors
    /// `Io`.
    pub fn unnamed_rows(&self, state: &State) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for (folder, suffix) in [
            (self.site.layout.vectors(), ROWS_SUFFIX),
            (self.site.layout.companions(), CODES_SUFFIX),
        ] {
            if !is_folder(&*self.site.disk, &folder) {
                continue;
            }
            for name in self.site.disk.list(&folder).at(&folder)? {
                let path = folder.join(&name);
                // What is not called as we call ours is somebody else's, and so is a folder or a link.
                if is_file_of_space(&name, suffix) && is_ours(&*self.site.disk, &path) && !self.names_rows(state, &path)
                {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    /// Whether a file holds rows that the log names, or what is derived from them.
    pub fn names_rows(&self, state: &State, path: &Path) -> bool {
        let known = self.known(state);
        known.spaces.spaces.values().any(|index| {
            let Bound { name, generation, .. } = &index.bound;
            let is_of = |generation: u64| path == self.site.layout.rows(name, generation);
            is_of(*generation)
                || path == self.site.layout.companion(name, *generation)
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
    ///
    /// # Errors
    /// `Io`.
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
