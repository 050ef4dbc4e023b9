//! The names of all files and folders of a store. No other place knows them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder of a store inside a project.
pub const FOLDER: &str = ".chronomemory";
/// The log's name inside the folder.
pub const LOG: &str = "events.wal";
/// The snapshot's name inside the folder.
pub const SNAPSHOT: &str = "snapshot.json";

/// What tells that an erasure is not finished, inside the folder.
pub const ERASING: &str = "erasing";

/// What tells where copies outside were made, inside the folder.
pub const COPIES: &str = "copies";

const LOCK: &str = "lock";
/// The maintenance lock.
const CARE_LOCK: &str = "care.lock";

/// The name of the hint about the last sync inside the folder.
pub const SYNCED: &str = "synced";

/// What the names of files of rows end with.
pub const ROWS_SUFFIX: &str = ".f32";

/// What the name of an archive ends with in which lines were erased.
pub const ERASED_SUFFIX: &str = ".erased";

const CODES_SUFFIX: &str = ".codes";
/// What the names of codes ended with in earlier versions.
const OLD_CODES_SUFFIX: &str = ".i8";
const PACKED_SUFFIX: &str = ".zst";
const DRAFT_SUFFIX: &str = ".tmp";
const LONGEST_SPACE_BYTES: usize = 64;
/// How many digits of a digest stand in the name of an archive or of a text index.
const SHORT_DIGITS: usize = 16;
const DIGEST_DIGITS: usize = 64;

/// Where a file is written before it gets its name, if several may write it at the same time: each has a draft of its own.
pub fn own_draft(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}{DRAFT_SUFFIX}", std::process::id()));
    PathBuf::from(name)
}

/// The paths of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
    log: PathBuf,
    lock: PathBuf,
    is_backup: bool,
}

impl Layout {
    /// The store of a project folder.
    pub fn of_project(root: &Path) -> Self {
        Self::of_folder(root.join(FOLDER))
    }

    /// A store whose files lie directly in `folder`, as in a backup.
    pub fn of_folder(folder: PathBuf) -> Self {
        // Without a slash at its end, which would lead through a link.
        let folder: PathBuf = folder.components().collect();
        // Every commit asks for these.
        Self {
            log: folder.join(LOG),
            lock: folder.join(LOCK),
            folder,
            is_backup: false,
        }
    }

    /// The same, to be read only.
    pub fn of_backup(folder: PathBuf) -> Self {
        Self {
            is_backup: true,
            ..Self::of_folder(folder)
        }
    }

    /// Whether it is a copy that is only read.
    pub fn is_backup(&self) -> bool {
        self.is_backup
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The chained log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The log while it is being born or replaced.
    pub fn log_draft(&self) -> PathBuf {
        self.folder.join("events.wal.tmp")
    }

    /// A log that a restore brings, until it takes its place.
    pub fn restored_draft(&self) -> PathBuf {
        self.archives().join(RESTORED_LOG)
    }

    /// The materialised state for people and other tools.
    pub fn snapshot(&self) -> PathBuf {
        self.folder.join(SNAPSHOT)
    }

    /// The snapshot while it is being written.
    pub fn snapshot_draft(&self) -> PathBuf {
        self.folder.join("snapshot.json.tmp")
    }

    /// The same beside other writers of a snapshot: each as of another event.
    pub fn snapshot_draft_at(&self, seq: u64) -> PathBuf {
        self.folder.join(format!("{SNAPSHOT}.{seq}{DRAFT_SUFFIX}"))
    }

    /// How far the log is known to be on disk.
    pub fn synced(&self) -> PathBuf {
        self.folder.join(SYNCED)
    }

    /// The writer lock.
    pub fn lock(&self) -> &Path {
        &self.lock
    }

    /// The maintenance lock: for compaction, backup, restore, repair and erasure.
    pub fn care_lock(&self) -> PathBuf {
        self.folder.join(CARE_LOCK)
    }

    /// The states that compactions started from.
    pub fn bases(&self) -> PathBuf {
        self.folder.join("base")
    }

    /// One base, named by its digest.
    pub fn base(&self, sha256: &str) -> PathBuf {
        self.folder.join(base_name(sha256))
    }

    /// Log segments retired by compactions.
    pub fn archives(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// What is derived and can be made again.
    pub fn indexes(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Which events of an archive speak of which record.
    pub fn history_index(&self, archive: &str) -> PathBuf {
        let name = archive.rsplit('/').next().unwrap_or(archive);
        self.indexes().join(format!("{name}.history"))
    }

    /// The rows of all embedding spaces.
    pub fn vectors(&self) -> PathBuf {
        self.folder.join("vectors")
    }

    /// The rows of one generation of an embedding space.
    pub fn rows(&self, space: &str, generation: u64) -> PathBuf {
        self.folder.join(rows_name(space, generation))
    }

    /// The codes of some rows of one generation.
    pub fn codes(&self, space: &str, generation: u64, rows: Range<usize>) -> PathBuf {
        let (first, end) = (rows.start, rows.end);
        let name = format!("{space}.{generation}.{first}-{end}{CODES_SUFFIX}");
        self.codes_folder().join(name)
    }

    /// Where those are.
    pub fn codes_folder(&self) -> PathBuf {
        self.indexes().join("vectors")
    }

    /// Sealed parts of the text index.
    pub fn text_indexes(&self) -> PathBuf {
        self.indexes().join("text")
    }

    /// One of them, named by the last event that it knows.
    pub fn text_index(&self, seq: u64, head: &str) -> PathBuf {
        let short = head.get(..SHORT_DIGITS).unwrap_or(head);
        self.text_indexes().join(format!("{seq}-{short}.text"))
    }

    /// The lock of those who write one.
    pub fn text_lock(&self) -> PathBuf {
        self.text_indexes().join("lock")
    }

    /// Segments of the state.
    pub fn segments(&self) -> PathBuf {
        self.indexes().join("state")
    }

    /// The rows of one of them: its events and the hash of the last one. Files of other families differ in the extension.
    pub fn segment(&self, from: u32, to: u32, head: &str) -> PathBuf {
        let short = head.get(..SHORT_DIGITS).unwrap_or(head);
        self.segments().join(format!("{from}-{to}-{short}.rows"))
    }

    /// The lock of those who write one.
    pub fn segment_lock(&self) -> PathBuf {
        self.segments().join("lock")
    }

    /// What recovery cut away.
    pub fn quarantine(&self) -> PathBuf {
        self.folder.join("quarantine")
    }

    /// Consistent copies.
    pub fn backups(&self) -> PathBuf {
        self.folder.join("backup")
    }

    /// A path as reports and sentinels name it, made absolute.
    pub fn inside(&self, relative: &str) -> PathBuf {
        self.folder.join(relative)
    }
}

/// A base's name relative to the folder.
pub fn base_name(sha256: &str) -> String {
    format!("base/{sha256}.json")
}

/// The same, packed: how bases of the past are kept.
pub fn packed_base_name(sha256: &str) -> String {
    format!("base/{sha256}.json{PACKED_SUFFIX}")
}

/// The name of a file of rows relative to the folder.
pub fn rows_name(space: &str, generation: u64) -> String {
    format!("vectors/{space}.{generation}{ROWS_SUFFIX}")
}

/// An archive's name relative to the folder.
pub fn archive_name(first_seq: u64, last_seq: u64, sha256: &str) -> String {
    let short = sha256.get(..SHORT_DIGITS).unwrap_or(sha256);
    format!("archive/{first_seq}-{last_seq}-{short}.wal.zst")
}

/// A base while it is being written.
pub const NEW_BASE: &str = "new.json.tmp";
/// A snapshot while maintenance writes it.
pub const NEW_SNAPSHOT: &str = "snapshot.json.tmp";
/// An archive while it is being packed.
pub const NEW_ARCHIVE: &str = "new.wal.zst.tmp";
/// A log that is brought back.
pub const RESTORED_LOG: &str = "restored.wal.tmp";
/// A log that a repair of an earlier version brought back line by line.
pub const HEALED_LOG: &str = "healed.wal.tmp";
/// The snapshot of a log that is brought back.
pub const RESTORED_SNAPSHOT: &str = "restored.json.tmp";

/// The name of a file in `index/` relative to the folder.
pub fn index_name(path: &Path) -> String {
    let inside: Vec<_> = path.iter().rev().take_while(|part| *part != "index").collect();
    let parts = inside.iter().rev().map(|part| part.to_string_lossy());
    parts.fold("index".to_owned(), |name, part| name + "/" + &part)
}

/// Whether an archive of this name is packed.
pub fn is_packed_name(name: &str) -> bool {
    name.strip_suffix(ERASED_SUFFIX)
        .unwrap_or(name)
        .ends_with(PACKED_SUFFIX)
}

/// Whether lines of an archive of this name were erased.
pub fn is_redacted_name(name: &str) -> bool {
    name.ends_with(ERASED_SUFFIX)
}

/// Whether a name taken from a log stays inside its folder: digests name files, nothing else may.
pub fn is_archive_name(name: &str) -> bool {
    name.strip_prefix("archive/").is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with('.')
            && rest
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    })
}

const STAMP_BYTES: usize = 15;

/// Whether a name has the shape of one of ours.
pub type Shape = fn(&str) -> bool;

/// What the name of an unfinished file would be if it were finished; `None` if it is none.
fn finished(name: &str) -> Option<&str> {
    name.strip_suffix(DRAFT_SUFFIX)
}

/// The name without what tells the drafts of several writers apart: a process, and which of its drafts; `None` if it is without.
fn without_writer(name: &str) -> Option<&str> {
    let (name, writer) = name.rsplit_once('.')?;
    let (process, number) = writer.split_once('-')?;
    (is_number(process) && is_number(number)).then_some(name)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_digest(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether this is the name of a moment, such as `20261115T190743`, alone or followed by a dash.
fn is_stamped(name: &str) -> bool {
    stamped(name).is_some()
}

/// The rest of a name behind its moment.
fn stamped(name: &str) -> Option<&str> {
    let (stamp, rest) = name.split_at_checked(STAMP_BYTES)?;
    let is_stamp = stamp.bytes().enumerate().all(|(at, b)| match at {
        8 => b == b'T',
        _ => b.is_ascii_digit(),
    });
    (is_stamp && (rest.is_empty() || rest.starts_with('-'))).then_some(rest)
}

/// Whether a file of this name in the store's folder is a log or a snapshot that was not finished.
pub fn is_draft(name: &str) -> bool {
    finished(name).is_some_and(|name| {
        let seq = name.strip_prefix(SNAPSHOT).and_then(|rest| rest.strip_prefix('.'));
        name == LOG || name == SNAPSHOT || seq.is_some_and(is_number)
    })
}

/// Whether a file of this name in `base/` is a base, packed or not.
pub fn is_base_file(name: &str) -> bool {
    digest_in_base_name(name).is_some()
}

/// Whether it is one that is not packed, as that of a live log always is.
pub fn is_unpacked_base(name: &str) -> bool {
    is_base_file(name) && !name.ends_with(PACKED_SUFFIX)
}

/// The digest that a base of this name should have.
pub fn digest_in_base_name(name: &str) -> Option<&str> {
    let digest = name.strip_suffix(PACKED_SUFFIX).unwrap_or(name).strip_suffix(".json");
    digest.filter(|digest| is_digest(digest, DIGEST_DIGITS))
}

/// Whether one is a base, or a snapshot, that was not finished.
pub fn is_base_draft(name: &str) -> bool {
    matches!(name, NEW_BASE | NEW_SNAPSHOT) || finished(name).is_some_and(is_base_file)
}

/// Whether a file of this name in `archive/` is a retired log, packed or not.
pub fn is_archive_file(name: &str) -> bool {
    let packed = match name.strip_suffix(ERASED_SUFFIX) {
        Some(packed) if !packed.ends_with(".zst") => return false,
        Some(packed) => packed,
        None => name,
    };
    let plain = packed.strip_suffix(".zst").unwrap_or(packed).strip_suffix(".wal");
    plain.is_some_and(|plain| {
        let mut parts = plain.split('-');
        let mut next = || parts.next().unwrap_or_default();
        let (first, last, digest) = (next(), next(), next());
        is_number(first) && is_number(last) && is_digest(digest, SHORT_DIGITS) && parts.next().is_none()
    })
}

/// The last seq of an archive of this name.
pub fn last_seq_in_archive_name(name: &str) -> Option<u64> {
    name.split('-').nth(1).filter(|_| is_archive_file(name))?.parse().ok()
}

/// The beginning of the digest of an archive of this name.
pub fn short_digest_in_archive_name(name: &str) -> Option<&str> {
    name.split(['-', '.']).nth(2).filter(|_| is_archive_file(name))
}

/// Whether one was not finished.
pub fn is_archive_draft(name: &str) -> bool {
    matches!(name, NEW_ARCHIVE | RESTORED_LOG | RESTORED_SNAPSHOT | HEALED_LOG)
        || finished(name).is_some_and(is_archive_file)
}

/// Whether a file of this name in `index/` tells which events of an archive speak of which record, finished or not.
pub fn is_history_index(name: &str) -> bool {
    let index = finished(name).map_or(name, |name| without_writer(name).unwrap_or(name));
    index.strip_suffix(".history").is_some_and(is_archive_file)
}

/// Whether a space may have this name: it becomes part of the name of a file.
pub fn is_space_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=LONGEST_SPACE_BYTES).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_plain)
}

/// The space and the generation in the name of a file of rows, or of a file of codes without its rows.
fn space_in(name: &str) -> Option<(&str, u64)> {
    let (space, generation) = name.rsplit_once('.')?;
    let is_ours = is_space_name(space) && is_number(generation);
    is_ours.then_some((space, generation.parse().ok()?))
}

/// Whether a file of this name in `vectors/` holds rows.
pub fn is_rows_file(name: &str) -> bool {
    name.strip_suffix(ROWS_SUFFIX)
        .is_some_and(|name| space_in(name).is_some())
}

/// The space and the generation that a file of this name in `index/vectors/` holds codes of.
pub fn codes_of(name: &str) -> Option<(&str, u64)> {
    let (of, rows) = name.strip_suffix(CODES_SUFFIX)?.rsplit_once('.')?;
    let (first, end) = rows.split_once('-')?;
    space_in(of).filter(|_| is_number(first) && is_number(end))
}

/// Whether one was not finished.
pub fn is_codes_draft(name: &str) -> bool {
    let name = finished(name).and_then(without_writer);
    name.is_some_and(|name| codes_of(name).is_some())
}

/// Whether a file of this name in `index/vectors/` holds codes of an earlier version.
pub fn is_old_codes(name: &str) -> bool {
    name.strip_suffix(OLD_CODES_SUFFIX)
        .is_some_and(|name| space_in(name).is_some())
}

/// Whether one was not finished.
pub fn is_rows_draft(name: &str) -> bool {
    finished(name).is_some_and(is_rows_file)
}

/// Whether a file of this name in `quarantine/` was not finished.
pub fn is_quarantine_draft(name: &str) -> bool {
    // Whatever is put aside is named by the moment, and then by what it is.
    finished(name).is_some_and(|name| is_stamped(name) && name.contains('-'))
}

/// Whether something of this name in `quarantine/` was put there by us: what recovery cut away, or a file of the past.
pub fn is_quarantine_name(name: &str) -> bool {
    (is_stamped(name) && name.contains('-')) || is_base_file(name) || is_archive_file(name) || is_rows_file(name)
}

/// Whether a folder of this name in `backup/` is a copy.
pub fn is_backup_folder(name: &str) -> bool {
    is_stamped(name) && name.split('-').skip(1).all(is_number)
}

/// Whether a folder of this name in `quarantine/` is a store that recovery set aside.
pub fn is_aside_folder(name: &str) -> bool {
    stamped(name).is_some_and(|what| {
        ["-damaged", "-before-restore"].iter().any(|known| {
            let number = what.strip_prefix(known);
            number.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number))
        })
    })
}

/// Where in the log the tail stood that a file of this name in `quarantine/` holds; `None` if it holds none.
pub fn offset_of_tail(name: &str) -> Option<u64> {
    let rest = stamped(name)?.strip_prefix("-tail-at-")?;
    let (offset, again) = rest.split_once('-').unwrap_or((rest, "0"));
    offset.parse().ok().filter(|_| is_number(offset) && is_number(again))
}

/// Whether a file of this name in `quarantine/` is a hint about the last sync that the log contradicted.
pub fn is_kept_hint(name: &str) -> bool {
    let rest = stamped(name).and_then(|what| what.strip_prefix("-synced"));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number))
}

/// Whether one was not finished.
pub fn is_backup_draft(name: &str) -> bool {
    finished(name).is_some_and(is_backup_folder)
}

/// Whether a file of this name lies directly in a copy, finished or not.
pub fn is_in_backup(name: &str) -> bool {
    name == LOG || name == SNAPSHOT || name == SYNCED || is_draft(name)
}

/// Whether one lies directly in a copy that is not finished.
pub fn is_in_draft(name: &str) -> bool {
    is_in_backup(name) || matches!(name, LOCK | CARE_LOCK | ERASING)
}

/// Whether a file of this name in `index/text/` is a sealed part of the text index that was not finished.
pub fn is_text_draft(name: &str) -> bool {
    finished(name).is_some_and(is_text_name)
}

fn is_text_name(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(seq, head)| is_number(seq) && is_digest(head, SHORT_DIGITS))
}

/// The last event that a sealed part of the text index of this name knows.
pub fn text_index_seq(name: &str) -> Option<u64> {
    let name = name.strip_suffix(".text").filter(|name| is_text_name(name))?;
    name.split('-').next()?.parse().ok()
}

/// Whether a file of this name in `index/state/` is a segment that was not finished.
pub fn is_segment_draft(name: &str) -> bool {
    finished(name).is_some_and(|name| segment_range(&format!("{name}.rows")).is_some())
}

/// The extensions of the files of a segment: its rows, and what is computed from them.
pub const SEGMENT_FAMILIES: [&str; 2] = ["rows", "keys"];

/// The events of the segment that a file of this name is of: the first, and the one after the last.
pub fn segment_range(name: &str) -> Option<(u32, u32)> {
    let (name, family) = name.split_once('.')?;
    let mut parts = name.split('-');
    let (from, to, head) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = is_number(from) && is_number(to) && is_digest(head, SHORT_DIGITS) && parts.next().is_none();
    let is_ours = is_whole && SEGMENT_FAMILIES.contains(&family);
    is_ours.then_some((from.parse().ok()?, to.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shape, names that have it and names that are almost like them. `B` stands for the digest of a base, `A` for an archive.
    const SHAPES: [(Shape, &str, &str); 17] = [
        (
            is_base_file,
            "B.json B.json.zst",
            "notes.json .json x.json.zst B.json.zst.zst B.zst B.json.tmp",
        ),
        (is_unpacked_base, "B.json", "B.json.zst"),
        (
            is_base_draft,
            "B.json.tmp B.json.zst.tmp new.json.tmp",
            "x.json.tmp B.json B.zst",
        ),
        (
            is_archive_file,
            "A A.zst A.zst.erased",
            "A.erased 1-2.wal 1-2-0123456789abcdef-3.wal a-2-0123456789abcdef.wal x.wal.zst mail.history",
        ),
        (is_archive_draft, "A.zst.tmp", "A.zst mail.tmp"),
        (
            is_history_index,
            "A.history A.zst.erased.history A.history.tmp A.history.12-3.tmp",
            "A A.history.1-2 A.history.1-2.tmp.tmp A.history.1.tmp A.history.1-.tmp A.history.1-2-3.tmp A.history.x-2.tmp",
        ),
        (
            is_draft,
            "events.wal.tmp snapshot.json.tmp snapshot.json.17.tmp",
            "x.tmp snapshot.json.x.tmp events.wal snapshot.json..tmp .tmp",
        ),
        (
            is_backup_folder,
            "20261115T190743 20261115T190743-2",
            "x.tmp 20261115 20261115T190743-mine 20261115T190743.tmp2 2026111éT190743",
        ),
        (
            is_backup_draft,
            "20261115T190743-2.tmp",
            "20261115T190743-2 20261115T190743-mine.tmp x.tmp",
        ),
        (
            is_aside_folder,
            "20261115T190743-damaged 20261115T190743-before-restore-2",
            "20261115T190743-damaged-log 20261115T190743 x-damaged 20261115T190743-unnamed",
        ),
        (
            |name| offset_of_tail(name) == Some(120),
            "20261115T190743-tail-at-120 20261115T190743-tail-at-120-2",
            "20261115T190743-tail-at- 20261115T190743-tail-at-x tail-at-7 20261115T190743-tail-at-7.tmp",
        ),
        (
            is_kept_hint,
            "20261115T190743-synced 20261115T190743-synced-2",
            "20261115T190743-synced.tmp synced",
        ),
        (
            is_quarantine_draft,
            "20261115T190743-tail-at-120.tmp",
            "tail.tmp 20261115T190743-tail-at-120",
        ),
        (
            |name| codes_of(name) == Some(("a.b", 3)),
            "a.b.3.0-16384.codes",
            "a.b.codes mine.codes a.3.0.codes a.x.0-1.codes .3.0-1.codes a.3.0-1.codes.tmp",
        ),
        (
            is_codes_draft,
            "a.b.3.0-16384.codes.12-3.tmp",
            "a.b.3.0-16384.codes a.3.0-1.codes.tmp",
        ),
        (is_old_codes, "a.b.3.i8", "mine.i8"),
        (
            |name| segment_range(name) == Some((0, 17)),
            "0-17-0123456789abcdef.rows 0-17-0123456789abcdef.keys",
            "0-17-0123456789abcdef 0-17-0123456789abcdef.notes 0-17-0123456789abcdef.rows.keys",
        ),
    ];

    #[test]
    fn names_of_ours_are_known_and_those_almost_like_them_are_not() {
        let digest = "0123456789abcdef".repeat(4);
        let full = |name: &str| name.replace('B', &digest).replace('A', "1-20-0123456789abcdef.wal");
        for (is_ours, ours, others) in SHAPES {
            ours.split(' ').for_each(|name| assert!(is_ours(&full(name)), "{name}"));
            others
                .split(' ')
                .for_each(|name| assert!(!is_ours(&full(name)), "{name}"));
        }
        assert!(!is_base_file(&full("B.json")[1..]) && !is_base_file(&full("B.json").to_uppercase()));
        assert_eq!(digest_in_base_name(&full("B.json.zst")), Some(&digest[..]));
        assert_eq!(archive_name(1, 20, &digest), full("archive/A.zst"));
        assert_eq!(short_digest_in_archive_name(&full("A.zst")), Some("0123456789abcdef"));
        assert_eq!(text_index_seq("17-0123456789abcdef.text"), Some(17));
        assert_eq!(text_index_seq("17-notes.text"), None);
        assert!(is_segment_draft("0-17-0123456789abcdef.tmp") && !is_segment_draft("0-17-0123456789abcdef.keys.tmp"));
        assert!(is_text_draft("17-0123456789abcdef.tmp") && !is_text_draft("17-notes.tmp"));
        let codes = Layout::of_project(Path::new("x")).codes("a.b", 3, 0..16384);
        assert!(codes.ends_with("a.b.3.0-16384.codes"));
        let drafts = [own_draft(&codes), own_draft(&codes)];
        assert_ne!(drafts[0], drafts[1]);
        let name = drafts[0].file_name().map(|name| name.to_string_lossy());
        assert!(name.is_some_and(|name| is_codes_draft(&name)));
    }
}
