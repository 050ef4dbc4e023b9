//! Repairs a damaged store, and tells in the log what was found.
//!
//! First everything is brought back that something in the folder proves: lines by the hashes of their neighbours, the
//! base by a copy or by the archives before it. Then a new log begins that names the state and the findings. If the old
//! log is whole again, it becomes an archive and history goes on; if not, it is set aside with all that it stands on.
//! What cannot be proved is named, by id where there is one. Altered bases and archives are replaced by copies or set
//! aside; that is planned first and done once the new log stands, so that an interrupted repair leaves the damage.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::cure::{Cure, CureSearch, check_copies_can_be_read, lost_end};
use super::judge::verify;
use crate::store::archives::archive_index::ArchiveCache;
use crate::store::archives::check::follow_archives;
use crate::store::archives::way::{End, Hop, PastLogs, begin_archive};
use crate::store::files::held::Overlay;
use crate::store::files::proofs::{called_copy_of_base, copy_of_archive, copy_of_base, is_it};
use crate::store::files::set_aside::QuarantineFolder;
use crate::store::files::snapshots::{header_of, remove_indexes};
use crate::store::follow::LockPurpose;
use crate::store::load::tails::{self, whole_events};
use crate::store::turns::{Turns, take_care};
use crate::store::upkeep::bases::{archive_of, write_base};
use crate::store::upkeep::compact::{Retirement, write_snapshot};
use crate::store::upkeep::history_files::clear_out;
use crate::store::vectors::changes::regain::DamagedRows;
use crate::store::{Progress, Store};
use chronolog::archive;
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Bytes, DiskFile, read_whole};
use chronolog::error::{At, Result};
use chronolog::event::mend::{Budget, mend_bytes};
use chronolog::event::stamp;
use chronolog::hint::Hint;
use chronolog::json::Value;
use chronolog::layout::{LOG, base_name};
use chronolog::log::files::{copy_range, is_ours, open_base};
use chronolog::log::{Log, OpenLog, Site};
use chronolog::origin::{Origin, Repair, beginning_of, foreign_traces};
use chronolog::verify::{Report, Walk, finding};
use chronomemory_state::state::differences;

/// How many findings the event names; the damaged log is kept whole.
const MOST_FINDINGS: usize = 100;

/// What a repair did.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// What was wrong.
    pub damage: Vec<Damage>,
    /// Where the damaged files are kept, relative to the store's folder; `None` if there was nothing left of them to keep.
    pub kept: Option<String>,
    /// How many records the store has now.
    pub records: u64,
    /// How many damaged places were brought back: of the log, proved by the chain, and rows of embeddings, by their digests.
    pub healed: u64,
    /// Whether the events before the repair are still part of the store's history.
    pub history_kept: bool,
    /// The ids of the records that are other now than before the repair.
    pub changed: Vec<String>,
    /// Events and embeddings that could not be brought back.
    pub lost: Vec<String>,
    /// The ids of the records that a lost event spoke of: they are on hold.
    pub unsettled: Vec<String>,
    /// The ids of the records that come from bytes which nothing proves.
    pub unproven: Vec<String>,
}

/// What was done, and the files that may go because they are kept elsewhere.
pub(in crate::store) type Treated = (Repaired, BTreeSet<String>);

/// Under the lock: finds out what is damaged, and makes it whole; `None` if nothing is.
pub(in crate::store) fn repair_now(
    store: &mut Store,
    unproven: bool,
    is_replaced_next: bool,
    now: i64,
    progress: Progress<'_>,
) -> Result<Option<Treated>> {
    store.with_lock_to(LockPurpose::Judge, now, |store| {
        // What the hint knows of the end of the log is needed: it is not written over before the log is looked at.
        store.on_log(Log::sync_quietly)?;
        let mut damage = verify(&*store.site.disk, &store.site.layout, store.options.threads, progress)?.damage;
        store.reload(&mut |_, _| {})?;
        damage.extend(lost_end(&store.log).filter(|_| damage.is_empty()));
        if damage.is_empty() {
            return Ok(None);
        }
        let is_of_rows = damage.iter().all(|damage| damage.kind.is_of_row());
        if is_of_rows {
            // If there is nothing else to do, and they cannot be read, nothing is changed.
            DamagedRows::find(&store.vectors, &store.state)?.check()?;
        }
        if !unproven {
            check_copies_can_be_read(&store.site)?;
        }
        let search = CureSearch {
            site: &store.site,
            log: &store.log,
            threads: store.options.threads,
            is_replaced_next,
        };
        let cure = search.find(unproven)?;
        let outcome = administer(store, cure, damage, now, progress);
        // The memory may be ahead of the files.
        outcome.inspect_err(|_| store.log.forget()).map(Some)
    })
}

/// Keeps what is damaged and begins a new log from what was found.
fn administer(
    store: &mut Store,
    mut cure: Cure,
    damage: Vec<Damage>,
    now: i64,
    progress: Progress<'_>,
) -> Result<Treated> {
    let site = Arc::clone(&store.site);
    let aside = QuarantineFolder::begin(&site, "damaged", now)?;
    let mut replaced = BTreeSet::new();
    // Files of rows are looked for on their own.
    let named: BTreeSet<&str> = damage
        .iter()
        .filter(|damage| !damage.kind.is_of_row())
        .map(|damage| &*damage.path)
        .collect();
    named.into_iter().try_for_each(|name| aside.keep(name))?;
    let (file, mut walk, origin) = cure.source;
    // A log that tells half of an erasure would be damage in the archive too. Where the other half came back it tells all.
    let tells_half = |damage: &&Damage| damage.kind == DamageKind::EraseUnbound && damage.path == LOG;
    let is_half = tells_half_of_an_erasure(&walk, &origin);
    let found_before = damage.iter().find(tells_half).filter(|_| cure.filled == 0 || is_half);
    // What came back may be no more than that half.
    let reason = "no event of an erasure is bound to its sentinel";
    let found = || finding(LOG, DamageKind::EraseUnbound, reason);
    let half = found_before.cloned().or_else(|| (cure.is_whole && is_half).then(found));
    cure.lost.extend(half.iter().map(|half| {
        format!("{half}; what it tells of was erased, but copies from before it are not known as such any more")
    }));
    let mending = match cure.is_whole && half.is_none() {
        true => Mending::plan(&site, &*file, &origin, store.options.threads)?,
        false => None,
    };
    let is_whole = mending.is_some();
    let mending = mending.unwrap_or_else(|| Mending::nothing(&site));
    let gone = mending.gone.iter();
    cure.lost
        .extend(gone.map(|name| format!("{name}: it was altered, and is set aside")));
    if !is_whole {
        replaced.extend(aside.keep_everything()?);
    }
    let changed = differences(&store.state, &cure.state);
    store.state = cure.state;
    store.vectors.forget();
    store.archives = ArchiveCache::default();
    let mut rows = DamagedRows::find(&store.vectors, &store.state)?;
    cure.lost.extend(rows.look_elsewhere(&store.site));
    let replacing = mending.steps.iter().map(|(name, _)| name.clone());
    for name in replacing.chain(rows.files()) {
        aside.keep(&name)?;
    }
    aside.sync()?;
    let kept = aside.name_if_used()?;
    let pack = || -> Result<_> {
        let (mark, log) = (walk.mark(), (Arc::clone(&file), walk.end));
        let span = (mark.first_seq.unwrap_or(0), mark.last_seq);
        archive_of(&site, log, span, "", store.options.threads)
    };
    let archive = is_whole.then(pack).transpose()?;
    let history_kept = archive.is_some() && mending.gone.is_empty();
    let open = (cure.lost.len() + usize::from(!cure.unproven.is_empty())) as u64;
    let retirement = Retirement {
        label: format!("Repaired at seq={}", cure.last_seq),
        archive,
        more: told(&damage, kept.as_deref(), &cure.lost, &cure.unsettled),
        repair: Some(Repair {
            seq: cure.last_seq + 1,
            ts: stamp::spell(now.max(walk.latest)),
            findings: damage.len() as u64,
            open,
        }),
        goes_on: false,
    };
    // The log that is retired is the one that the state was read from.
    walk.follower.mark.last_seq = cure.last_seq;
    let retired = OpenLog::reading(file, walk, origin).at(store.site.log())?;
    store.log.go_over(retired);
    let header = header_of(&store.log);
    let base = write_base(&site, &header, &mut store.state, store.options.salts(), progress)?;
    retirement.carry_out(store, base, now)?;
    // The new log tells of the repair: from here on nothing that is put right can be silent about it.
    mending.carry_out()?;
    let brought_back = rows.put_back(&mut store.vectors)?;
    take_back_rows(store, &damage, now)?;
    let repaired = Repaired {
        damage,
        kept,
        records: store.state.len() as u64,
        healed: cure.filled + brought_back,
        history_kept,
        changed,
        lost: cure.lost,
        unsettled: cure.unsettled,
        unproven: cure.unproven,
    };
    Ok((repaired, replaced))
}

/// Rows that are still not what the log says are taken back by events of the new log.
fn take_back_rows(store: &mut Store, damage: &[Damage], now: i64) -> Result<()> {
    // Damaged lines may have named rows; a log with damage in rows only is trusted.
    let is_of_log = |damage: &&Damage| {
        damage.kind != DamageKind::LogMissing && !damage.kind.is_of_row() && !damage.kind.is_of_base()
    };
    store.log.report.damage = damage.iter().filter(is_of_log).cloned().collect();
    let damaged = DamagedRows::find(&store.vectors, &store.state);
    let depth = store.options.recursion_depth;
    let draft = damaged.and_then(|rows| rows.take_back(&store.vectors, &store.log, depth, now));
    let taken_back = draft.and_then(|draft| draft.map(|draft| store.write(&[&draft], now)).transpose());
    store.log.report.damage.clear();
    taken_back?;
    store.on_log(Log::sync)
}

/// Before a repair: turns a tail with whole events into damage, by syncing the log and removing the hint.
fn spare_tail(store: &mut Store) -> Result<()> {
    if store.refresh().is_err() || store.log.report.tail.is_none() || store.log.check_poison().is_err() {
        return Ok(());
    }
    store.with_lock_for_a_moment(|store| {
        store.reload(&mut |_, _| {})?;
        let path = store.site.layout.log().to_owned();
        let (Some(tail), Some(log)) = (&store.log.report.tail, store.log.open()) else {
            return Ok(());
        };
        let (range, head) = (tail.offset..tail.offset + tail.length, log.walk.mark().head);
        let whole = whole_events(&*log.file, range, head, tails::MENDING_BLOCKS).at(&path)?;
        if whole.is_none() {
            return Ok(());
        }
        store.on_log(Log::sync_quietly)?;
        store.site.forget_hint()?;
        store.reload(&mut |_, _| {})
    })
}

/// Whether a log has a sentinel of an erasure without the event behind it, or such an event anywhere else.
fn tells_half_of_an_erasure(walk: &Walk, origin: &Origin) -> bool {
    let is_told = matches!(origin, Origin::Ours(sentinel) if sentinel.told.erasure.is_some());
    let follows = is_told && walk.told_erasures().next().is_some_and(|seen| seen.index == 1);
    is_told != follows || walk.told_erasures().count() > usize::from(follows)
}

fn told(damage: &[Damage], kept: Option<&str>, lost: &[String], unsettled: &[String]) -> Vec<(String, Value)> {
    let texts = |all: Vec<String>| {
        let more = all.len().saturating_sub(MOST_FINDINGS);
        let mut some: Vec<Value> = all.into_iter().take(MOST_FINDINGS).map(Value::Str).collect();
        if more > 0 {
            some.push(Value::Str(format!("and {more} more")));
        }
        Value::Array(some)
    };
    let kept = kept.map_or(Value::Null, |kept| Value::Str(kept.to_owned()));
    let repaired = damage.iter().map(ToString::to_string).collect();
    vec![
        ("repaired".to_owned(), texts(repaired)),
        ("kept".to_owned(), kept),
        ("lost".to_owned(), texts(lost.to_vec())),
        ("unsettled".to_owned(), texts(unsettled.to_vec())),
    ]
}

/// Repairs under a maintenance lock that is held, whatever nothing proves: the log is about to be set aside.
pub(in crate::store) fn repair_in_turn(turns: &impl Turns, now: &dyn Fn() -> i64) -> Result<()> {
    let treated = turns.turn(|store| repair_now(store, true, true, now(), &mut |_, _| {}))?;
    treated.map_or(Ok(()), |(_, replaced)| clear_out(turns, &replaced, now()))
}

/// Makes a store whole again that others use. They wait: what is damaged should not be built upon meanwhile.
pub fn repair(
    turns: &impl Turns,
    unproven: bool,
    now: &dyn Fn() -> i64,
    progress: Progress<'_>,
) -> Result<Option<Repaired>> {
    // First, because every preparation of a change moves a tail aside.
    turns.turn(spare_tail)?;
    let _care = take_care(turns, now())?;
    // An index that hides something is believed by its own digest; to make all of them again costs little.
    turns.turn(|store| {
        remove_indexes(&store.site, None)?;
        store.views.let_go();
        store.vectors.forget();
        store.archives = ArchiveCache::default();
        Ok(())
    })?;
    let Some((repaired, replaced)) = turns.turn(|store| repair_now(store, unproven, false, now(), progress))? else {
        return Ok(None);
    };
    write_snapshot(turns)?;
    clear_out(turns, &replaced, now())?;
    Ok(Some(repaired))
}

/// So much may be hashed in search of the byte that an archive has lost.
const MENDING_BLOCKS: u64 = 20_000_000;
/// How often the history is looked through while altered files are taken out of it.
const MOST_LOOKS: usize = 1000;

/// What makes the history of a whole log whole: files that are replaced or removed, in order.
struct Mending<'a> {
    site: &'a Site,
    after: Overlay<'a>,
    /// The files, from the store's folder on, and what is written in their place; `None` if they are removed.
    steps: Vec<(String, Option<Arc<dyn DiskFile>>)>,
    gone: Vec<String>,
}

impl<'a> Mending<'a> {
    fn nothing(site: &'a Site) -> Self {
        Self {
            site,
            after: Overlay::of(&*site.disk),
            steps: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Plans it; `None` if the history cannot be made whole. Nothing is changed.
    fn plan(site: &'a Site, log: &dyn DiskFile, origin: &Origin, threads: usize) -> Result<Option<Self>> {
        let mut plan = Self::nothing(site);
        let beginning = log
            .length()
            .and_then(|length| beginning_of(log, length))
            .at(site.log())?;
        let base = match origin {
            Origin::Ours(sentinel) => {
                plan.put_copies(origin)?;
                sentinel.base_sha256
            }
            Origin::Foreign => {
                let traces = foreign_traces(log, log.length().at(site.log())?, u64::MAX, Hint::None).at(site.log())?;
                let adopted = traces.adoption.map(|adoption| adoption.base_sha256);
                adopted.iter().for_each(|sha256| plan.put_copy_of_base(sha256, false));
                adopted
            }
            Origin::Nothing => None,
        };
        // The base of the log itself: from now on that of an archived one.
        if let Some(sha256) = &base
            && let Some((name, false)) = plan.base_there(sha256)
        {
            plan.set(&name, None);
            if !origin.has_archive() {
                // Nothing came before that adds up to it.
                plan.gone.push(name);
            }
        }
        if !matches!(origin, Origin::Ours(_)) {
            // Nothing came before it that is ours.
            return Ok(Some(plan));
        }
        for _ in 0..MOST_LOOKS {
            let archives = site.layout.archives();
            let look = || -> Result<_> {
                let mut found = Report::default();
                follow_archives(&plan.after, &site.layout, &beginning, None, threads, &mut found).at(&archives)?;
                Ok(found.damage)
            };
            let past = look()?;
            if past.is_empty() {
                return Ok(Some(plan));
            }
            // A file that could not be read for a moment is none that is altered: nothing whole is taken away.
            if look()? != past {
                let fault = "what could not be read a moment ago can be read now: repair again";
                return Err(io::Error::other(fault)).at(&archives);
            }
            // What a log says of its past is wrong, and no other file would make it right.
            let is_mendable = |damage: &Damage| {
                !damage.kind.is_of_history() && is_ours(&*site.disk, &site.layout.inside(&damage.path))
            };
            if !past.iter().all(is_mendable) {
                return Ok(None);
            }
            for damage in past {
                plan.set(&damage.path, None);
                plan.gone.push(damage.path);
            }
        }
        Ok(None)
    }

    fn set(&mut self, name: &str, file: Option<Arc<dyn DiskFile>>) {
        let path = self.site.layout.inside(name);
        match &file {
            Some(file) => self.after.show(path, Arc::clone(file)),
            None => self.after.hide(path),
        }
        self.steps.push((name.to_owned(), file));
    }

    /// What the file of a base is called, and whether it is the right one; `None` if it is not there.
    fn base_there(&self, sha256: &Hex) -> Option<(String, bool)> {
        let (name, base) = open_base(&self.after, &self.site.layout, sha256).ok().flatten()?;
        Some((name, archive::has_digest(&*base.log, sha256)))
    }

    /// A copy in the place of a base that is altered or gone.
    fn put_copy_of_base(&mut self, sha256: &Hex, is_past: bool) {
        let (disk, layout) = (&*self.site.disk, &self.site.layout);
        let (found, name) = (self.base_there(sha256), base_name(sha256.text()));
        let copy = match found {
            Some((_, true)) => return,
            // Most bases of the past are not kept: they are not looked for everywhere.
            None if is_past => called_copy_of_base(disk, layout, sha256),
            _ => copy_of_base(disk, layout, sha256),
        };
        let again = || found.and_then(|_| self.mended(&name, sha256.text()));
        if let Some(copy) = copy.map(|(_, copy)| copy).or_else(again) {
            self.set(&name, Some(copy));
        }
    }

    /// Copies in the place of what is altered or gone, as far back as archives lead.
    fn put_copies(&mut self, origin: &Origin) -> Result<()> {
        let site = self.site;
        let way = PastLogs::find_with(&site.layout, Hop::live(origin), &mut |name, digest| {
            let path = site.layout.inside(name);
            let own = archive::open(&self.after, &path)
                .ok()
                .filter(|archive| is_it(archive, digest));
            if own.is_none() {
                let copy = copy_of_archive(&*site.disk, &site.layout, name, digest).map(|copy| copy.packed);
                let copy = copy.or_else(|| self.mended(name, digest));
                self.set(name, Some(copy.ok_or(End::Beginning)?));
            }
            let archive = own.map_or_else(|| archive::open(&self.after, &path), Ok);
            let archive = archive.map_err(|_| End::Beginning)?;
            let (length, beginning) = begin_archive(&archive).map_err(|_| End::Beginning)?;
            let digest = Hex::read(digest.as_bytes()).ok_or(End::Beginning)?;
            Ok((Some((archive, digest)), length, beginning))
        });
        let hops = way.at(&site.layout.archives())?.hops;
        for (number, hop) in hops.iter().enumerate() {
            if let Some(sha256) = &hop.base.1 {
                self.put_copy_of_base(sha256, number > 0);
            }
        }
        Ok(())
    }

    /// A small file that lost a byte, brought back; `None` if that is not what happened to it.
    fn mended(&self, name: &str, digest: &str) -> Option<Arc<dyn DiskFile>> {
        let bytes = read_whole(&*self.site.disk, &self.site.layout.inside(name))
            .ok()
            .flatten()?;
        let wanted = Hex::read(digest.as_bytes())?;
        let mended = mend_bytes(&bytes, &wanted, &mut Budget::of(MENDING_BLOCKS))?;
        Some(Arc::new(Bytes(mended)))
    }

    /// Does what was planned, one file after the other; what is replaced is kept already.
    fn carry_out(&self) -> Result<()> {
        let disk = &*self.site.disk;
        for (name, file) in &self.steps {
            let path = self.site.layout.inside(name);
            match file {
                Some(file) => drop(copy_range(disk, &**file, 0..file.length().at(&path)?, &path, None)?),
                None => disk.remove(&path).at(&path)?,
            }
            if let Some(folder) = path.parent() {
                disk.sync_dir(folder).at(folder)?;
            }
        }
        Ok(())
    }
}
