//! Writes the base and archive of a retired log, packs the bases of the past, and removes those that archives add up to.
//!
//! The newest stays as it is. Of the others the first stays, and any behind more events than it is long: so a look back
//! reads one base and about as many bytes of events. They are packed, and together weigh at most as much as the newest:
//! beyond that every second goes. A base to which nothing adds up (a repair's, another tool's, of version 1) stays.

use std::collections::HashSet;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};

use super::history_files::{past_of_log, remove, remove_base};
use crate::store::Progress;
use crate::store::archives::way::Hop;
use crate::store::files::proofs::immutable_names;
use crate::store::turns::Turns;
use chronolog::archive::{self, FRAME_BYTES, Packer, damage_in};
use chronolog::digest::{Hasher, Hex};
use chronolog::disk::{Access, Disk, DiskFile, read_over};
use chronolog::error::{At, Error, Result};
use chronolog::event::salt::{self, SaltTerms};
use chronolog::layout::{NEW_ARCHIVE, NEW_BASE, archive_name, base_name, digest_in_base_name, packed_base_name};
use chronolog::log::Site;
use chronolog::log::files::{PacedFile, Scratch, is_ours, is_taken_by_others, open_base, with_suffix};
use chronolog::ordered::in_order;
use chronomemory_state::snapshot::{BaseWriter, Header};
use chronomemory_state::state::{BaseRows, Frozen, State};

/// Packs the bases of the past that stay, and removes those that archives add up to. Damaged ones are left to `verify`.
pub(super) fn thin_out(turns: &impl Turns, now: i64) -> Result<()> {
    let (site, threads) = turns.turn(|store| Ok((Arc::clone(&store.site), store.options.threads)))?;
    let mut logs = past_of_log(turns)?;
    let Some(newest) = logs.pop().and_then(|live| live.base.1) else {
        return Ok(());
    };
    let most = site.disk.status(&site.layout.base(newest.text()));
    let most = most.map_or(0, |file| file.length);
    let mut bases = PastBases::of(site, logs, newest)?;
    let unneeded = bases.unneeded();
    bases.drop_all(turns, &unneeded, now)?;
    bases.pack_all(turns, threads, now)?;
    while bases.weight() > most {
        let spare = bases.every_second();
        if bases.drop_all(turns, &spare, now)? == 0 {
            break;
        }
    }
    Ok(())
}

struct PastBase {
    log: usize,
    sha256: Hex,
    is_word: bool,
    bytes: u64,
}

struct PastBases {
    site: Arc<Site>,
    logs: Vec<Hop>,
    there: Vec<PastBase>,
    archives: HashSet<String>,
}

impl PastBases {
    fn of(site: Arc<Site>, logs: Vec<Hop>, newest: Hex) -> Result<Self> {
        let mut there = Vec::new();
        let (disk, layout) = (&*site.disk, &site.layout);
        let names = immutable_names(disk, layout, "base")?;
        let digests: HashSet<&str> = names.iter().filter_map(|name| digest_in_base_name(name)).collect();
        for (number, log) in logs.iter().enumerate() {
            let is_there = |sha256: &Hex| *sha256 != newest && digests.contains(sha256.text());
            let Some(sha256) = log.base.1.filter(is_there) else {
                continue;
            };
            // `verify` reports what cannot be read.
            let Ok(Some((_, base))) = open_base(disk, layout, &sha256) else {
                continue;
            };
            if let Ok(bytes) = base.log.length() {
                there.push(PastBase {
                    log: number,
                    sha256,
                    is_word: log.is_base_declared(),
                    bytes,
                });
            }
        }
        Ok(Self {
            archives: immutable_names(disk, layout, "archive")?.into_iter().collect(),
            site,
            logs,
            there,
        })
    }

    /// The bases that less events lead to than they are long themselves.
    fn unneeded(&self) -> Vec<Hex> {
        let (mut since, mut is_begun, mut found) = (0, false, Vec::new());
        for (number, log) in self.logs.iter().enumerate() {
            let base = self.there.iter().find(|base| base.log == number);
            if let Some(base) = base {
                if !is_begun || base.is_word || since > base.bytes {
                    since = 0;
                } else {
                    found.push(base.sha256);
                }
            }
            is_begun |= base.is_some() || log.starts_from_nothing();
            since += log.length;
        }
        found
    }

    /// Every second base that history leads to. The first one stays unless a log before it begins with nothing.
    fn every_second(&self) -> Vec<Hex> {
        let is_needed = |base: &PastBase| !self.logs.iter().take(base.log).any(Hop::starts_from_nothing);
        let first = self
            .there
            .first()
            .filter(|base| is_needed(base))
            .map(|base| base.sha256);
        let spare = self
            .there
            .iter()
            .filter(|base| !base.is_word && Some(base.sha256) != first);
        spare.step_by(2).map(|base| base.sha256).collect()
    }

    fn weight(&self) -> u64 {
        let packed = |base: &PastBase| self.site.layout.inside(&packed_base_name(base.sha256.text()));
        let length = |base: &PastBase| self.site.disk.status(&packed(base)).map_or(0, |file| file.length);
        self.there.iter().map(length).sum()
    }

    /// Removes bases that the history before them stands in for; gives how many went.
    fn drop_all(&mut self, turns: &impl Turns, bases: &[Hex], now: i64) -> Result<u64> {
        let mut gone = 0;
        for sha256 in bases {
            let Some(at) = self.there.iter().position(|base| base.sha256 == *sha256) else {
                continue;
            };
            if !is_sound(&self.site, sha256)? || !self.adds_up_to(at)? {
                continue;
            }
            remove_base(turns, sha256, now)?;
            self.there.remove(at);
            gone += 1;
        }
        Ok(gone)
    }

    /// Whether the logs between a base and the one before it are there with their digests, computed once by each process.
    fn adds_up_to(&self, at: usize) -> Result<bool> {
        let end = self.there[at].log;
        let start = match at.checked_sub(1).and_then(|before| self.there.get(before)) {
            Some(before) => before.log,
            None => match self.logs.iter().position(Hop::starts_from_nothing) {
                Some(start) => start,
                None => return Ok(false),
            },
        };
        let between = self.logs.get(start..end).unwrap_or_default();
        let is_word = |log: &Hop| log.base.1.is_some() && log.is_base_declared();
        if between.iter().skip(1).any(is_word) {
            // What came before does not lead across it.
            return Ok(false);
        }
        for log in between {
            let file = log.name.strip_prefix("archive/").unwrap_or(&log.name);
            if !self.archives.contains(file) {
                return Ok(false);
            }
            if self.site.archives().proved.contains(&log.name) {
                continue;
            }
            let path = self.site.layout.inside(&log.name);
            let archive = archive::open(&*self.site.disk, &path).at(&path)?;
            if archive::file_digest(&*archive.packed).at(&path)?.text() != log.digest {
                return Ok(false);
            }
            self.site.archives().proved.insert(log.name.clone());
        }
        Ok(start < end)
    }

    fn pack_all(&self, turns: &impl Turns, threads: usize, now: i64) -> Result<()> {
        let (disk, layout) = (&self.site.disk, &self.site.layout);
        for base in &self.there {
            let plain = layout.base(base.sha256.text());
            let packed = layout.inside(&packed_base_name(base.sha256.text()));
            if !is_ours(&**disk, &plain) || is_taken_by_others(&**disk, &packed) || !is_sound(&self.site, &base.sha256)?
            {
                continue;
            }
            if !holds(&**disk, &packed, &base.sha256) {
                let file = disk.open(&plain, Access::Read).at(&plain)?;
                let packing = Packing::start(disk, file, with_suffix(&packed, ".tmp"), threads)?;
                packing.finish(base.bytes)?.1.name(&packed)?;
            }
            // Read again before the other goes: there may be no second one.
            if holds(&**disk, &packed, &base.sha256) {
                remove(turns, &base_name(base.sha256.text()), now)?;
            }
        }
        Ok(())
    }
}

/// Whether what a base should hold is what its file holds; false if there is none.
pub(super) fn is_sound(site: &Site, sha256: &Hex) -> Result<bool> {
    let path = site.layout.base(sha256.text());
    let Some((_, base)) = open_base(&*site.disk, &site.layout, sha256).at(&path)? else {
        return Ok(false);
    };
    match archive::file_digest(&*base.log) {
        Ok(found) => Ok(found == *sha256),
        Err(fault) if damage_in(&fault).is_some() => Ok(false),
        Err(fault) => Err(Error::io(&path, fault)),
    }
}

fn holds(disk: &dyn Disk, packed: &Path, sha256: &Hex) -> bool {
    archive::open(disk, packed).is_ok_and(|base| archive::has_digest(&*base.log, sha256))
}

/// The name of an archive without what an erasure adds, and its digest.
pub(in crate::store) type ArchiveTold = (String, Hex);

pub(in crate::store) struct NewFiles {
    records: Option<Frozen>,
    base: BaseWriter,
    base_scratch: Scratch,
    rows: Option<BaseRows>,
    archive: Option<Packing>,
}

pub(in crate::store) struct RewrittenFiles {
    pub base: Hex,
    pub archive: Option<ArchiveTold>,
    pub rows: Option<BaseRows>,
}

impl NewFiles {
    /// Creates the drafts; an archive only if there is a log to pack.
    pub fn start(
        site: &Site,
        records: Frozen,
        log: Option<Arc<dyn DiskFile>>,
        rows: Option<BaseRows>,
        threads: usize,
    ) -> Result<Self> {
        let bases = site.layout.bases();
        site.make_folder(&bases, site.layout.folder())?;
        let base_scratch = Scratch::at(&site.disk, bases.join(NEW_BASE));
        let base = BaseWriter::create(&*site.disk, base_scratch.path()).at(base_scratch.path())?;
        let archive = log.map(|log| Packing::of_archive(site, log, threads)).transpose()?;
        Ok(Self {
            records: Some(records),
            base,
            base_scratch,
            rows,
            archive,
        })
    }

    /// Takes changed records to be written next, and the log, which reads as before where it is packed.
    pub fn take(&mut self, records: Option<Frozen>, log: Option<Arc<dyn DiskFile>>) {
        self.records = records;
        if let Some((packing, log)) = self.archive.as_mut().zip(log) {
            packing.log = log;
        }
    }

    /// Writes the records down and packs the log up to a place, at the same time if that is worth a thread.
    pub fn run(&mut self, until: u64, is_worth_a_thread: bool, progress: Progress<'_>) -> Result<()> {
        let Self {
            records,
            base,
            base_scratch,
            rows,
            archive,
        } = self;
        let path = base_scratch.path();
        let mut write = |progress: Progress<'_>| {
            if let Some(records) = records.take() {
                add_records(base, &records, rows, progress).at(path)?;
                records.check()?;
            }
            base.sync().at(path)
        };
        let mut pack = |progress: Progress<'_>| match archive {
            Some(packing) => packing.go_on(until, progress).at(packing.scratch.path()),
            None => Ok(()),
        };
        if is_worth_a_thread {
            return both(|| pack(progress), || write(&mut |_, _| {}));
        }
        write(progress)?;
        pack(progress)
    }

    /// Writes the rest up to the end of the log and names both files; gives digest of the base, name and digest of the archive.
    pub fn finish(
        mut self,
        site: &Site,
        (header, salts): (&Header, Option<SaltTerms<'_>>),
        end: u64,
        (first, suffix): (u64, &str),
    ) -> Result<RewrittenFiles> {
        let path = self.base_scratch.path();
        if let Some(records) = self.records.take() {
            add_records(&mut self.base, &records, &mut self.rows, &mut |_, _| {}).at(path)?;
            records.check()?;
        }
        // The salt keeps the digest of the base from being guessed.
        let salt = salts
            .map(|terms| salt::drawn(terms.source, salt::BASE_SALT_BYTES))
            .transpose();
        let salt = salt.map_err(Error::randomness)?;
        let base = self.base.finish(header, salt.as_deref()).at(path)?;
        self.base_scratch.name(&site.layout.base(base.text()))?;
        let name = |packing: Packing| packing.name(site, end, (first, header.seq), suffix);
        let archive = self.archive.map(name).transpose()?;
        Ok(RewrittenFiles {
            base,
            archive,
            rows: self.rows,
        })
    }
}

fn add_records(
    base: &mut BaseWriter,
    records: &Frozen,
    rows: &mut Option<BaseRows>,
    progress: Progress<'_>,
) -> io::Result<()> {
    let mut written = |place: usize, offset: u64, record: &[u8]| {
        if let Some(rows) = rows {
            rows.add(records, place, offset, record);
        }
    };
    base.add(records.moments(), records.records(), &mut written, progress)
}

pub(in crate::store) fn write_base(
    site: &Site,
    header: &Header,
    state: &mut State,
    salts: Option<SaltTerms<'_>>,
    progress: Progress<'_>,
) -> Result<Hex> {
    let mut files = NewFiles::start(site, state.freeze()?, None, None, 1)?;
    files.run(0, false, progress)?;
    Ok(files.finish(site, (header, salts), 0, (0, ""))?.base)
}

/// Does two things, the second of them beside the first; gives the first error.
fn both(first: impl FnOnce() -> Result<()>, second: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    // If no thread can be started, this one does both.
    let waiting = Mutex::new(Some(second));
    let run = || match waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(second) => second(),
        None => Err(Error::Closed),
    };
    thread::scope(|scope| {
        let beside = Builder::new().spawn_scoped(scope, run).ok();
        let done = first();
        let other = match beside {
            Some(beside) => beside.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => run(),
        };
        done.and(other)
    })
}

/// A packed file, as far as it is written.
pub(in crate::store) struct Packing {
    /// The log that is packed. It may be replaced by one that reads the same as far as it is packed.
    log: Arc<dyn DiskFile>,
    file: PacedFile,
    scratch: Scratch,
    done: u64,
    hasher: Hasher,
    threads: usize,
}

#[derive(Default)]
struct FramePiece {
    packer: Option<Packer>,
    plain: Vec<u8>,
    frame: Vec<u8>,
}

impl Packing {
    fn start(disk: &Arc<dyn Disk>, log: Arc<dyn DiskFile>, path: PathBuf, threads: usize) -> Result<Self> {
        let scratch = Scratch::at(disk, path);
        Ok(Self {
            log,
            file: PacedFile::at(disk.create(scratch.path()).at(scratch.path())?, 0),
            scratch,
            done: 0,
            hasher: Hasher::default(),
            threads,
        })
    }

    fn of_archive(site: &Site, log: Arc<dyn DiskFile>, threads: usize) -> Result<Self> {
        let archives = site.layout.archives();
        site.make_folder(&archives, site.layout.folder())?;
        Self::start(&site.disk, log, archives.join(NEW_ARCHIVE), threads)
    }

    /// Packs all whole frames before a place in the log, and makes them durable.
    fn go_on(&mut self, until: u64, progress: Progress<'_>) -> io::Result<()> {
        let whole = until - until % FRAME_BYTES as u64;
        if whole > self.done {
            self.pack(whole, progress)?;
            self.file.sync()?;
        }
        Ok(())
    }

    /// Packs what is left up to the end of the log, and makes all of it durable; gives the digest.
    fn finish(mut self, end: u64) -> Result<(Hex, Scratch)> {
        let packed = self.pack(end, &mut |_, _| {}).and_then(|()| self.file.sync());
        packed.at(self.scratch.path())?;
        Ok((self.hasher.finish(), self.scratch))
    }

    /// The same with an archive, which gets its name.
    fn name(self, site: &Site, end: u64, (first, last): (u64, u64), suffix: &str) -> Result<ArchiveTold> {
        let (digest, scratch) = self.finish(end)?;
        let name = archive_name(first, last, digest.text());
        scratch.name(&site.layout.inside(&format!("{name}{suffix}")))?;
        Ok((name, digest))
    }

    fn pack(&mut self, until: u64, progress: Progress<'_>) -> io::Result<()> {
        let start = self.done;
        let pieces = (until - start).div_ceil(FRAME_BYTES as u64);
        let log = Arc::clone(&self.log);
        let work = |index: u64, piece: &mut FramePiece| {
            let from = start + index * FRAME_BYTES as u64;
            let wanted = (until - from).min(FRAME_BYTES as u64) as usize;
            if read_over(&*log, &mut piece.plain, from, wanted)? < wanted {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let packer = match &mut piece.packer {
                Some(packer) => packer,
                none => none.insert(Packer::new()?),
            };
            packer.pack(&piece.plain, &mut piece.frame)
        };
        in_order(pieces, self.threads, work, |piece: &mut FramePiece| {
            self.hasher.update(&piece.frame);
            self.file.add(&piece.frame)?;
            self.done += piece.plain.len() as u64;
            progress(self.done, until);
            io::Result::Ok(true)
        })
    }
}

/// Packs a log as an archive.
pub(in crate::store) fn archive_of(
    site: &Site,
    (log, end): (Arc<dyn DiskFile>, u64),
    span: (u64, u64),
    suffix: &str,
    threads: usize,
) -> Result<ArchiveTold> {
    Packing::of_archive(site, log, threads)?.name(site, end, span, suffix)
}
