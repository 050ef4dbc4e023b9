//! The errors of a disk that name a file, and the one for what is not ours in the place of a file or folder of ours.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What was found in the place of a file or folder of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnexpectedKind {
    /// A symbolic link: whoever planted it chooses what we would read, write or remove.
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

/// What every line of a log says, and nothing else of ours.
const IN_EVERY_LINE: &[u8] = b"\"prev_hash\"";

const PACKED: &[u8] = b"\x28\xb5\x2f\xfd";

/// Whether a file begins as logs, states and archives do: two may have been swapped, and nothing is written over those.
pub fn is_swapped(beginning: &[u8]) -> bool {
    let begins_so = beginning.starts_with(b"{\"") || beginning.starts_with(PACKED);
    begins_so || memchr::memmem::find(beginning, IN_EVERY_LINE).is_some()
}

/// Why a name of ours was not touched. It travels inside an [`io::Error`], so that whoever cares can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}")]
pub struct UnexpectedEntry {
    path: PathBuf,
    found: UnexpectedKind,
}

impl UnexpectedEntry {
    /// What stands at `path`, as an error.
    pub fn at(path: &Path, found: UnexpectedKind) -> io::Error {
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
        self.found == UnexpectedKind::Link
    }

    /// Where it stands: not always the file that was asked for, but the folder on the way to it.
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
        let kind = match stranger.found {
            UnexpectedKind::Link | UnexpectedKind::NoFile => io::ErrorKind::InvalidInput,
            UnexpectedKind::NoFolder => io::ErrorKind::NotADirectory,
            UnexpectedKind::Foreign | UnexpectedKind::Swapped => io::ErrorKind::AlreadyExists,
            UnexpectedKind::Backup => io::ErrorKind::ReadOnlyFilesystem,
        };
        Self::new(kind, stranger)
    }
}

/// What the system said, and of which file. It travels inside an [`io::Error`] of the same kind, until it is told.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct NamedFault {
    path: PathBuf,
    #[source]
    fault: io::Error,
}

impl NamedFault {
    /// The file that an error speaks of, if it says so, and what the system said of it.
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
            // What stands inside an error is looked for by others, who would not find it one deeper.
            if fault.get_ref().is_some() {
                return fault;
            }
            let path = path.to_owned();
            io::Error::new(fault.kind(), NamedFault { path, fault })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::UnexpectedKind;
    use super::*;

    fn refused() -> io::Error {
        io::Error::from_raw_os_error(13)
    }

    #[test]
    fn the_first_name_stays_and_the_fault_comes_out_as_it_was() {
        let named = Err::<(), _>(refused())
            .naming(Path::new("base/x"))
            .naming(Path::new("log"));
        let fault = named.expect_err("a fault");
        assert_eq!(fault.kind(), io::ErrorKind::PermissionDenied);
        assert!(fault.to_string().starts_with("base/x: "), "{fault}");
        let (path, fault) = NamedFault::apart(fault);
        assert_eq!(path.as_deref(), Some(Path::new("base/x")));
        assert_eq!(fault.raw_os_error(), Some(13));
    }

    #[test]
    fn what_says_where_it_stands_is_left_alone() {
        let stranger = UnexpectedEntry::at(Path::new("base"), UnexpectedKind::NoFolder);
        let fault = Err::<(), _>(stranger).naming(Path::new("base/x")).expect_err("a fault");
        assert!(UnexpectedEntry::in_error(&fault).is_some());
        assert_eq!(NamedFault::apart(fault).0.as_deref(), Some(Path::new("base")));
        let (path, fault) = NamedFault::apart(refused());
        assert_eq!((path, fault.raw_os_error()), (None, Some(13)));
    }
}
