//! The file `copies`: the copies outside its folder that a store knows of.
//!
//! By it an erasure reports where else a text lies. A copy made by `backup(to=)` is named before its first byte is written;
//! one that is not there now stays named, because its medium may not be attached.

use std::path::{Path, PathBuf};

use chronolog::disk::{Disk, FolderMode, read_whole};
use chronolog::error::{At, Error, Result};
use chronolog::hint::{Synced, read_hint};
use chronolog::json::{self, Value};
use chronolog::layout::{COPIES, Layout};
use chronolog::log::Site;
use chronolog::log::files::with_suffix;
use chronolog::verify::Report;

use super::proofs::{IMMUTABLE, VECTORS};

/// How many copies are remembered: one a night, for a lifetime.
const MOST_COPIES: usize = 30_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct KnownCopy {
    pub path: String,
    pub at: i64,
    pub seq: u64,
    pub head: String,
    /// The folder of the store that made it; empty if it was brought back. A copied project has made none of them.
    pub made_by: String,
    /// Whether all of it was read again and was right when it was made.
    pub is_verified: bool,
}

impl KnownCopy {
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }

    pub fn draft(&self) -> PathBuf {
        with_suffix(Path::new(&self.path), ".tmp")
    }

    pub fn is_made_by(&self, site: &Site) -> bool {
        !self.made_by.is_empty() && self.made_by == own_place(site)
    }

    /// Whether what lies in its place now ends as it did.
    pub fn is_in_its_place(&self, disk: &dyn Disk) -> bool {
        let hint = look_into(disk, &self.folder(), |inside| read_hint(disk, inside));
        matches!(hint, Ok(Some(Synced { seq, head, .. })) if seq == self.seq && head.text() == self.head)
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Self {
            path: text("path")?,
            at: value.get("at")?.as_i64()?,
            seq: value.get("seq")?.as_u64()?,
            head: text("head")?,
            made_by: text("made_by")?,
            is_verified: value.get("verified")?.as_bool()?,
        })
    }

    fn value(&self) -> Value {
        Value::object([
            ("path", Value::Str(self.path.clone())),
            ("at", Value::from(self.at)),
            ("seq", Value::from(self.seq)),
            ("head", Value::Str(self.head.clone())),
            ("made_by", Value::Str(self.made_by.clone())),
            ("verified", Value::from(self.is_verified)),
        ])
    }
}

#[derive(Debug, Default)]
pub(in crate::store) struct KnownCopies(pub Vec<KnownCopy>);

impl KnownCopies {
    /// Reads the note. Errors: `Refused` if it cannot be read, because then the copies are not known; `Io`.
    pub fn read(site: &Site) -> Result<Self> {
        let path = site.layout.inside(COPIES);
        let Some(bytes) = read_whole(&*site.disk, &path).at(&path)? else {
            return Ok(Self::default());
        };
        let value = json::parse(&bytes).ok();
        let listed = value.as_ref().and_then(Value::as_array);
        let copies: Option<Vec<KnownCopy>> = listed.and_then(|copies| copies.iter().map(KnownCopy::read).collect());
        copies.map(Self).ok_or_else(|| Error::Refused {
            path: path.display().to_string(),
            reason: "this note should say where copies of the store lie, and cannot be read".to_owned(),
            instead: "Look for the copies yourself, and move the note away: it is made anew with the next copy."
                .to_owned(),
        })
    }

    /// Notes a copy, in place of what was known of its folder; the oldest go when there are too many.
    pub fn note(&mut self, copy: KnownCopy) {
        self.0.retain(|known| known.path != copy.path);
        self.0.push(copy);
        let surplus = self.0.len().saturating_sub(MOST_COPIES);
        self.0.drain(..surplus);
    }

    /// Writes it down, durably. The caller holds the maintenance lock.
    pub fn write(&self, site: &Site) -> Result<()> {
        let (path, folder) = (site.layout.inside(COPIES), site.layout.folder());
        let draft = with_suffix(&path, ".tmp");
        let mut bytes = Value::Array(self.0.iter().map(KnownCopy::value).collect()).to_bytes();
        bytes.push(b'\n');
        let file = site.disk.create(&draft).at(&draft)?;
        file.write_at(&bytes, 0).at(&draft)?;
        file.sync().at(&draft)?;
        site.disk.rename(&draft, &path).at(&path)?;
        site.disk.sync_dir(folder).at(folder)
    }
}

pub(in crate::store) fn own_place(site: &Site) -> String {
    site.disk.real_path(site.layout.folder()).to_string_lossy().into_owned()
}

/// Looks into a folder outside, through no link.
pub(in crate::store) fn look_into<T>(disk: &dyn Disk, folder: &Path, look: impl FnOnce(&Layout) -> T) -> T {
    let guarded = Guarded::at(disk, folder.to_owned());
    look(&Layout::of_folder(guarded.folder.clone()))
}

/// A folder outside in which no link is followed, as long as this value lives.
pub(in crate::store) struct Guarded<'a> {
    disk: &'a dyn Disk,
    pub folder: PathBuf,
}

impl<'a> Guarded<'a> {
    pub fn at(disk: &'a dyn Disk, folder: PathBuf) -> Self {
        disk.guard(&folder, FolderMode::default());
        Self { disk, folder }
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        self.disk.unguard(&self.folder);
    }
}

/// How many bytes the files of a copy have, as far as it can be read.
pub(in crate::store) fn weight_of(disk: &dyn Disk, folder: &Path) -> u64 {
    let folders = IMMUTABLE.into_iter().chain([VECTORS]).map(|name| folder.join(name));
    let mut bytes = 0;
    for around in folders.chain([folder.to_owned()]) {
        for name in disk.list(&around).unwrap_or_default() {
            bytes += disk.status(&around.join(name)).map_or(0, |file| file.length);
        }
    }
    bytes
}

/// Notes a copy that was brought back: it still holds what may be erased here later. One in the store's own folder is known.
pub(in crate::store) fn note_restored(site: &Site, source: &Path, report: &Report, now: i64) -> Result<()> {
    let real = site.disk.real_path(source);
    let own = site.disk.real_path(site.layout.folder());
    let Some(path) = real.to_str().filter(|_| !real.starts_with(own)) else {
        return Ok(());
    };
    let mut known = KnownCopies::read(site)?;
    if known.0.iter().any(|copy| copy.path == path) {
        return Ok(());
    }
    known.note(KnownCopy {
        path: path.to_owned(),
        at: now,
        seq: report.last_seq,
        head: report.head.map_or_else(String::new, |head| head.text().to_owned()),
        made_by: String::new(),
        is_verified: report.valid(),
    });
    known.write(site)
}
