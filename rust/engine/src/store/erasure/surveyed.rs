//! What a survey found: what goes, and in which files it is said.

use std::collections::BTreeSet;
use std::sync::Arc;

use chronolog::disk::DiskFile;
use chronolog::error::Result;
use chronolog::log::{Passed, Site};
use chronolog::origin::Origin;

use super::chosen::Chosen;
use super::copies::Unwanted;
use super::lines::{LiveLines, SeenLog};
use super::order::Erase;
use super::reach::StoreAccess;
use super::rewrite::names_of_base;
use super::survey::{FoundToErase, LogsAndBases, UnreadableCopy};
use crate::store::archives::pruned::pruned_until;
use crate::store::archives::segments::{RetiredSegment, Start, segments};
use crate::store::files::copies::past_files_beside;
use crate::store::upkeep::history_files::put_aside;

/// What goes, as far as one moment told, and the log of that moment.
pub(super) struct ErasePlan {
    /// What is asked for, as it was meant then.
    pub order: Erase,
    /// That, and what belongs to it.
    pub chosen: Chosen,
    /// The log, if there is one.
    pub log: Option<LogAhead>,
}

/// A log as it was then.
pub(super) struct LogAhead {
    file: Arc<dyn DiskFile>,
    /// How far it had come.
    pub until: Passed,
    origin: Origin,
    pruned_until: u64,
}

impl ErasePlan {
    /// Looks ahead, as far as the present tells what goes.
    ///
    /// # Errors
    /// `Invalid`, `Io`, `OutOfMemory`.
    pub fn look(reach: &impl StoreAccess, order: &Erase) -> Result<Self> {
        reach.look(|store| {
            let order = order.now(store)?.into_owned();
            let mut chosen = Chosen::by(&order)?;
            chosen.know(&store.state);
            let log = store.log.open().map(|open| LogAhead {
                file: Arc::clone(&open.file),
                until: open.passing(),
                origin: open.origin.clone(),
                pruned_until: pruned_until(&store.state),
            });
            Ok(Self { order, chosen, log })
        })
    }
}

/// What goes, and where it is said.
pub(super) struct Surveyed {
    pub chosen: Chosen,
    /// The history that is kept tells of all rows that ever were.
    is_told: bool,
    /// The retired logs, the oldest first, and what the live one starts from.
    pub segments: Vec<RetiredSegment>,
    pub start: Start,
    pub found: FoundToErase,
    pub live: LiveLines,
    pub log: Arc<dyn DiskFile>,
    /// How far the live log was looked through.
    pub until: Passed,
}

impl Surveyed {
    /// Finds all that goes with what was chosen, and where all of that is said. What was seen while all of it was proved need
    /// not be read again.
    ///
    /// # Errors
    /// `Corrupted`, `Busy`, `Io`.
    pub fn of(
        reach: &impl StoreAccess,
        (site, threads): (&Site, usize),
        mut chosen: Chosen,
        log: LogAhead,
        sight: SeenLog,
    ) -> Result<Self> {
        let mut until = log.until;
        let seen = sight.store().map(|(seen, ids)| {
            chosen.saw(ids);
            let walk = &seen.live.walk;
            (until.end, until.head) = (walk.end, walk.mark().head);
            seen
        });
        let live = (&log.file, until.end);
        let (segments, start) = segments(
            &*site.disk,
            &site.layout,
            &log.origin,
            (&*log.file, until.end),
            log.pruned_until,
        )?;
        let starts = || segments.iter().map(|segment| &segment.start).chain([&start]);
        let begins_with_nothing = starts().next().is_some_and(|start| start.base.is_none());
        let is_told = begins_with_nothing
            && starts().skip(1).all(|start| !start.is_word)
            && segments.iter().all(|segment| segment.redacted == 0);
        let all = LogsAndBases {
            site,
            segments: &segments,
            live,
            bases: starts().filter_map(|start| start.base).collect(),
            threads,
        };
        let (found, live) = all.look_through(&mut chosen, reach, seen)?;
        Ok(Self {
            chosen,
            is_told,
            segments,
            start,
            found,
            live,
            log: log.file,
            until,
        })
    }

    /// Puts files of the past aside that neither the log nor its past names, so that they are looked through like all that is there.
    /// In a log of another tool only who has read all of it knows which it names.
    ///
    /// # Errors
    /// `Io`, `Locked`.
    pub fn put_unnamed_aside(&self, reach: &impl StoreAccess, site: &Site) -> Result<()> {
        let archives = self.segments.iter().map(|segment| segment.name.clone());
        let named: BTreeSet<String> = archives.chain(self.bases()).collect();
        for name in past_files_beside(site, &named)? {
            reach.locked(|store, now| put_aside(&store.site, &store.site.layout.inside(&name), now))?;
        }
        Ok(())
    }

    /// What the bases may be called that the logs start from.
    fn bases(&self) -> impl Iterator<Item = String> {
        let starts = self.segments.iter().map(|segment| &segment.start).chain([&self.start]);
        let bases = starts.filter_map(|start| start.base);
        bases.flat_map(|base| names_of_base(&base))
    }

    /// How many lines of the live log go.
    pub fn live_hits(&self) -> u64 {
        self.live.lines.hits.len() as u64
    }

    /// What a copy must be free of.
    pub fn unwanted(&self, order: &Erase) -> Unwanted<'_> {
        Unwanted {
            chosen: &self.chosen,
            spaces: Some(&self.chosen.spaces).filter(|_| self.is_told),
            drops_history: order.drop_history,
            doubt: UnreadableCopy::Counts,
        }
    }

    /// The files of the past that go if no history is kept.
    pub fn past_files(&self, site: &Site) -> Vec<String> {
        let is_there = |name: &String| site.disk.exists(&site.layout.inside(name));
        let archives = self.segments.iter().map(|segment| segment.name.clone());
        archives.chain(self.bases().filter(is_there)).collect()
    }
}
