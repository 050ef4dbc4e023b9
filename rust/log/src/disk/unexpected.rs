//! The errors of a disk that name a file, and the one for what is not ours in the place of a file or folder of ours.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What was found in the place of a file or folder of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnexpectedKind {
    /// A symbolic link: its author would choose what we read, write or remove.
    #[error(
        "this is a symbolic link, and nothing in a store is reached through one: \
         remove the link, or put what it leads to in its place"
    )]
    Link,
    /// A pipe, a socket, a device or a folder where a file should be.
    #[error("this is not a regular file: move it away")]
    NoFile,
    /// Something else where a folder should be.
    #[error("this is not a folder: move it away")]
    NoFolder,
    /// A file that another name elsewhere leads to, and that does not hold what is kept here.
    #[error("this file has another name elsewhere and is not what the store keeps here: move it away")]
    Foreign,
    /// Another file of the store, where something small should be that is written over at any time.
    #[error("this holds what another file of the store should hold, and would be written over: put both back")]
    Swapped,
    /// A store that is only read: a backup.
    #[error("this is a backup, and only read")]
    Backup,
}

/// In every line of a log, and in no other file of ours.
const IN_EVERY_LINE: &[u8] = b"\"prev_hash\"";

const PACKED: &[u8] = b"\x28\xb5\x2f\xfd";

/// Whether a file begins as logs, states and archives do: these are not written over, because two files may have been swapped.
pub fn is_swapped(beginning: &[u8]) -> bool {
    let begins_so = beginning.starts_with(b"{\"") || beginning.starts_with(PACKED);
    begins_so || memchr::memmem::find(beginning, IN_EVERY_LINE).is_some()
}

/// Why a name of ours was not touched, inside an [`io::Error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}")]
pub struct UnexpectedEntry {
    path: PathBuf,
    found: UnexpectedKind,
}

impl UnexpectedEntry {
    /// The entry at `path`, as an error.
    pub fn at(path: &Path, found: UnexpectedKind) -> io::Error {
        Self {
            path: path.to_owned(),
            found,
        }
        .into()
    }

    /// The entry in an error, if there is one.
    pub fn in_error(fault: &io::Error) -> Option<&Self> {
        fault.get_ref()?.downcast_ref()
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.found == UnexpectedKind::Link
    }

    /// Where it is: the file itself, or a folder on the way to it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the system calls such a failure.
    pub fn code(&self) -> i32 {
        let errno = match self.found {
            UnexpectedKind::Link => Errno::LOOP,
            UnexpectedKind::NoFile => Errno::INVAL,
            UnexpectedKind::NoFolder => Errno::NOTDIR,
            UnexpectedKind::Foreign | UnexpectedKind::Swapped => Errno::EXIST,
            UnexpectedKind::Backup => Errno::ROFS,
        };
        errno.raw_os_error()
    }
}

impl From<UnexpectedEntry> for io::Error {
    fn from(stranger: UnexpectedEntry) -> Self {
        let kind = match stranger.is_link() {
            true => io::ErrorKind::InvalidInput,
            false => Self::from_raw_os_error(stranger.code()).kind(),
        };
        Self::new(kind, stranger)
    }
}

impl UnexpectedKind {
    pub(super) fn link_or(is_link: bool, other: Self) -> Self {
        if is_link { Self::Link } else { other }
    }
}

/// A fault of the system with its file, inside an [`io::Error`] of the same kind.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct NamedFault {
    path: PathBuf,
    #[source]
    fault: io::Error,
}

impl NamedFault {
    /// The file that an error names, if it names one, and the fault of the system.
    pub fn apart(fault: io::Error) -> (Option<PathBuf>, io::Error) {
        if let Some(stranger) = UnexpectedEntry::in_error(&fault) {
            return (Some(stranger.path().to_owned()), fault);
        }
        match fault.downcast::<Self>() {
            Ok(named) => (Some(named.path), named.fault),
            Err(fault) => (None, fault),
        }
    }
}

/// Lets a failure say which file it speaks of.
pub trait Naming<T> {
    /// Names the file, unless the failure names one already.
    fn naming(self, path: &Path) -> io::Result<T>;
}

impl<T> Naming<T> for io::Result<T> {
    fn naming(self, path: &Path) -> Self {
        self.map_err(|fault| {
            // Callers look for an inner error, and would not find it one level deeper.
            if fault.get_ref().is_some() {
                return fault;
            }
            let path = path.to_owned();
            io::Error::new(fault.kind(), NamedFault { path, fault })
        })
    }
}
