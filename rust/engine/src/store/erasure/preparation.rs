//! Does the part of an erasure that needs no lock: chooses, searches, and writes the files of the past anew.
//!
//! What goes is chosen and looked for; the files of the past are written anew, those of the present begun. Under the lock
//! only the rest is left, unless what was appended meanwhile changes what goes: then all of it begins anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::options::Options;
use chronolog::disk::DiskFile;
use chronolog::error::{At, Result};
use chronolog::log::{Passed, Progress, Site};
use chronomemory_state::state::Frozen;

use super::copies::{SearchedQuarantine, Unwanted, backups_holding};
use super::mentions::mentions;
use super::order::{Erase, Erased};
use super::reach::StoreAccess;
use super::redact::Redacted;
use super::rewrite::Rewriting;
use super::rows::Leaving;
use super::survey::{FoundToErase, UnreadableCopy};
use super::surveyed::Surveyed;
use crate::store::Store;
use crate::store::upkeep::compact::REST_BYTES;
use crate::store::upkeep::compact_rows::Moving;
use crate::store::upkeep::new_files::NewFiles;

/// What became of something that was prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// What was appended changes what goes, or the log is another one: all has to begin anew.
    Upset,
    /// Much was appended, and is to be written next.
    Much,
    /// So little is left that the end can take it.
    Little,
}

/// An erasure that is being prepared while others go on.
pub(super) struct Preparing<'a> {
    pub site: &'a Arc<Site>,
    pub options: &'a Options,
    /// What is asked for, as it was meant when it was chosen.
    pub order: &'a Erase,
    pub what: Surveyed,
    pub past: Rewriting<'a>,
    backups: Vec<String>,
    aside: SearchedQuarantine,
    unread: Vec<String>,
    /// Who spoke of what goes when the log ended at a place.
    mentions: BTreeSet<String>,
    mentioned_at: u64,
    /// The files of the past that go if no history is kept.
    pub dropped: Vec<String>,
    /// The live log without the lines that go, if it is kept.
    pub view: Option<Redacted>,
    pub files: Option<NewFiles>,
    pub spaces: Vec<Moving>,
}

impl<'a> Preparing<'a> {
    /// Writes the files of the past anew, or only counts; nothing speaks of any of them yet.
    ///
    /// # Errors
    /// `Busy` if the base of the log is not there, `Io`, `OutOfMemory`.
    pub fn rewrite(
        reach: &impl StoreAccess,
        (site, options): (&'a Arc<Site>, &'a Options),
        order: &'a Erase,
        (what, bases): (Surveyed, &'a FoundToErase),
        progress: Progress<'_>,
    ) -> Result<Self> {
        let threads = options.threads;
        let doomed = Arc::new(what.chosen.doomed.clone());
        let found = (bases, &what.live.lines);
        let mut past = Rewriting::new(site, &doomed, options.salts(), threads, order, found);
        let total = what.segments.len() as u64 + 1;
        for (done, (segment, lines)) in what.segments.iter().zip(&bases.retired).enumerate() {
            past.retired(segment, lines)?;
            progress(done as u64 + 1, total);
        }
        past.live(&what.start, &*what.log, what.until.end, &what.live.lines)?;
        let mut backups = backups_holding(site, &what.chosen, UnreadableCopy::Counts, threads)?;
        let mut aside = SearchedQuarantine::default();
        aside.look(site, &what.unwanted(order), threads)?;
        let mut unread = Vec::new();
        if past.lines == 0 && past.files == 0 && !(backups.is_empty() && aside.holding.is_empty()) {
            // The log knows nothing of it. Only what is known to hold it is a reason to erase anything: what cannot be read to its
            // end, and what would go with a history that is dropped, is none.
            let held = Unwanted {
                drops_history: false,
                doubt: UnreadableCopy::Passes,
                ..what.unwanted(order)
            };
            let mut asked = SearchedQuarantine::default();
            asked.look(site, &held, threads)?;
            if asked.holding.is_empty()
                && backups_holding(site, &what.chosen, UnreadableCopy::Passes, threads)?.is_empty()
            {
                unread.append(&mut backups);
                unread.append(&mut aside.holding);
            }
        }
        let mentions = reach.look(|store| Ok(mentions(&what.chosen, &store.state)))?;
        Ok(Self {
            site,
            options,
            order,
            past,
            backups,
            aside,
            unread,
            mentions,
            mentioned_at: what.until.end,
            dropped: what.past_files(site),
            what,
            view: None,
            files: None,
            spaces: Vec::new(),
        })
    }

    /// Whether there is anything to do.
    pub fn is_needed(&self) -> bool {
        let is_said = self.past.lines > 0 || self.past.files > 0;
        is_said || !self.backups.is_empty() || !self.aside.holding.is_empty()
    }

    /// What is done, or would be.
    pub fn told(&mut self) -> Erased {
        let (ids, belonging) = self.what.chosen.told();
        let past = &mut self.past;
        Erased {
            ids,
            belonging,
            mentions: self.mentions.iter().cloned().collect(),
            lines: past.lines,
            unsalted: past.unsalted,
            by_log: std::mem::take(&mut past.by_log),
            replaced: match self.order.drop_history {
                true if past.lines > 0 => self.dropped.len() as u64,
                _ => past.files,
            },
            backups: std::mem::take(&mut self.backups),
            quarantine: std::mem::take(&mut self.aside.holding),
            unread: std::mem::take(&mut self.unread),
            ..Erased::default()
        }
    }

    /// What was appended to the log changes nothing of what goes, up to a place; these records were changed by it.
    fn go_on(&mut self, until: Passed, changed: Option<Frozen>) -> Result<bool> {
        let since = self.what.until.end;
        let Surveyed {
            chosen,
            live,
            log,
            until: reached,
            ..
        } = &mut self.what;
        let before = live.lines.hits.len();
        let path = self.site.log();
        if live
            .go_on(&**log, until.end, chosen, self.past.replay.as_mut())
            .at(path)?
        {
            return Ok(false);
        }
        let more = &live.lines.hits[before..];
        self.past.more(&**log, until.end, more)?;
        *reached = until;
        let Some(files) = &mut self.files else {
            return Ok(true);
        };
        let changed = match self.past.kept() {
            Some(kept) => Some(kept.freeze_since(since)?),
            None => changed,
        };
        if let Some(changed) = changed {
            files.take(changed);
        }
        if let Some(view) = &mut self.view {
            *view = view.up_to(until.end, more).at(path)?;
            files.read_from(Arc::new(view.clone()));
        }
        Ok(true)
    }

    /// The records that stay and were changed since the log was looked at last.
    fn changed(&self, store: &mut Store) -> Result<Option<Frozen>> {
        if self.files.is_none() || self.past.replay.is_some() {
            return Ok(None);
        }
        let mut slots = store.state.slots_since(self.what.until.end)?;
        slots.retain(|&slot| !self.what.chosen.doomed.has(store.state.spelled_id(slot)));
        Ok(Some(store.state.freeze_those(slots.into_iter())?))
    }

    /// Follows what was appended, if it is much.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory`.
    pub fn follow(&mut self, reach: &impl StoreAccess) -> Result<Followed> {
        reach.sync()?;
        let found = reach.look(|store| {
            let open = store.log.open().filter(|open| open.goes_on_from(&self.what.until));
            let Some(until) = open.map(|open| open.passing()) else {
                return Ok(Err(Followed::Upset));
            };
            if until.end - self.what.until.end <= REST_BYTES {
                return Ok(Err(Followed::Little));
            }
            Ok(Ok((until, self.changed(store)?)))
        })?;
        let (until, changed) = match found {
            Ok(found) => found,
            Err(followed) => return Ok(followed),
        };
        Ok(match self.go_on(until, changed)? {
            true => Followed::Much,
            false => Followed::Upset,
        })
    }

    /// Under the lock: follows the rest; whether what goes is what it was.
    ///
    /// # Errors
    /// As `follow`.
    pub fn follow_to_the_end(&mut self, store: &mut Store) -> Result<bool> {
        let open = store.log.open().filter(|open| open.goes_on_from(&self.what.until));
        let Some(until) = open.map(|open| open.passing()) else {
            return Ok(false);
        };
        let changed = self.changed(store)?;
        self.go_on(until, changed)
    }

    /// Under the lock: begins with the files of the present.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory`.
    pub fn begin_files(&mut self, store: &mut Store) -> Result<()> {
        let what = &self.what;
        let records = match self.past.kept() {
            Some(kept) => kept.freeze()?,
            None => {
                let going = store.state.slots_named(what.chosen.doomed.ids());
                store.state.freeze_without(&going)?
            }
        };
        if !self.order.drop_history {
            let view = Redacted::of(&what.log, what.until.end, &what.live.lines.hits);
            self.view = Some(view.at(self.site.log())?);
        }
        let log = self.view.clone().map(|view| Arc::new(view) as Arc<dyn DiskFile>);
        self.files = Some(NewFiles::start(self.site, records, log, self.options.threads)?);
        self.spaces = Leaving::of(store, &what.chosen).start()?;
        Ok(())
    }

    /// Writes what is known so far.
    ///
    /// # Errors
    /// `Io`.
    pub fn run(&mut self) -> Result<()> {
        let (end, options) = (self.what.until.end, self.options);
        let length = self.view.as_ref().map_or(0, |view| view.length);
        let is_worth_a_thread = options.threads > 1 && end >= options.beside_from_bytes;
        if let Some(files) = &mut self.files {
            files.run(length, is_worth_a_thread, &mut |_, _| {})?;
        }
        self.spaces.iter_mut().try_for_each(Moving::run)
    }

    /// Under the lock: looks at what others changed that the log tells, and at what they set aside.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory`.
    pub fn look_again(&mut self, store: &Store) -> Result<()> {
        let touched = store.state.slots_since(self.mentioned_at)?;
        if self.what.chosen.tie(&store.state, &touched) {
            self.mentions = mentions(&self.what.chosen, &store.state);
        }
        let Self {
            aside,
            what,
            order,
            site,
            options,
            ..
        } = self;
        aside.look(site, &what.unwanted(order), options.threads)
    }
}
