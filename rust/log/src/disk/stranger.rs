//! The error for what stands in the place of a file or folder of ours, and is not ours.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What was found in the place of a file or folder of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StrangerKind {
    /// A symbolic link: whoever planted it chooses what we would read, write or remove.
    Link,
    /// A pipe, a socket, a device or a folder where a file should be.
    NoFile,
    /// Something else where a folder should be.
    NoFolder,
    /// A file that another name elsewhere leads to, and that does not hold what is kept here.
    Foreign,
    /// Another file of the store, where something small should be that is written over at any time.
    Swapped,
    /// A store that is only read: a backup.
    Backup,
}

/// What every line of a log says, and nothing else of ours.
const IN_EVERY_LINE: &[u8] = b"\"prev_hash\"";

/// How files begin that are packed.
const PACKED: &[u8] = b"\x28\xb5\x2f\xfd";

/// Whether a file begins as logs, states and archives do: two may have been swapped, and nothing is written over those.
pub fn is_swapped(beginning: &[u8]) -> bool {
    let begins_so = beginning.starts_with(b"{\"") || beginning.starts_with(PACKED);
    begins_so || memchr::memmem::find(beginning, IN_EVERY_LINE).is_some()
}

/// Why a name of ours was not touched. It travels inside an [`io::Error`], so that whoever cares can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    path: PathBuf,
    found: StrangerKind,
}

impl Stranger {
    /// What stands at `path`, as an error.
    pub fn at(path: &Path, found: StrangerKind) -> io::Error {
        Self {
            path: path.to_owned(),
            found,
        }
        .into()
    }

    /// The stranger that an error speaks of, if it does.
    pub fn in_error(fault: &io::Error) -> Option<&Self> {
        fault.get_ref()?.downcast_ref()
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.found == StrangerKind::Link
    }

    /// Where it stands: not always the file that was asked for, but the folder on the way to it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the system calls such a failure.
    pub fn code(&self) -> i32 {
        let errno = match self.found {
            StrangerKind::Link => Errno::LOOP,
            StrangerKind::NoFile => Errno::INVAL,
            StrangerKind::NoFolder => Errno::NOTDIR,
            StrangerKind::Foreign | StrangerKind::Swapped => Errno::EXIST,
            StrangerKind::Backup => Errno::ROFS,
        };
        errno.raw_os_error()
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.found {
            StrangerKind::Link => {
                "this is a symbolic link, and nothing in a store is reached through one: \
                 remove the link, or put what it leads to in its place"
            }
            StrangerKind::NoFile => "this is not a regular file: move it away",
            StrangerKind::NoFolder => "this is not a folder: move it away",
            StrangerKind::Foreign => {
                "this file has another name elsewhere and is not what the store keeps here: move it away"
            }
            StrangerKind::Swapped => {
                "this holds what another file of the store should hold, and would be written over: put both back"
            }
            StrangerKind::Backup => "this is a backup, and only read",
        })
    }
}

impl Error for Stranger {}

impl From<Stranger> for io::Error {
    fn from(stranger: Stranger) -> Self {
        let kind = match stranger.found {
            StrangerKind::Link | StrangerKind::NoFile => io::ErrorKind::InvalidInput,
            StrangerKind::NoFolder => io::ErrorKind::NotADirectory,
            StrangerKind::Foreign | StrangerKind::Swapped => io::ErrorKind::AlreadyExists,
            StrangerKind::Backup => io::ErrorKind::ReadOnlyFilesystem,
        };
        Self::new(kind, stranger)
    }
}
