//! Where do embeddings live, and how are they found again?
//!
//! An embedding is a row of float32 in the file of its *space*. The log never carries the floats: a *group* event names rows,
//! the records they belong to, and the SHA-256 of each row. So the chain covers every float, and a row is believed only
//! after its digest was checked.
//!
//! A write puts rows behind those that the committed log names ([`attach`]) and only then appends the event. Bytes that no
//! event names are garbage, and the next write goes over them: nothing is ever misaligned. Rows reach the disk before the
//! log does ([`durable`]).
//!
//! A search ([`hunt`]) takes what it needs out of the store and then runs without it: the mapped rows, an index of who owns
//! them ([`index`]), the rows that a question leaves ([`filter`], or [`nearby`] if words are asked too), and companions in
//! blocks of 1,024 rows ([`blocks`]), kept on disk beside the other derived files ([`companions`]). Compaction moves the
//! living rows into a new file when too many are dead ([`generation`]), and says so in the log like any other change.
//!
//! If rows are damaged, repair looks for their bytes in the other folders ([`regain`]).
//!
//! If lines of the log are damaged, groups still tell where a space lies ([`implied`]), and repair takes along what a lost
//! move has left behind ([`salvage`]) and tells whose embedding may be an older one ([`mod@doubt`]).

mod ask;
mod attach;
mod blocks;
mod check;
mod codes;
mod companions;
mod compare;
mod doubt;
mod durable;
mod filter;
mod generation;
mod hunt;
mod ids;
mod implied;
mod index;
mod marks;
mod nearby;
mod read;
mod regain;
mod rows;
mod salvage;
mod tell;
mod words;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use ask::{Matrix, SpaceReport};
pub(super) use attach::check as check_attachment;
pub use hunt::{Hunt, Neighbour, Question};
pub use ids::{Attachment, Ids};

use check::short_files;
pub(super) use check::{check_rows, is_no_file, is_of_this_file};
pub(super) use compare::altered_companions;
pub(super) use doubt::doubt;
pub(super) use durable::{DirtyRows, RowsOnDisk};
pub(super) use generation::{leave_the_dead, make_way};
pub(super) use nearby::{Narrowed, Near, Nearby, Recent, no_past};

use super::Store;
use crate::error::{Error, Result};
use blocks::Shelves;
use filter::Filters;
use index::{RowIndex, Spaces};

/// What a store knows of its embeddings. All of it is derived, and forgotten when the log is read anew.
#[derive(Default)]
pub(super) struct Vectors {
    known: Mutex<Known>,
    /// Files of rows whose names this process knows to be on disk.
    durable_names: HashSet<PathBuf>,
}

#[derive(Default)]
struct Known {
    spaces: Spaces,
    filters: Filters,
    /// What was mapped and checked, by space.
    shelves: HashMap<String, Arc<Shelves>>,
}

impl Vectors {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// What is wrong with the files of rows at first sight, one sentence each.
    pub fn short_rows(&self) -> Vec<String> {
        short_files(&*self.disk, &self.layout, &self.state)
    }

    /// What is known of all spaces, up to date.
    fn known_spaces(&self) -> MutexGuard<'_, Known> {
        let mut known = self.vectors.known();
        known.spaces.follow(&self.state, self.options.threads);
        let Known { spaces, shelves, .. } = &mut *known;
        shelves.retain(|name, _| spaces.spaces.contains_key(name));
        known
    }
}

impl Known {
    /// A space by name, or the one to ask when none is named.
    fn find(&self, name: Option<&str>) -> Result<&RowIndex> {
        let name = name.unwrap_or_else(|| self.spaces.choice());
        self.spaces.spaces.get(name).ok_or_else(|| Error::NoSpace {
            name: name.to_owned(),
            known: self.spaces.spaces.keys().cloned().collect(),
        })
    }
}
