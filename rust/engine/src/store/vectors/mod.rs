//! Where do embeddings live, and how are they found again?
//!
//! An embedding is a row of float32 in the file of its *space*. The log never carries the floats: a *group* event names rows,
//! the records they belong to, and the SHA-256 of each row. So the chain covers every float, and a row is believed only
//! after its digest was checked.
//!
//! A write puts rows behind those that the committed log names ([`super::write::attach`]) and only then appends the event.
//! Bytes that no event names are garbage, and the next write goes over them: nothing is ever misaligned. Rows reach the disk
//! before the log does ([`rows::durable`]).
//!
//! A search ([`search::query`]) takes what it needs along and then runs without the store: the mapped rows, an index of who
//! owns them ([`records::index`]), the rows that a question leaves ([`search::filter`], or [`search::nearby`] if words are
//! asked too), and companions in blocks of 1,024 rows ([`rows::blocks`]), kept on disk beside the other derived files
//! ([`rows::companions`]). Compaction moves the living rows into a new file when too many are dead
//! ([`super::upkeep::compact_rows`]), and says so in the log like any other change.
//!
//! If rows are damaged, repair looks for their bytes in the other folders ([`rows::regain`]), and takes back those that it
//! does not find ([`rows::damaged`]). If lines of the log are damaged, groups still tell where a space lies
//! ([`records::implied`]), and repair takes along what a lost move has left behind ([`rows::salvage`]) and tells whose
//! embedding may be an older one ([`mod@records::doubt`]).
//!
//! Nothing here knows a store: [`Vectors`] is asked with a state. A room uses only rooms above it in this list.

pub(super) mod records;

pub(super) mod rows;

pub(super) mod search;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use records::ids::{Attachment, Ids};
pub use search::ask::{Matrix, SpaceReport};
pub use search::query::{Neighbour, Question, VectorSearch};

pub(super) use records::doubt::doubt;
use rows::check::short_files;
pub(super) use rows::check::{check_rows, is_no_file, is_of_this_file};
pub(super) use rows::compare::altered_companions;
pub(super) use rows::durable::{DirtyRows, RowBarrier, RowsOnDisk};
pub(super) use search::nearby::{Narrowed, Near, Nearby, Recent, no_past};

use crate::error::{Error, Result};
use crate::log::Site;
use crate::state::State;
use records::index::{RowIndex, Spaces};
use rows::blocks::Shelves;
use search::filter::Filters;

/// What is known of the embeddings of a store, where their rows are, and how many of them are on disk. All of it is derived,
/// and what is known is forgotten when the log is read anew.
pub(super) struct Vectors {
    site: Arc<Site>,
    threads: usize,
    known: Mutex<KnownSpaces>,
    /// Files of rows whose names this process knows to be on disk.
    durable_names: HashSet<PathBuf>,
    /// How many of the rows that the log names are on disk.
    pub on_disk: RowsOnDisk,
}

/// The spaces, and what was read of them so far.
#[derive(Default)]
pub(super) struct KnownSpaces {
    pub(super) spaces: Spaces,
    filters: Filters,
    /// What was mapped and checked, by space.
    shelves: HashMap<String, Arc<Shelves>>,
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
        let KnownSpaces { spaces, shelves, .. } = &mut *known;
        shelves.retain(|name, _| spaces.spaces.contains_key(name));
        known
    }

    /// What is wrong with the files of rows at first sight, one sentence each.
    pub fn short_rows(&self, state: &State) -> Vec<String> {
        short_files(&*self.site.disk, &self.site.layout, state)
    }
}

impl KnownSpaces {
    /// A space by name, or the one to ask when none is named.
    pub(super) fn find(&self, name: Option<&str>) -> Result<&RowIndex> {
        let name = name.unwrap_or_else(|| self.spaces.choice());
        self.spaces.spaces.get(name).ok_or_else(|| Error::NoSpace {
            name: name.to_owned(),
            known: self.spaces.spaces.keys().cloned().collect(),
        })
    }
}
