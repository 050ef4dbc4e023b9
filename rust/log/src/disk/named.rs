//! An I/O error that names its file, for callers that asked for several.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::Stranger;

/// What the system said, and of which file. It travels inside an [`io::Error`] of the same kind, until it is told.
#[derive(Debug)]
pub struct NamedFault {
    path: PathBuf,
    fault: io::Error,
}

impl NamedFault {
    /// The file that an error speaks of, if it says so, and what the system said of it.
    pub fn apart(fault: io::Error) -> (Option<PathBuf>, io::Error) {
        if let Some(stranger) = Stranger::in_error(&fault) {
            return (Some(stranger.path().to_owned()), fault);
        }
        match fault.downcast::<Self>() {
            Ok(named) => (Some(named.path), named.fault),
            Err(fault) => (None, fault),
        }
    }
}

impl fmt::Display for NamedFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.fault)
    }
}

impl Error for NamedFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}

/// Lets a failure say which file it speaks of.
pub trait Naming<T> {
    /// Names the file, unless the failure names one already.
    ///
    /// # Errors
    /// The same, of the same kind.
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
    use super::super::StrangerKind;
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
        let stranger = Stranger::at(Path::new("base"), StrangerKind::NoFolder);
        let fault = Err::<(), _>(stranger).naming(Path::new("base/x")).expect_err("a fault");
        assert!(Stranger::in_error(&fault).is_some());
        assert_eq!(NamedFault::apart(fault).0.as_deref(), Some(Path::new("base")));
        let (path, fault) = NamedFault::apart(refused());
        assert_eq!((path, fault.raw_os_error()), (None, Some(13)));
    }
}
