//! Are the archives those that the log names?

use std::io;

use crate::archive::{self, damage_in};
use crate::damage::{Damage, DamageKind};
use crate::digest::Hex;
use crate::disk::{Disk, NamedFault, Naming};
use crate::hint::Hint;
use crate::layout::{Layout, base_name, index_name};
use crate::log::files::open_inside;
use crate::origin::{Adoption, Origin, Sentinel, foreign_traces, origin_of};
use crate::snapshot;
use crate::verify::{Nobody, Sink, Walk, finding};
use crate::wal::reader::Reading;

use super::archive_index::{Mentions, is_forged};
use crate::store::vectors::is_of_this_file;

/// What was found in the archives.
#[derive(Default)]
pub(in crate::store) struct Past {
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// Indexes of archives that say something else than the archives.
    pub altered: Vec<Damage>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// One step back, or why there is none.
enum Before {
    /// The segment starts from another archive.
    Sentinel(Sentinel),
    /// There is nothing more to follow.
    End,
}

/// How the log in an archive begins.
enum ArchiveBeginning {
    /// From this, perhaps adopted.
    Known(Box<Origin>, Option<Adoption>),
    /// It is not what it should be, and that was said.
    Damaged,
}

impl Past {
    /// Follows the archives back from a sentinel, as far as they were kept.
    ///
    /// # Errors
    /// What the disk says. Damage is no error.
    pub fn follow(disk: &dyn Disk, layout: &Layout, sentinel: &Sentinel, threads: usize) -> io::Result<Self> {
        let mut past = Self::default();
        let mut sentinel = sentinel.clone();
        // No archive leads back to itself: it would have to contain its own digest.
        while let Before::Sentinel(earlier) = past.step(disk, layout, &sentinel, threads)? {
            sentinel = earlier;
        }
        Ok(past)
    }

    fn hurt(&mut self, name: &str, reason: impl Into<String>) -> Before {
        self.damage.push(finding(name, DamageKind::ArchiveAltered, reason));
        Before::End
    }

    fn step(&mut self, disk: &dyn Disk, layout: &Layout, sentinel: &Sentinel, threads: usize) -> io::Result<Before> {
        if sentinel.archive.is_none() {
            self.notes
                .push("history unavailable: a compaction did not keep it".to_owned());
            return Ok(Before::End);
        }
        let Some((name, digest)) = sentinel.safe_archive() else {
            return Ok(self.hurt("archive", "the log names no archive of ours"));
        };
        let archive = match archive::open(disk, &layout.inside(name)) {
            Ok(archive) => archive,
            Err(fault) => return Ok(self.unread(name, &fault)),
        };
        let found = match snapshot::digest(&*archive.packed) {
            Ok(found) if found.text() == digest => found,
            Ok(found) => return Ok(self.hurt(name, format!("its SHA-256 is {}", found.text()))),
            Err(fault) => return Ok(self.unread(name, &fault)),
        };
        let mut mentions = Mentions::default();
        let is_indexed = disk.exists(&layout.history_index(name));
        let sink: &mut dyn Sink = if is_indexed { &mut mentions } else { &mut Nobody };
        match self.look_inside((name, &archive), sentinel, threads, sink) {
            Err(fault) => Ok(self.unread(name, &fault)),
            Ok(ArchiveBeginning::Damaged) => Ok(Before::End),
            Ok(ArchiveBeginning::Known(origin, adoption)) => {
                if is_indexed {
                    self.compare_index(disk, layout, name, &found, mentions);
                }
                self.base_before(disk, layout, *origin, adoption)
            }
        }
    }

    /// An archive that cannot be read. Where it only may not be, or is no file, it is as good as not there.
    fn unread(&mut self, name: &str, fault: &io::Error) -> Before {
        if let Some(reason) = damage_in(fault) {
            return self.hurt(name, reason);
        }
        if fault.kind() == io::ErrorKind::NotFound {
            self.notes.push(format!("history unavailable: {name} is not there"));
        } else if is_of_this_file(fault) {
            self.notes
                .push(format!("history unavailable: {name} cannot be read: {fault}"));
        } else {
            return self.hurt(name, format!("it cannot be read: {fault}"));
        }
        Before::End
    }

    /// An index is believed by its own digest, which whoever forges one computes too.
    fn compare_index(&mut self, disk: &dyn Disk, layout: &Layout, archive: &str, sha256: &Hex, mentions: Mentions) {
        let path = layout.history_index(archive);
        let name = index_name(&path);
        match is_forged(disk, &path, sha256, mentions) {
            Ok(false) => {}
            Ok(true) => self.altered.push(finding(
                &name,
                DamageKind::IndexAltered,
                "it does not say which events of the archive speak of which record",
            )),
            Err(fault) => self.notes.push(format!("index not compared: {name}: {fault}")),
        }
    }

    fn look_inside(
        &mut self,
        (name, archive): (&str, &archive::Archive),
        sentinel: &Sentinel,
        threads: usize,
        sink: &mut dyn Sink,
    ) -> io::Result<ArchiveBeginning> {
        let log = &*archive.log;
        let length = log.length()?;
        let reading = Reading {
            trusted_until: 0,
            threads,
        };
        let mut walk = Walk::new(None);
        walk.go(log, length, reading, sink, &mut |_, _| {})?;
        if let Some(first) = walk.follower.damage.iter().min_by_key(|damage| damage.offset) {
            self.damage.push(Damage {
                path: name.to_owned(),
                kind: DamageKind::ArchiveAltered,
                ..first.clone()
            });
            return Ok(ArchiveBeginning::Damaged);
        }
        let head = walk.mark().head;
        if head.is_none_or(|head| head.text() != sentinel.previous_head) {
            self.hurt(name, "it does not end with the event that the log names");
            return Ok(ArchiveBeginning::Damaged);
        }
        let origin = origin_of(log, length)?;
        let adoption = match origin {
            Origin::Foreign => foreign_traces(log, length, u64::MAX, Hint::None)?.adoption,
            _ => None,
        };
        Ok(ArchiveBeginning::Known(Box::new(origin), adoption))
    }

    fn base_before(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        origin: Origin,
        adoption: Option<Adoption>,
    ) -> io::Result<Before> {
        match origin {
            Origin::Ours(earlier) => {
                self.earlier_base(disk, layout, earlier.base_sha256)?;
                Ok(Before::Sentinel(earlier))
            }
            Origin::Foreign => {
                self.earlier_base(disk, layout, adoption.map(|adoption| adoption.base_sha256))?;
                Ok(Before::End)
            }
            Origin::Nothing => Ok(Before::End),
        }
    }

    /// The base that an archived segment started from: without it the segment says less, a different one is damage.
    fn earlier_base(&mut self, disk: &dyn Disk, layout: &Layout, sha256: Option<Hex>) -> io::Result<()> {
        let Some(sha256) = sha256 else {
            return Ok(());
        };
        let name = base_name(sha256.text());
        match open_inside(disk, layout, &name).map_err(|fault| NamedFault::apart(fault).1) {
            Err(fault) if is_of_this_file(&fault) => {
                let note = format!("history unavailable: {name} cannot be read: {fault}");
                self.notes.push(note);
            }
            Err(fault) => return Err(fault).naming(&layout.inside(&name)),
            Ok(None) => self.notes.push(format!("history unavailable: {name} is not there")),
            Ok(Some(file)) if snapshot::digest(&*file).naming(&layout.inside(&name))? != sha256 => {
                let reason = "it is not the base that an archived segment started from";
                self.damage.push(finding(&name, DamageKind::BaseAltered, reason));
            }
            Ok(Some(_)) => {}
        }
        Ok(())
    }
}
