//! Keeps the note outside the project in step with the head of the log.
//!
//! INVARIANT: the log at its path holds the head in the note, or was announced there before it came. So a note that does not
//! fit an unchanged log shows a loss, and a note is only replaced by a head that follows from it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::Hex;
use crate::disk::{Access, Disk, FolderMode};
use crate::error::{At, Result};
use crate::hint::{Hint, Synced, hint_for, read_hint};
use crate::layout::Layout;
use crate::remembered::{self, HeadStanding, Note, SeenHead};
use crate::trail::TrailEnd;
use crate::wal::writer::Lines;

use super::open::{OpenLog, reached_by};
use super::site::Site;

/// A writer notes its head no more often than this, in microseconds.
const PAUSE_MICROS: i64 = 1_000_000;
/// How often a note and a log that others keep replacing are looked at: a look takes far less than a compaction.
const MOST_LOOKS: usize = 100;

/// The note about the head of an open log.
pub struct HeadNote {
    site: Arc<Site>,
    /// Where it is; `None` if no head is noted.
    pub file: Option<PathBuf>,
    /// How the log stood to the note when it was read.
    pub standing: HeadStanding,
    /// When a head was noted last.
    told: i64,
    /// A head was reached since that is to be noted later.
    pub is_owed: bool,
    /// Why the last head could not be noted.
    pub fault: Option<String>,
}

impl HeadNote {
    /// A note that was not looked at yet.
    pub fn new(site: Arc<Site>, file: Option<PathBuf>) -> Self {
        Self {
            site,
            file,
            standing: HeadStanding::Unseen,
            told: i64::MIN,
            is_owed: false,
            fault: None,
        }
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.file.as_ref().is_some_and(|note| self.site.disk.exists(note))
    }

    /// Whether the note is about the log at its path, which begins like the one that was read: a restore put it there.
    pub fn tells_of_another(&self, read: &OpenLog) -> bool {
        let Some(note) = &self.file else {
            return false;
        };
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let Ok(Some(says)) = remembered::read(disk, note) else {
            return false;
        };
        let is_here = matches!(remembered::standing(disk, layout, Some(&says)), Ok(HeadStanding::Kept));
        let of_this = || hint_for(Some(says.seen.at), &*read.file, read.file.length()?);
        let begins_alike = || {
            let first = read.first_head().ok().flatten()?;
            Some(remembered::standing_to(disk, layout, &first.into()).ok()? == HeadStanding::Kept)
        };
        let is_of_other = || matches!(of_this(), Ok(Hint::None | Hint::Contradicted(_)));
        is_here && says.next.is_none() && is_of_other() && begins_alike() == Some(true)
    }

    /// Compares the log with the note again.
    pub fn find_standing(&mut self) -> Result<()> {
        if let Some(note) = &self.file {
            self.standing = standing_of(&*self.site.disk, &self.site.layout, note)?;
        }
        Ok(())
    }

    /// Notes a synced head at most once a second. The clock may be set back, and stamps may be years ahead.
    pub fn tell_now_and_then(&mut self, reached: &SeenHead, now: i64) {
        if (0..PAUSE_MICROS).contains(&now.saturating_sub(self.told)) {
            self.is_owed = self.file.is_some();
        } else {
            self.told = now;
            self.tell(reached);
        }
    }

    /// Under the lock: notes a head of the log at its path, if it follows from the one that was noted last.
    pub fn tell(&mut self, reached: &SeenHead) {
        self.replace(|_| Ok(Some(*reached)));
    }

    /// Notes how far the log is known to be synced; `own` is the head that was read here, with its trail.
    pub fn tell_known(&mut self, is_locked: bool, own: Option<SeenHead>) {
        let site = Arc::clone(&self.site);
        let with_trail = |known: Synced| own.filter(|own| own.at == known).unwrap_or_else(|| known.into());
        self.replace(|says| {
            let known = known_head(&*site.disk, &site.layout, says.filter(|_| !is_locked))?;
            Ok(known.map(with_trail))
        });
    }

    fn replace(&mut self, find: impl FnOnce(Option<&Note>) -> io::Result<Option<SeenHead>>) {
        self.is_owed = false;
        let Some(note) = &self.file else {
            return;
        };
        match note_head(&*self.site.disk, &self.site.layout, note, find) {
            Ok(standing) => {
                self.fault = None;
                self.standing = standing.unwrap_or_else(|| self.standing.clone());
            }
            // The log is not affected; reports name the fault.
            Err(fault) => {
                self.fault = Some(format!("the head could not be remembered: {}: {fault}", note.display()));
            }
        }
    }

    /// Under the lock: takes the head of the log, or that there is none, for the right one.
    pub fn accept(&mut self, reached: Option<SeenHead>) -> Result<()> {
        let Some(note) = &self.file else {
            return Ok(());
        };
        let (disk, folder) = (&*self.site.disk, self.site.layout.folder());
        remembered::alone(disk, note, || match reached {
            Some(reached) => remembered::write(disk, note, folder, &Note::of(reached)),
            None if disk.exists(note) => disk.remove(note),
            None => Ok(()),
        })
        .at(note)?;
        self.find_standing()
    }

    /// Under the lock: announces a log that will replace this one; a loss that is known now is put down.
    pub fn announce(&self, next: Option<Synced>) -> Result<()> {
        let (Some(note), Some(next)) = (&self.file, next) else {
            return Ok(());
        };
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        if !disk.exists(note) {
            return Ok(());
        }
        let announce = || {
            let Some(says) = remembered::read(disk, note)? else {
                return Ok(());
            };
            let says = match remembered::standing(disk, layout, Some(&says))? {
                HeadStanding::Kept => Note {
                    // The announced log came and its head was not noted: it is the one that is replaced now.
                    seen: match says.next {
                        Some(came) if remembered::standing_to(disk, layout, &came)? == HeadStanding::Kept => came,
                        _ => says.seen,
                    },
                    next: Some(next.into()),
                    lost: None,
                },
                HeadStanding::Lost(reason) => Note {
                    next: None,
                    lost: Some(reason),
                    ..says
                },
                _ => return Ok(()),
            };
            remembered::write(disk, note, layout.folder(), &says)
        };
        match remembered::alone(disk, note, announce) {
            // A note that cannot be read stays as it is, and every look reports it.
            Err(fault) if fault.kind() == io::ErrorKind::InvalidData => Ok(()),
            outcome => outcome.at(note),
        }
    }

    /// The same for a log that these lines begin. That it could not be announced is no reason not to write it.
    pub fn announce_log(&mut self, lines: &Lines) {
        if let Err(fault) = self.announce(reached_by(lines)) {
            self.fault = Some(format!("the head could not be remembered: {fault}"));
        }
    }
}

/// Compares a store with a remembered head. A loss is believed only if log and note were not replaced meanwhile.
pub fn standing_of(disk: &dyn Disk, layout: &Layout, note: &Path) -> Result<HeadStanding> {
    let log = || disk.status(layout.log()).ok().map(|now| now.identity);
    for _ in 0..MOST_LOOKS {
        let says = match remembered::read(disk, note) {
            Ok(says) => says,
            Err(fault) => return Ok(unreadable(note, &fault)),
        };
        let before = log();
        let verdict = remembered::standing(disk, layout, says.as_ref()).at(layout.log())?;
        let is_quiet = || log() == before && remembered::read(disk, note).is_ok_and(|now| now == says);
        if matches!(verdict, HeadStanding::Unseen | HeadStanding::Kept) || is_quiet() {
            return Ok(verdict);
        }
    }
    let reason = "log and note keep being replaced: no quiet look at them";
    Ok(HeadStanding::Unknown(reason.to_owned()))
}

/// Notes how far a log is synced, without opening it; `read` is the head that was found, with its trail.
pub fn note_known_head(disk: &dyn Disk, layout: &Layout, note: &Path, read: Option<(Hex, TrailEnd)>) -> Result<()> {
    disk.guard(layout.folder(), FolderMode::default());
    if !disk.exists(layout.lock()) {
        return Ok(());
    }
    let noted = note_head(disk, layout, note, |says| {
        let trail = |known: &Synced| read.filter(|(head, _)| *head == known.head).map(|(_, trail)| trail);
        let known = known_head(disk, layout, says)?;
        Ok(known.map(|at| SeenHead { trail: trail(&at), at }))
    });
    noted.map(|_| ()).at(note)
}

/// Replaces a note by the head that `find` gives, if it follows; gives the standing of the log.
fn note_head(
    disk: &dyn Disk,
    layout: &Layout,
    note: &Path,
    find: impl FnOnce(Option<&Note>) -> io::Result<Option<SeenHead>>,
) -> io::Result<Option<HeadStanding>> {
    remembered::alone(disk, note, || {
        let says = match remembered::read(disk, note) {
            Ok(says) => says,
            // What cannot be read is no note that may be replaced.
            Err(fault) if fault.kind() == io::ErrorKind::InvalidData => return Ok(Some(unreadable(note, &fault))),
            Err(fault) => return Err(fault),
        };
        let Some(reached) = find(says.as_ref())? else {
            return Ok(None);
        };
        let log = disk.open(layout.log(), Access::Read)?;
        // Where blank or damaged lines stand behind the last event, no place names it: a note would be an alarm later.
        if !matches!(hint_for(Some(reached.at), &*log, log.length()?)?, Hint::Synced(_)) {
            return Ok(None);
        }
        let standing = remembered::standing(disk, layout, says.as_ref())?;
        if !matches!(standing, HeadStanding::Unseen | HeadStanding::Kept) {
            return Ok(Some(standing));
        }
        // A note that knows the trail proves more than one that is newer and does not.
        let is_known = |seen: &SeenHead| {
            let is_reached = seen.at.first == reached.at.first && seen.at.offset >= reached.at.offset;
            match (seen.trail, reached.trail) {
                (Some(_), None) => true,
                (None, Some(_)) => is_reached && seen.at != reached.at,
                _ => is_reached,
            }
        };
        if !says.is_some_and(|says| says == Note::of(says.seen) && is_known(&says.seen)) {
            remembered::write(disk, note, layout.folder(), &Note::of(reached))?;
        }
        Ok(Some(HeadStanding::Kept))
    })
}

/// Up to where the log at its path is known to be on disk. Without the lock `says` is the note: one with an announcement is left
/// alone, because a restore is under way.
fn known_head(disk: &dyn Disk, layout: &Layout, says: Option<&Note>) -> io::Result<Option<Synced>> {
    if says.is_some_and(|says| says.next.is_some()) {
        return Ok(None);
    }
    let known = read_hint(disk, layout)?;
    let log = disk.open(layout.log(), Access::Read)?;
    let fits = matches!(hint_for(known, &*log, log.length()?)?, Hint::Synced(_));
    let is_here = disk.status(layout.log())?.identity == log.identity()?;
    Ok(known.filter(|_| fits && is_here))
}

/// A note that cannot be read, and may not be replaced.
fn unreadable(note: &Path, fault: &io::Error) -> HeadStanding {
    HeadStanding::Unreadable(format!(
        "the note about the last head, {}, cannot be read: {fault}",
        note.display()
    ))
}
