//! Reaches a name from folder to folder without following a link, and gives new files their permissions.
//!
//! Another user may have put links into a store's folder, so from that folder on each step starts at the folder before it and
//! refuses links. Above the folder they are followed. New files are private, or as open as the folder around them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode};
use rustix::io::{Errno, retry_on_intr};

use super::FolderMode;
use super::unexpected::{UnexpectedEntry, UnexpectedKind};

/// How a folder is opened that is only passed through: without the right to read it, where the system knows that.
#[cfg(target_os = "linux")]
const THROUGH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const THROUGH: OFlags = OFlags::RDONLY;

/// Reading and writing, for the group and for all others.
const OTHERS_FILE: RawMode = 0o066;
const OTHERS_FOLDER: RawMode = 0o077;
/// The group may write: the folder is shared, and so are its files.
const GROUP_WRITES: RawMode = 0o020;
const GROUP: RawMode = 0o070;
/// A folder of a group, whose files belong to that group.
const SHARED_FOLDER: RawMode = 0o2770;
const ALL_BITS: RawMode = 0o7777;

/// The user that may write everywhere; its files must stay readable for the owner of the folder.
const ADMINISTRATOR: u32 = 0;

const MOST_TRIES: usize = 16;

/// The folders of stores: from each of them on, no link is followed.
#[derive(Debug, Default)]
pub(super) struct Roots(RwLock<Vec<(PathBuf, FolderMode)>>);

/// The part of a path that leads to a store's folder, and how that store is used.
type Root<'a> = (&'a Path, FolderMode);

impl Roots {
    /// From here on nothing in this folder is reached through a link.
    pub fn add(&self, folder: &Path, manner: FolderMode) {
        let mut roots = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match roots.iter_mut().find(|(known, _)| known == folder) {
            Some((_, known)) => {
                known.read_only |= manner.read_only;
                known.shared |= manner.shared;
            }
            None => roots.push((folder.to_owned(), manner)),
        }
    }

    /// Ends [`Roots::add`].
    pub fn remove(&self, folder: &Path) {
        let mut roots = self.0.write().unwrap_or_else(PoisonError::into_inner);
        roots.retain(|(known, _)| known != folder);
    }

    /// The outermost store that a path lies in.
    fn of<'a>(&self, path: &'a Path) -> Option<Root<'a>> {
        let bytes = path.as_os_str().as_bytes();
        let roots = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let lengths = roots.iter().filter_map(|(folder, manner)| {
            let rest = bytes.strip_prefix(folder.as_os_str().as_bytes())?;
            (rest.is_empty() || rest[0] == b'/').then_some((bytes.len() - rest.len(), *manner))
        });
        let (length, manner) = lengths.min_by_key(|(length, _)| *length)?;
        Some((Path::new(OsStr::from_bytes(&bytes[..length])), manner))
    }

    /// Opens a folder to list or sync it.
    pub fn folder(&self, path: &Path) -> io::Result<File> {
        self.walk(path, OFlags::RDONLY).map(File::from)
    }

    fn walk(&self, path: &Path, how: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let Some((top, _)) = self.of(path) else {
            let flags = how | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return Ok(retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?);
        };
        let mut folder = step(CWD, top.as_os_str(), how, top)?;
        let mut here = top.to_owned();
        for name in path.strip_prefix(top).map_err(io::Error::other)? {
            here.push(name);
            folder = step(folder, name, how, &here)?;
        }
        Ok(folder)
    }

    /// A name, and the folder it is in.
    pub fn place<'a>(&self, path: &'a Path) -> io::Result<ReachedPlace<'a>> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let root = self.of(path);
        let folder = self.walk(path.parent().unwrap_or(Path::new("")), THROUGH)?;
        Ok(ReachedPlace {
            folder,
            name,
            path,
            root,
        })
    }

    /// The same, where something is to be changed.
    pub fn place_to_change<'a>(&self, path: &'a Path) -> io::Result<ReachedPlace<'a>> {
        match self.of(path) {
            Some((top, manner)) if manner.read_only => Err(UnexpectedEntry::at(top, UnexpectedKind::Backup)),
            _ => self.place(path),
        }
    }

    /// Makes a folder, and those it lies in.
    pub fn make_folder(&self, path: &Path) -> io::Result<()> {
        let Some((top, _)) = self.of(path) else {
            return fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        };
        if let Some(above) = top.parent().filter(|above| !above.as_os_str().is_empty()) {
            // The project's own folders are not ours to close.
            fs::create_dir_all(above)?;
        }
        let mut folders: Vec<&Path> = path.ancestors().take_while(|folder| folder.starts_with(top)).collect();
        folders.reverse();
        for folder in folders {
            self.place_to_change(folder)?.make_folder()?;
        }
        Ok(())
    }
}

/// Opens the folder `name` in another one; `path` is the whole way to it.
fn step(from: impl AsFd, name: &OsStr, how: OFlags, path: &Path) -> io::Result<OwnedFd> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = retry_on_intr(|| rustix::fs::openat(&from, name, flags, Mode::empty()));
    opened.map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => {
            let there = rustix::fs::statat(&from, name, AtFlags::SYMLINK_NOFOLLOW);
            let is_link = there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Symlink);
            UnexpectedEntry::at(path, UnexpectedKind::link_or(is_link, UnexpectedKind::NoFolder))
        }
        errno => errno.into(),
    })
}

/// A name in a folder that was reached.
pub(super) struct ReachedPlace<'a> {
    folder: OwnedFd,
    name: &'a OsStr,
    path: &'a Path,
    /// The store it lies in; outside of one the last step may be a link too.
    root: Option<Root<'a>>,
}

impl ReachedPlace<'_> {
    /// Whether a file is here; what is neither a file nor nothing is an error.
    fn is_file(&self) -> io::Result<bool> {
        self.is_plain(self.root.map_or(AtFlags::empty(), |_| AtFlags::SYMLINK_NOFOLLOW))
    }

    /// The same with the given way to follow links.
    fn is_plain(&self, follow: AtFlags) -> io::Result<bool> {
        match retry_on_intr(|| rustix::fs::statat(&self.folder, self.name, follow)) {
            Ok(there) => match FileType::from_raw_mode(there.st_mode) {
                FileType::RegularFile => Ok(true),
                FileType::Symlink => Err(UnexpectedEntry::at(self.path, UnexpectedKind::Link)),
                _ => Err(UnexpectedEntry::at(self.path, UnexpectedKind::NoFile)),
            },
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a file, and nothing else: opening a pipe in its place would never return.
    pub fn open(&self, access: OFlags) -> io::Result<File> {
        if !self.is_file()? {
            return Err(Errno::NOENT.into());
        }
        let follow = self.root.map_or(OFlags::empty(), |_| OFlags::NOFOLLOW);
        let flags = access | follow | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::openat(&self.folder, self.name, flags, Mode::empty())) {
            Ok(file) => Ok(file.into()),
            Err(Errno::LOOP) if self.root.is_some() => Err(UnexpectedEntry::at(self.path, UnexpectedKind::Link)),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Creates a file. An existing one is unlinked first, so that its other names keep their content.
    pub fn create(&self) -> io::Result<File> {
        for _ in 0..MOST_TRIES {
            match self.create_new() {
                Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {
                    if self.is_plain(AtFlags::SYMLINK_NOFOLLOW)?
                        && let Err(errno) = self.unlink(AtFlags::empty())
                        && errno != Errno::NOENT
                    {
                        return Err(errno.into());
                    }
                }
                created => return created,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Creates a file without a name in the folder.
    #[cfg(target_os = "linux")]
    pub fn create_unnamed(&self) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&self.folder, c".", flags, Mode::RUSR | Mode::WUSR);
        Ok(retry_on_intr(open)?.into())
    }

    /// Other systems have no such files.
    #[cfg(not(target_os = "linux"))]
    pub fn create_unnamed(&self) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens a file that stays, and makes it if need be.
    pub fn open_or_create(&self) -> io::Result<File> {
        for _ in 0..MOST_TRIES {
            match self.open(OFlags::RDWR) {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
            match self.create_new() {
                Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn create_new(&self) -> io::Result<File> {
        let around = self.around()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600 | (around.mode & OTHERS_FILE));
        let file = retry_on_intr(|| rustix::fs::openat(&self.folder, self.name, flags, mode))?;
        around.hand_over(&file, around.mode & OTHERS_FILE);
        Ok(file.into())
    }

    /// Makes a folder where nothing is, for its owner alone.
    pub fn make_new_folder(&self) -> io::Result<()> {
        let private = Mode::from_raw_mode(0o700);
        Ok(retry_on_intr(|| rustix::fs::mkdirat(&self.folder, self.name, private))?)
    }

    fn make_folder(&self) -> io::Result<()> {
        let around = self.around()?;
        let mode = Mode::from_raw_mode(0o700 | (around.mode & OTHERS_FOLDER));
        match rustix::fs::mkdirat(&self.folder, self.name, mode) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                return step(&self.folder, self.name, THROUGH, self.path).map(drop);
            }
            Err(errno) => return Err(errno.into()),
        }
        let is_root = self.root.is_some_and(|(top, _)| top == self.path);
        if let Ok(made) = step(&self.folder, self.name, OFlags::RDONLY, self.path) {
            match self.root {
                Some((_, manner)) if is_root && manner.shared => open_to(&made, SHARED_FOLDER),
                _ => around.hand_over(&made, around.mode),
            }
        }
        Ok(())
    }

    /// The owner of the folder around it, if that is one of ours.
    fn around(&self) -> io::Result<Around> {
        match self.root {
            Some((top, _)) if top != self.path => {
                let there = rustix::fs::fstat(&self.folder)?;
                Ok(Around {
                    mode: there.st_mode,
                    owner: Some((there.st_uid, there.st_gid)),
                })
            }
            _ => Ok(Around { mode: 0, owner: None }),
        }
    }

    /// Removes a file's name.
    pub fn remove(&self) -> io::Result<()> {
        if self.root.is_some() && !self.is_file()? {
            return Err(Errno::NOENT.into());
        }
        Ok(self.unlink(AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self) -> io::Result<()> {
        Ok(self.unlink(AtFlags::REMOVEDIR)?)
    }

    fn unlink(&self, what: AtFlags) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.folder, self.name, what)
    }

    /// Gives it another name. Only a file may be replaced.
    pub fn rename(&self, to: &ReachedPlace<'_>) -> io::Result<()> {
        if to.root.is_some() {
            to.is_file()?;
        }
        Ok(rustix::fs::renameat(&self.folder, self.name, &to.folder, to.name)?)
    }

    /// Gives a file a second name, which must be free.
    pub fn link(&self, to: &ReachedPlace<'_>) -> io::Result<()> {
        if !self.is_file()? {
            return Err(Errno::NOENT.into());
        }
        Ok(rustix::fs::linkat(
            &self.folder,
            self.name,
            &to.folder,
            to.name,
            AtFlags::empty(),
        )?)
    }
}

/// The owner and the permissions of the folder around a new file.
struct Around {
    mode: RawMode,
    owner: Option<(u32, u32)>,
}

impl Around {
    /// Gives the new file to the group of the folder if that may write, and to its owner if root created it.
    fn hand_over(&self, made: impl AsFd, bits: RawMode) {
        if let (Some((user, group)), Ok(now)) = (self.owner, rustix::fs::fstat(&made))
            && now.st_uid == ADMINISTRATOR
            && user != ADMINISTRATOR
        {
            let _ = fchown(&made, Some(user), Some(group));
        }
        if self.mode & GROUP_WRITES != 0 {
            open_to(made, bits & GROUP);
        }
    }
}

/// Lets others use what was made, whatever the umask said. Not every file system can: then it stays as it is.
fn open_to(made: impl AsFd, bits: RawMode) {
    if let Ok(now) = rustix::fs::fstat(&made) {
        let wanted = (now.st_mode | bits) & ALL_BITS;
        if wanted != now.st_mode & ALL_BITS {
            let _ = rustix::fs::fchmod(&made, Mode::from_raw_mode(wanted));
        }
    }
}
