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

/// The note about the head of a log, as one who has the log open keeps it.
pub struct HeadNote {
    site: Arc<Site>,
    /// Where it is; `None` if nobody asks for it.
    file: Option<PathBuf>,
    standing: HeadStanding,
    /// When a head was noted last.
    told: i64,
    /// Whether one was reached since that is to be noted later.
    owed: bool,
    /// Why it could not be.
    fault: Option<String>,
}

impl HeadNote {
    /// A note that was not looked at yet.
    pub fn new(site: Arc<Site>, file: Option<PathBuf>) -> Self {
        Self {
            site,
            file,
            standing: HeadStanding::Unseen,
            told: i64::MIN,
            owed: false,
            fault: None,
        }
    }

    /// How the log stood to the note when it was read.
    pub fn standing(&self) -> &HeadStanding {
        &self.standing
    }

    /// Why the head could not be noted when it was tried last.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Whether anybody asks for one.
    pub fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a head was reached that is not noted yet. Nobody may sync again for long, so somebody has to come back for it.
    pub fn is_owed(&self) -> bool {
        self.owed
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.file.as_ref().is_some_and(|note| self.site.disk.exists(note))
    }

    /// Whether the note is about another log, which is at its path and begins like the one that was read: so a restore put it
    /// there. Where the whole folder was replaced the beginning differs.
    pub fn tells_of_another(&self, read: &OpenLog) -> bool {
        let Some(note) = &self.file else {
            return false;
        };
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let Ok(Some(says)) = remembered::read(disk, note) else {
            return false;
        };
        let is_here = matches!(remembered::standing(disk, layout, Some(&says)), Ok(HeadStanding::Kept));
        let is_of_this = || {
            let length = read.file.length()?;
            Ok::<_, io::Error>(matches!(
                hint_for(Some(says.seen.at), &*read.file, length)?,
                Hint::Synced(_)
            ))
        };
        let begins_alike = || {
            let first = read.first_head().ok().flatten()?;
            Some(remembered::standing_to(disk, layout, &first.into()).ok()? == HeadStanding::Kept)
        };
        is_here && says.next.is_none() && matches!(is_of_this(), Ok(false)) && begins_alike() == Some(true)
    }

    /// Looks again how the log stands to the note.
    pub fn find_standing(&mut self) -> Result<()> {
        if let Some(note) = &self.file {
            self.standing = standing_of(&*self.site.disk, &self.site.layout, note)?;
        }
        Ok(())
    }

    /// Notes a synced head at most once a second. The clock may be set back, and stamps may be years ahead.
    pub fn tell_now_and_then(&mut self, reached: &SeenHead, now: i64) {
        if (0..PAUSE_MICROS).contains(&now.saturating_sub(self.told)) {
            self.owed = self.is_kept();
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
        if is_locked {
            self.replace(|_| Ok(known_head(&*site.disk, &site.layout)?.map(with_trail)));
        } else {
            self.replace(|says| {
                let known = known_head_unless_announced(&*site.disk, &site.layout, says)?;
                Ok(known.map(with_trail))
            });
        }
    }

    fn replace(&mut self, find: impl FnOnce(Option<&Note>) -> io::Result<Option<SeenHead>>) {
        self.owed = false;
        let Some(note) = &self.file else {
            return;
        };
        match note_head(&*self.site.disk, &self.site.layout, note, find) {
            Ok(standing) => {
                self.fault = None;
                self.standing = standing.unwrap_or_else(|| self.standing.clone());
            }
            // The log is none the worse; whoever asks is told that nobody can tell.
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
                    // An announced log that came, and whose head nobody noted, is the one that is replaced now.
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
            // What cannot be read stays as it is, and is told at every look.
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
        let known = known_head_unless_announced(disk, layout, says)?;
        Ok(known.map(|at| SeenHead { trail: trail(&at), at }))
    });
    noted.map(|_| ()).at(note)
}

/// Replaces a note by the head that `find` gives, if it follows; gives how the log stands to the note then.
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

/// Up to where the log at its path is known to be on disk.
fn known_head(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Synced>> {
    let known = read_hint(disk, layout)?;
    let log = disk.open(layout.log(), Access::Read)?;
    let fits = matches!(hint_for(known, &*log, log.length()?)?, Hint::Synced(_));
    let is_here = disk.status(layout.log())?.identity == log.identity()?;
    Ok(known.filter(|_| fits && is_here))
}

/// The same without the lock. A note with an announcement is left alone: a restore is under way.
fn known_head_unless_announced(disk: &dyn Disk, layout: &Layout, says: Option<&Note>) -> io::Result<Option<Synced>> {
    match says {
        Some(Note { next: Some(_), .. }) => Ok(None),
        _ => known_head(disk, layout),
    }
}

/// A note that cannot be read, and may not be replaced.
fn unreadable(note: &Path, fault: &io::Error) -> HeadStanding {
    HeadStanding::Unreadable(format!(
        "the note about the last head, {}, cannot be read: {fault}",
        note.display()
    ))
}
