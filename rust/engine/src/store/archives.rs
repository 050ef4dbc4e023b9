//! Are the archives those that the log names?

use std::io;

use crate::archive::{self, damage_in};
use crate::damage::{Damage, DamageKind};
use crate::digest::Hex;
use crate::disk::Disk;
use crate::layout::{Layout, base_name};
use crate::origin::{Origin, Sentinel, foreign_traces, origin_of};
use crate::snapshot;
use crate::verify::{Walk, finding};
use crate::wal::reader::Reading;

use super::load::open;
use super::loader::Loader;

/// What was found in the archives.
#[derive(Default)]
pub(super) struct Past {
    /// What is wrong.
    pub damage: Vec<Damage>,
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
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                self.notes.push(format!("history unavailable: {name} is not there"));
                return Ok(Before::End);
            }
            Err(fault) => return Err(fault),
        };
        let found = snapshot::digest(&*archive.packed)?;
        if found.text() != digest {
            return Ok(self.hurt(name, format!("its SHA-256 is {}", found.text())));
        }
        match self.look_inside(disk, layout, (name, &archive), sentinel, threads) {
            Err(fault) => match damage_in(&fault) {
                Some(reason) => Ok(self.hurt(name, reason)),
                None => Err(fault),
            },
            found => found,
        }
    }

    fn look_inside(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        (name, archive): (&str, &archive::Archive),
        sentinel: &Sentinel,
        threads: usize,
    ) -> io::Result<Before> {
        let log = &*archive.log;
        let length = log.length()?;
        let reading = Reading {
            trusted_until: 0,
            threads,
        };
        let mut walk = Walk::new(None);
        walk.go(log, length, reading, &mut Loader::checking(), &mut |_, _| {})?;
        if let Some(first) = walk.follower.damage.iter().min_by_key(|damage| damage.offset) {
            self.damage.push(Damage {
                path: name.to_owned(),
                kind: DamageKind::ArchiveAltered,
                ..first.clone()
            });
            return Ok(Before::End);
        }
        let head = walk.mark().head;
        if head.is_none_or(|head| head.text() != sentinel.previous_head) {
            return Ok(self.hurt(name, "it does not end with the event that the log names"));
        }
        match origin_of(log, length)? {
            Origin::Ours(earlier) => {
                self.earlier_base(disk, layout, earlier.base_sha256)?;
                Ok(Before::Sentinel(earlier))
            }
            Origin::Foreign => {
                let adoption = foreign_traces(log, length, u64::MAX, None)?.adoption;
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
        match open(disk, layout, &name)? {
            None => self.notes.push(format!("history unavailable: {name} is not there")),
            Some(file) if snapshot::digest(&*file)? != sha256 => {
                let reason = "it is not the base that an archived segment started from";
                self.damage.push(finding(&name, DamageKind::BaseAltered, reason));
            }
            Some(_) => {}
        }
        Ok(())
    }
}
