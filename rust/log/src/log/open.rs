//! What is known of an open log: its file, how far it was read, what it starts from, and whether it is still there.

use std::io;
use std::sync::{Arc, OnceLock};

use super::path_look::PathLook;
use super::site::Site;
use crate::chain::ChainMark;
use crate::damage::{Damage, DamageKind, Tail};
use crate::digest::{Hex, sha256};
use crate::disk::{Access, DiskFile, Identity, read_upto};
use crate::error::{At, Error, Result};
use crate::hint::{Hint, Synced, first_line, hint_for, line_before, names_hash, origin_hash, read_hint};
use crate::layout::LOG;
use crate::origin::Origin;
use crate::remembered::{self, HeadStanding, SeenHead};
use crate::trail::Trail;
use crate::verify::{Sink, Walk, finding};
use crate::wal::reader::Reading;
use crate::wal::writer::{ChainEnd, Lines};

/// A larger tail is read anew at every look.
const LARGEST_TAIL_BYTES: u64 = 64 * 1024 * 1024;
/// At most so many blank lines are skipped at the end of a log.
const MOST_BLANK_LINES: usize = 1000;

/// A pending tail by its digest: an unchanged one is not loaded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailSeen {
    log: Identity,
    start: u64,
    digest: Hex,
}

/// A place that a log had come to.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Which file it was.
    pub identity: Identity,
    /// Where it ended.
    pub end: u64,
    /// Its head there.
    pub head: Option<Hex>,
}

/// A log that is open.
pub struct OpenLog {
    /// Where it is read from, and written to once that is allowed.
    pub file: Arc<dyn DiskFile>,
    /// Which file that is.
    pub identity: Identity,
    /// How far it was read.
    pub walk: Walk,
    /// What it starts from.
    pub origin: Origin,
    /// The handle writes.
    pub(super) writable: bool,
    /// Whether the hint about the last sync speaks of this log, so that a torn write is known for a tail.
    pub(super) anchored: bool,
    /// The last look of a reader at its path.
    pub(super) path_look: PathLook,
    /// The hash of the first event, once it was asked for.
    first: OnceLock<[u8; 32]>,
}

impl OpenLog {
    /// A log whose handle only reads.
    pub fn reading(file: Arc<dyn DiskFile>, walk: Walk, origin: Origin) -> io::Result<Self> {
        Ok(Self {
            identity: file.identity()?,
            file,
            walk,
            origin,
            writable: false,
            anchored: false,
            path_look: PathLook::default(),
            first: OnceLock::new(),
        })
    }

    /// A log whose handle writes.
    pub fn writing(file: Arc<dyn DiskFile>, walk: Walk, origin: Origin) -> io::Result<Self> {
        Ok(Self {
            writable: true,
            ..Self::reading(file, walk, origin)?
        })
    }

    /// The same, if the hint about the last sync speaks of it.
    #[must_use]
    pub fn anchored(self, anchored: bool) -> Self {
        Self { anchored, ..self }
    }

    /// How far the chain has come.
    pub fn mark(&self) -> &ChainMark {
        self.walk.mark()
    }

    /// The hash of the first event, by which a log is known.
    pub fn origin_hash(&self) -> Option<[u8; 32]> {
        let known = self.first.get().copied();
        let hash = known.or_else(|| origin_hash(&*self.file, self.walk.end))?;
        Some(*self.first.get_or_init(|| hash))
    }

    /// Where the log has come to.
    pub fn passing(&self) -> Passed {
        Passed {
            identity: self.identity,
            end: self.walk.end,
            head: self.mark().head,
        }
    }

    /// Whether it is the log that had come to a place, and goes on from there.
    pub fn goes_on_from(&self, place: &Passed) -> bool {
        let last = last_said(&*self.file, place.end).ok().flatten();
        self.identity == place.identity
            && self.walk.end >= place.end
            && last.is_some_and(|line| place.head.is_some_and(|head| names_hash(&line, &head)))
    }

    /// Where the log ends now, as in the hint; `None` before the first event.
    pub fn reached(&self) -> Option<Synced> {
        let mark = self.mark();
        // A hint before lines that could not be loaded would make a tail of them.
        if mark.gap {
            return None;
        }
        Some(Synced {
            offset: mark.end,
            seq: mark.last_seq,
            first: mark.first?,
            head: mark.head?,
        })
    }

    /// The same of its first event.
    pub fn first_head(&self) -> io::Result<Option<Synced>> {
        let mark = self.mark();
        let line = first_line(&*self.file, mark.end)?;
        let Some(((line, first), seq)) = line.zip(mark.first).zip(mark.first_seq) else {
            return Ok(None);
        };
        Ok(Some(Synced {
            offset: line.len() as u64 + 1,
            seq,
            first,
            head: first,
        }))
    }

    /// The same with the trail up to there: what is noted outside.
    pub fn seen_head(&self) -> Option<SeenHead> {
        Some(SeenHead {
            at: self.reached()?,
            trail: self.walk.trail(),
        })
    }

    /// The trail for the next lines. A log without any event begins it with them.
    pub(super) fn trail_behind(&self, link: &ChainEnd) -> Option<Trail> {
        match self.mark().first {
            Some(_) => self.walk.follower.trail.clone(),
            None => Some(Trail::new(link.next_seq)),
        }
    }

    /// The end of the chain, for the next writer.
    pub fn link(&self) -> ChainEnd {
        ChainEnd {
            head: self.mark().head,
            next_seq: self.mark().last_seq.max(self.walk.follower.claimed) + 1,
        }
    }

    /// Whether the file became shorter than what was read of it.
    pub fn is_cut(&self) -> bool {
        self.file.length().is_ok_and(|length| length < self.mark().end)
    }

    /// Whether all that was read counts.
    pub fn is_whole(&self) -> bool {
        self.walk.follower.damage.is_empty() && self.walk.follower.tail.is_none()
    }

    /// Whether the last known event is still where it was.
    pub fn knows_its_end(&self) -> io::Result<bool> {
        let Some(known) = self.reached() else {
            return Ok(true);
        };
        let line = line_before(&*self.file, known.offset)?;
        Ok(line.is_some_and(|line| known.fits_head(&line)))
    }

    /// Shows what was appended, up to the length of the log; gives the tail that does not count.
    pub fn go_on(&mut self, length: u64, threads: usize, sink: &mut dyn Sink) -> io::Result<Option<Tail>> {
        if length < self.walk.end {
            return Ok(Some(Tail {
                offset: length,
                length: 0,
                reason: "the log became shorter".to_owned(),
                events: 0,
            }));
        }
        self.walk.go(&*self.file, length, Reading::new(threads), sink)
    }

    /// What the bytes behind the committed end look like, if they can be looked at.
    pub fn look_at_tail(&self) -> io::Result<Option<TailSeen>> {
        let (start, end) = (self.walk.end, self.file.length()?);
        if end.saturating_sub(start) > LARGEST_TAIL_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        read_upto(&*self.file, &mut bytes, start, (end - start) as usize)?;
        Ok(Some(TailSeen {
            log: self.identity,
            start,
            digest: sha256(&bytes),
        }))
    }

    /// Takes note of lines that were put behind the others.
    pub(super) fn advance(&mut self, lines: &Lines, now: i64) {
        let count = lines.starts.len() as u64;
        self.walk.latest = self.walk.latest.max(now);
        self.walk.lines += count;
        self.walk.end += lines.bytes.len() as u64;
        if self.walk.follower.has_trail {
            self.walk.follower.trail.clone_from(&lines.trail);
        }
        let mark = &mut self.walk.follower.mark;
        mark.head = lines.link.head;
        mark.first = mark.first.or_else(|| first_hash(lines));
        mark.first_seq.get_or_insert(lines.link.next_seq - count);
        mark.last_seq = lines.link.next_seq - 1;
        mark.highest_seq = mark.highest_seq.max(mark.last_seq);
        mark.events += count;
        (mark.end, mark.gap) = (self.walk.end, false);
    }
}

/// How far a log reaches that holds these lines and nothing else.
pub(super) fn reached_by(lines: &Lines) -> Option<Synced> {
    Some(Synced {
        offset: lines.bytes.len() as u64,
        seq: lines.link.next_seq - 1,
        first: first_hash(lines)?,
        head: lines.link.head?,
    })
}

/// The hash of the first of some lines.
pub(super) fn first_hash(lines: &Lines) -> Option<Hex> {
    lines.bytes.get(9..73).and_then(Hex::read)
}

/// The last line before a place that is not blank.
fn last_said(log: &dyn DiskFile, mut end: u64) -> io::Result<Option<Vec<u8>>> {
    for _ in 0..MOST_BLANK_LINES {
        let line = line_before(log, end)?;
        match &line {
            Some(blank) if blank.iter().all(u8::is_ascii_whitespace) => end -= blank.len() as u64 + 1,
            _ => return Ok(line),
        }
    }
    Ok(None)
}

/// Whether what is at the path of a log does not follow from what is known of it.
pub(super) fn is_missed(site: &Site, known: &Synced) -> Result<bool> {
    let standing = remembered::standing_to(&*site.disk, &site.layout, &(*known).into()).at(site.log())?;
    Ok(matches!(standing, HeadStanding::Lost(_)))
}

/// Refuses to begin another log after the folder of the one that was read was moved or removed.
pub(super) fn check_kept(site: &Site, open: Option<&OpenLog>) -> Result<()> {
    match open.and_then(OpenLog::reached) {
        Some(known) if is_missed(site, &known)? => Err(gone(site, &known)),
        _ => Ok(()),
    }
}

/// Whether the missing end was taken back by a failed writer: neither synced, nor before `own_end`.
pub(super) fn was_never_promised(site: &Site, open: &OpenLog, own_end: u64) -> Result<bool> {
    let path = site.log();
    let Ok(now) = site.disk.status(path) else {
        return Ok(false);
    };
    let Some(first) = open.mark().first else {
        return Ok(false);
    };
    let synced = read_hint(&*site.disk, &site.layout).at(&site.layout.synced())?;
    let of_this_log = synced.filter(|synced| synced.first == first);
    let hint = hint_for(of_this_log, &*open.file, now.length).at(path)?;
    let is_kept = match of_this_log {
        Some(_) => matches!(hint, Hint::Synced(_)),
        None => first_line(&*open.file, now.length)
            .at(path)?
            .is_some_and(|line| names_hash(&line, &first)),
    };
    let is_cut = now.length < open.mark().end;
    Ok(is_cut && is_kept && now.identity == open.identity && now.length >= own_end)
}

/// The error for a log that is gone, which was known up to some event.
pub fn gone(site: &Site, known: &Synced) -> Error {
    let how = match site.disk.open(site.log(), Access::Read) {
        Err(_) => "it is not there any more",
        Ok(file) if file.length().is_ok_and(|length| length == 0) => "it was emptied",
        Ok(_) => "it was cut, or another was put in its place",
    };
    let reason = format!("{how}: this store knows it up to event {}", known.seq);
    Error::Corrupted(Box::new(Damage {
        seq: Some(known.seq),
        ..finding(LOG, DamageKind::LogMissing, reason)
    }))
}
