//! What was a log, and what did it start from, when its first line cannot be read or the log itself is gone?
//!
//! A base says itself which event was its last, and so does an archive: with them, and with the seqs of the lines that are
//! left, the base is found again. Nothing in the log proves it then, and reports say so.

use std::io;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem;

use crate::archive;
use crate::digest::Hex;
use crate::disk::{Access, Disk, DiskFile, read_upto};
use crate::event::line::{Event, Trust};
use crate::event::mend::{Budget, Neighbours, mend};
use crate::hint::{line_before, read_hint};
use crate::layout::{
    Layout, Shape, base_name, digest_in_base_name, is_archive_file, is_base_file, last_seq_in_archive_name,
};
use crate::log::files::{is_folder, is_ours};
use crate::origin::{Beginning, Origin, Sentinel, origin_in};
use crate::snapshot::{self, Header};
use crate::wal::synced::Synced;

use super::loader::Loader;
use crate::store::files::proofs::{copies_of_logs, shown};

/// So much may be hashed in search of what the first line of a log said.
const MENDING_BLOCKS: u64 = 5_000_000;
/// The header of a base of ours stands within so many bytes of its end.
const HEADER_BYTES: u64 = 4096;

/// What shows that there was a log.
#[derive(Debug)]
pub(in crate::store) struct Traces {
    /// How far it was synced, if that is known.
    pub synced: Option<Synced>,
    bases: Vec<String>,
    archives: Vec<String>,
    /// A copy that holds a log, from the store's folder on.
    copy: Option<String>,
    /// A restore was interrupted, or is under way.
    is_restored: bool,
}

impl Traces {
    /// What lies in a store's folder beside its log; `None` if nothing shows that there was one.
    ///
    /// # Errors
    /// What the disk says.
    pub fn look(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Self>> {
        let traces = Self {
            synced: read_hint(disk, layout)?,
            bases: names_in(disk, &layout.bases(), is_base_file)?,
            archives: names_in(disk, &layout.archives(), is_archive_file)?,
            copy: copies_of_logs(disk, layout)
                .next()
                .map(|copy| shown(layout, copy.folder())),
            // It explains nothing: half of a restore looks like a store that lost its log, and is none either.
            is_restored: is_ours(disk, &layout.restored_draft()),
        };
        let is_any = traces.has_remains() || traces.copy.is_some();
        Ok(is_any.then_some(traces))
    }

    /// Whether anything of the log itself is left, beside copies that were made of it.
    pub fn has_remains(&self) -> bool {
        self.synced.is_some() || !self.bases.is_empty() || !self.archives.is_empty()
    }

    /// Whether there is anything that a log may have started from.
    pub fn has_bases(&self) -> bool {
        !self.bases.is_empty()
    }

    /// What they tell, for people.
    pub fn tell(&self) -> String {
        let mut said = Vec::new();
        if let Some(synced) = &self.synced {
            said.push(format!(
                "synced knows it with {} bytes and event {}",
                synced.offset, synced.seq
            ));
        }
        if !self.bases.is_empty() {
            said.push("base/ holds what one started from".to_owned());
        }
        if !self.archives.is_empty() {
            said.push("archive/ holds what came before one".to_owned());
        }
        if let Some(copy) = &self.copy {
            said.push(format!("{copy} holds a copy, which restore brings back"));
        }
        if self.is_restored {
            said.push("a restore was begun and is not done: restore again".to_owned());
        }
        said.join(", ")
    }

    /// Loads the base that fits best, or `None` if none fits.
    ///
    /// # Errors
    /// What the disk says.
    pub fn load_base(
        &self,
        disk: &dyn Disk,
        layout: &Layout,
        fit: Fit,
        loader: &mut Loader,
    ) -> io::Result<Option<FoundBase>> {
        let mut candidates = Vec::new();
        for name in &self.bases {
            let Ok(file) = disk.open(&layout.bases().join(name), Access::Read) else {
                continue;
            };
            if let Some(header) = header_of(&*file)?.filter(|header| fit.admits(header.seq)) {
                let before = self.archive_before(disk, layout, &header)?;
                candidates.push((before, header.seq, name, file));
            }
        }
        candidates.sort_by_key(|(before, seq, ..)| (before.is_some(), *seq));
        while let Some((before, _, name, file)) = candidates.pop() {
            loader.start_over();
            let contents = loader.take_base(&*file)?;
            let digest = digest_in_base_name(name).and_then(|digits| Hex::read(digits.as_bytes()));
            if let (Some(digest), Ok(_)) = (digest.filter(|digest| *digest == contents.sha256), contents.header) {
                return Ok(Some(FoundBase {
                    name: base_name(digest.text()),
                    file,
                    before,
                }));
            }
        }
        loader.start_over();
        Ok(None)
    }

    /// What a sentinel would say of an archive that ends with the event that a base names as its last.
    fn archive_before(&self, disk: &dyn Disk, layout: &Layout, header: &Header) -> io::Result<Option<Sentinel>> {
        let ends_there = |name: &&String| last_seq_in_archive_name(name) == Some(header.seq);
        for name in self.archives.iter().filter(ends_there) {
            let Ok(archive) = archive::open(disk, &layout.archives().join(name)) else {
                continue;
            };
            let head = head_of(&*archive.log).unwrap_or_default();
            if head.is_some_and(|head| head.text() == header.last_hash) {
                let digest = snapshot::digest(&*archive.packed)?;
                return Ok(Some(Sentinel {
                    base_sha256: None,
                    last_seq: header.seq,
                    previous_head: header.last_hash.clone(),
                    archive: Some((format!("archive/{name}"), digest.text().to_owned())),
                    repaired: false,
                    repairs: Vec::new(),
                }));
            }
        }
        Ok(None)
    }
}

/// A base that fits.
pub(in crate::store) struct FoundBase {
    /// Its name, from the store's folder on.
    pub name: String,
    /// The file.
    pub file: Arc<dyn DiskFile>,
    /// The archive that ends where it begins, as a sentinel would name it.
    pub before: Option<Sentinel>,
}

/// The names in a folder that are ours; none if the folder is not there, or something else in its place.
fn names_in(disk: &dyn Disk, folder: &Path, is_named_so: Shape) -> io::Result<Vec<String>> {
    if !is_folder(disk, folder) {
        return Ok(Vec::new());
    }
    let mut names = disk.list(folder)?;
    names.retain(|name| is_named_so(name) && is_ours(disk, &folder.join(name)));
    Ok(names)
}

/// The hash of the last event of a log.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn head_of(log: &dyn DiskFile) -> io::Result<Option<Hex>> {
    let line = line_before(log, log.length()?)?;
    Ok(line.and_then(|line| Some(Event::read(&line, Trust::Nothing).ok()?.hash(&line))))
}

/// Which bases a log may have started from.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) enum Fit {
    /// The one whose last event had this seq: the lines that are left count from there.
    Seq(u64),
    /// Any whose last event came before this one.
    Before(u64),
    /// Any.
    Any,
}

impl Fit {
    fn admits(self, seq: u64) -> bool {
        match self {
            Self::Seq(wanted) => seq == wanted,
            Self::Before(end) => seq < end,
            Self::Any => true,
        }
    }

    /// What the lines of a log, its first one lost, say of what came before them.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of_log(log: &dyn DiskFile, first_event: Option<(u64, u64)>, synced: Option<&Synced>) -> io::Result<Self> {
        let Some((offset, seq)) = first_event else {
            return Ok(synced.map_or(Self::Any, |synced| Self::Before(synced.seq)));
        };
        // An event that follows another was not the first, even if nothing stands before it.
        let lost = lines_before(log, offset)?.max(1);
        // Every line takes one seq, and the first of them is the one that names the base.
        Ok(seq.checked_sub(lost + 1).map_or(Self::Seq(u64::MAX), Self::Seq))
    }
}

/// How many lines that are not blank end before a place.
fn lines_before(log: &dyn DiskFile, end: u64) -> io::Result<u64> {
    let (mut offset, mut count, mut is_blank) = (0, 0, true);
    let mut window = Vec::new();
    while offset < end {
        window.clear();
        let wanted = (end - offset).min(64 * 1024) as usize;
        let got = read_upto(log, &mut window, offset, wanted)?;
        if got == 0 {
            break;
        }
        offset += got as u64;
        for byte in &window {
            match byte {
                b'\n' => {
                    count += u64::from(!is_blank);
                    is_blank = true;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => is_blank = false,
            }
        }
    }
    Ok(count)
}

/// The header of a base, without reading all of it if it is ours.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn header_of(file: &dyn DiskFile) -> io::Result<Option<Header>> {
    let length = file.length()?;
    let start = length.saturating_sub(HEADER_BYTES);
    let mut end = Vec::new();
    read_upto(file, &mut end, start, (length - start) as usize)?;
    let own = memmem::rfind(&end, b"\n],").and_then(|at| snapshot::last_header(end[at + 1..].trim_ascii_end()));
    match own {
        Some(header) => Ok(Some(header)),
        // Another tool's, adopted: its header may stand anywhere.
        None => Ok(snapshot::read(file, &mut snapshot::Nobody)?.header.ok()),
    }
}

/// The sentinel that the first line of a log was before one of its bytes was lost.
pub(in crate::store) fn mended_sentinel(
    line: &[u8],
    beginning: &Beginning,
    traces: Option<&Traces>,
) -> Option<Sentinel> {
    let first = traces.and_then(|traces| traces.synced).map(|synced| synced.first);
    // The line behind names it, unless that one is lost too; the hint does, if it speaks of this log.
    let candidates = [beginning.prev_hash, first, None];
    let mut budget = Budget::of(MENDING_BLOCKS);
    candidates.into_iter().find_map(|after| {
        let neighbours = Neighbours {
            before: Some(None),
            after,
        };
        let lines = mend(line, neighbours, &mut budget)?;
        let whole = lines.split(|byte| *byte == b'\n').next()?;
        match origin_in(whole) {
            Some(Origin::Ours(sentinel)) => Some(sentinel),
            _ => None,
        }
    })
}
