//! Carries out an erasure, beside others as far as that goes and under the lock at the end.
//!
//! While others go on, as far as that goes: what goes is found and the files are written without it. The rest is done under the
//! lock, which ends with the last file that goes. If what others write changes what goes, all begins anew; and if that happens
//! time and again, they wait.

use std::path::PathBuf;
use std::sync::Arc;

use crate::options::Options;
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::ERASURES;
use chronolog::event::{Op, erasure, salt, stamp};
use chronolog::json::{RecordSpans, Value};
use chronolog::layout::ERASED_SUFFIX;
use chronolog::log::{Log, Progress, Site};
use chronolog::origin::ALONE;
use chronolog::remembered::HeadStanding;
use chronolog::verify::Walk;
use chronolog::wal::writer::EventBody;
use chronomemory_state::state::{Frozen, State, Watermark};

use super::chosen::Chosen;
use super::copies::outside;
use super::lines::{SeenLog, Watcher};
use super::new_log::{Restated, event_record, say_again};
use super::order::{Erase, Erased, head_of, is_reserved};
use super::preparation::{Followed, Preparing};
use super::reach::{LockedAccess, SharedAccess, StoreAccess};
use super::rewrite::number;
use super::rows::Leaving;
use super::surveyed::{ErasePlan, Surveyed};
use crate::store::Store;
use crate::store::archives::archive_index::ArchiveCache;
use crate::store::files::erasing::Erasing;
use crate::store::files::known_copies::KnownCopies;
use crate::store::files::snapshots::header_of;
use crate::store::follow::swap::take_in_lines;
use crate::store::follow::unfinished::finish_erasing;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::recovery::judge::prove;
use crate::store::turns::{Turns, check_tail_at_the_end, take_care};
use crate::store::upkeep::compact::{MOST_ROUNDS, write_snapshot};
use crate::store::upkeep::history_files::clear_leftovers;
use crate::store::upkeep::retire::{Retirement, base_salt};

/// How often an erasure begins anew, because what others wrote changed what goes, before they have to wait.
const MOST_STARTS: usize = 3;

/// What came of it, and what was chosen; `None` if all has to begin anew.
type Attempt = Option<(Erased, Chosen)>;

/// How many erasures the log tells of.
pub(in crate::store) fn erasures(state: &State) -> usize {
    state.of_kinds(ERASURES, &[b"erasure"]).count()
}

/// Under the lock: whether anything may be erased at all.
fn check_erasable(site: &Site, log: &mut Log) -> Result<()> {
    if let Some(damage) = log.report().damage.first() {
        return Err(Error::Corrupted(Box::new(damage.clone())));
    }
    log.check_head_is_kept()?;
    if let HeadStanding::Unknown(reason) | HeadStanding::Unreadable(reason) = log.head().standing() {
        return Err(Error::busy(format!(
            "nothing is erased while the last head is not known: {reason}"
        )));
    }
    check_no_tail_is_left(site, log)
}

/// Goes on behind an erasure: the state is what is kept, if a replay was needed to tell, or what was there without some
/// slots; and then what the new log says.
fn go_on_behind(store: &mut Store, kept: Option<State>, slots: &[u32]) -> Result<()> {
    match kept {
        Some(kept) => store.state = kept,
        None => store.state.erase(slots),
    }
    let Some(open) = store.log.open() else {
        return Err(Error::Closed);
    };
    let (file, end) = (Arc::clone(&open.file), open.walk.end);
    take_in_lines(&mut store.log, &mut store.state, |_, loader| {
        let read = Walk::new(None).go(&*file, end, ALONE, loader, &mut |_, _| {});
        read.at(store.site.log())
    })?;
    store.clock.tell_again(&mut store.state);
    store.vectors.on_disk.read_anew(Watermark::default());
    let events = store.live().events();
    store.snapshots.read_anew(events.max(store.state.len() as u64));
    Ok(())
}

/// Under the lock: puts a line behind the log that says nothing and has a salt, so that its hash is no way to guess those
/// before it.
fn mark(store: &mut Store, now: i64) -> Result<()> {
    let Some(source) = &store.options.randomness else {
        return Err(Error::invalid(
            "history",
            "it is dropped only where there is randomness at hand to salt its end with",
        ));
    };
    let mut draft = Draft::default();
    let record = format!("{{\"~\":\"{}\"}}", salt::of_line(source).map_err(Error::randomness)?);
    draft.put(Op::Mark, erasure::MARK_ID, record.as_bytes(), RecordSpans::default())?;
    store.write(&[&draft], now)?;
    store.sync_log()?;
    store.settle_hint()
}

/// Under the lock: ends what was prepared; `None` if what goes is not what it was.
fn end_erasing(store: &mut Store, work: &mut Preparing<'_>, order: &Erase, now: i64) -> Result<Option<Erased>> {
    check_erasable(&store.site, &mut store.log)?;
    store.sync_log()?;
    store.settle_hint()?;
    if order.now(store)?.ids != work.order.ids || !work.follow_to_the_end(store)? {
        return Ok(None);
    }
    let (site, options) = (work.site, work.options);
    work.what.chosen.check(work.order, &store.state)?;
    work.look_again(store)?;
    let mut told = work.told();
    if order.drop_history {
        mark(store, now)?;
        store.settle();
    }
    // Behind this log the last head is not looked for in one that was redacted: the sentinel names it.
    store.log.tell_head();
    let Some(files) = work.files.take() else {
        return Err(Error::Closed);
    };
    let (header, salt) = (header_of(&store.log), base_salt(options.salts())?);
    let hits = work.what.live_hits();
    let suffix = if hits > 0 { ERASED_SUFFIX } else { "" };
    let first_seq = store.log.open().and_then(|open| open.mark().first_seq).unwrap_or(0);
    let length = work.view.as_ref().map_or(0, |view| view.length);
    let (base, archive) = files.finish(site, (&header, salt.as_deref()), length, (first_seq, suffix))?;
    let (lines, span) = (work.past.lines, work.past.span);
    let (mut replaced, mut remove) = (
        std::mem::take(&mut work.past.replaced),
        std::mem::take(&mut work.past.remove),
    );
    if order.drop_history {
        replaced.clear();
        remove.append(&mut work.dropped);
    }
    remove.extend(told.backups.iter().chain(&told.quarantine).cloned());
    let unnamed = store.vectors.unnamed_rows(&store.state)?;
    let chosen = &work.what.chosen;
    let moved = Leaving::of(store, chosen).end(std::mem::take(&mut work.spaces))?;
    remove.extend(moved.files.iter().cloned());
    let in_vectors = |path: &PathBuf| Some(format!("vectors/{}", path.file_name()?.to_string_lossy()));
    remove.extend(unnamed.iter().filter_map(in_vectors));
    let retirement = Retirement {
        label: format!("Erased at seq={}", store.log.link().next_seq - 1),
        archive,
        more: vec![
            ("erased".to_owned(), number(if order.drop_history { 0 } else { hits })),
            ("replaced".to_owned(), Value::Array(replaced)),
            ("repaired".to_owned(), Value::Array(Vec::new())),
        ],
        repair: None,
        goes_on: !order.drop_history,
    };
    let depth = options.recursion_depth;
    let mut new = retirement.sentinel(&store.log, base.text(), depth, now)?;
    let ts = stamp::digits(now.max(store.log.latest()));
    let seq = new.link.next_seq;
    let kept = work.past.sum();
    let restated = Restated::of((&store.state, kept.as_ref()), chosen, &moved);
    let record = event_record(seq, order, (lines, span), &told, &restated);
    debug_assert!(erasure::Erasure::read(seq, format!("erasure:{seq}").as_bytes(), &record).is_some());
    new.push(EventBody {
        op: Op::Erase,
        id: format!("erasure:{seq}").as_bytes(),
        record: &record,
        ts: &ts,
        depth,
    });
    let is_kept = |id: &[u8]| match &kept {
        Some(kept) => kept.slot_spelled(id).is_some(),
        None => !chosen.doomed.has(id) && store.state.slot_spelled(id).is_some(),
    };
    told.again = say_again(&mut new, &restated, is_kept, &moved, options, &ts)?;
    told.seq = Some(seq);
    let going = store.state.slots_named(chosen.doomed.ids());
    // From here on files may be named by a log.
    work.past.made.clear();
    Erasing {
        base: Some(base),
        remove,
    }
    .write(site)?;
    let (time, before) = (now.max(store.log.latest()), head_of(store));
    // The commit point is in here.
    store.log.retire(&new, now)?;
    store.archives = ArchiveCache::default();
    store.vectors.forget();
    if go_on_behind(store, kept, &going).is_err() {
        store.reload(&mut |_, _| {})?;
    }
    store.make_ready()?;
    store.log.tell_head();
    finish_erasing(&store.site, &store.log, &store.state, &store.vectors)?;
    told.done = Some((time, before, head_of(store)));
    Ok(Some(told))
}

fn check_order(order: &Erase) -> Result<()> {
    if let Some(id) = order.ids.iter().find(|id| is_reserved(id)) {
        return Err(Error::invalid("ids", format!("{id:?} is not erased by itself")));
    }
    erasure::check_reason(&order.reason)
}

/// Tries it once: what was chosen is looked for, and goes unless others change what that is meanwhile.
fn attempt(
    reach: &impl StoreAccess,
    (site, options): (&Arc<Site>, &Options),
    order: &Erase,
    (ahead, sight): (ErasePlan, SeenLog),
    progress: Progress<'_>,
) -> Result<Attempt> {
    let ErasePlan {
        order: meant,
        chosen,
        log,
    } = ahead;
    let Some(log) = log else {
        return Ok(Some((Erased::default(), chosen)));
    };
    let mut what = Surveyed::of(reach, (site, options.threads), chosen, log, sight)?;
    reach.look(|store| what.chosen.check(&meant, &store.state))?;
    if what.chosen.is_empty() {
        return Ok(Some((Erased::default(), what.chosen)));
    }
    if !order.dry_run {
        what.put_unnamed_aside(reach, site)?;
    }
    let found = std::mem::take(&mut what.found);
    let mut work = Preparing::rewrite(reach, (site, options), &meant, (what, &found), progress)?;
    if order.dry_run || !work.is_needed() {
        return Ok(Some((work.told(), work.what.chosen)));
    }
    if work.past.replaced.len() > erasure::MOST_REPLACED {
        return Err(Error::limit(
            "more than 50,000 files of the past would be replaced: compact without history first",
        ));
    }
    work.past.check()?;
    let told = prepared(reach, &mut work)?.then(|| {
        // Nobody waits for the system to take the old log apart: its last handle is closed behind the lock.
        reach.locked(|store, now| end_erasing(store, &mut work, order, now))
    });
    let told = told.transpose()?.flatten();
    if told.is_none() {
        for path in std::mem::take(&mut work.past.made) {
            site.disk.remove(&path).at(&path)?;
        }
    }
    Ok(told.map(|told| (told, work.what.chosen)))
}

/// Writes what can be written before the lock is taken; whether what goes is what it was.
fn prepared(reach: &impl StoreAccess, work: &mut Preparing<'_>) -> Result<bool> {
    for _ in 0..MOST_ROUNDS {
        match work.follow(reach)? {
            Followed::Upset => return Ok(false),
            Followed::Much => {}
            Followed::Little => break,
        }
    }
    let begun = reach.locked(|store, _| {
        check_erasable(&store.site, &mut store.log)?;
        let is_same = work.follow_to_the_end(store)?;
        if is_same {
            work.begin_files(store)?;
        }
        Ok(is_same)
    })?;
    if !begun {
        return Ok(false);
    }
    work.run()?;
    for _ in 0..MOST_ROUNDS {
        match work.follow(reach)? {
            Followed::Upset => return Ok(false),
            Followed::Much => work.run()?,
            Followed::Little => break,
        }
    }
    Ok(true)
}

/// Erases records from a store and from all of its past; gives what was done.
///
/// # Errors
/// `Corrupted` if anything is damaged or missed, `Busy` if the history has a hole, `Invalid`, `Locked`, `Io`, `Closed`,
/// `Poisoned`; nothing has happened then. What goes wrong behind the commit point is ended by whoever opens the store next.
pub fn erase(turns: &impl Turns, order: &Erase, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Erased> {
    check_order(order)?;
    turns.turn(check_tail_at_the_end)?;
    let _care = take_care(turns, now())?;
    let (site, options) = turns.turn(|store| Ok((Arc::clone(&store.site), store.options.clone())))?;
    let reach = SharedAccess { turns, now };
    reach.locked(|store, now| {
        check_erasable(&store.site, &mut store.log)?;
        store.anchor(now)
    })?;
    let mut ahead = ErasePlan::look(&reach, order)?;
    let until = ahead.log.as_ref().map_or(0, |log| log.until.end);
    // The past says mostly what is there: where it is added up, that need not be in memory twice.
    let likeness = reach.look(|store| {
        let has_past = store.log.open().is_some_and(|log| log.origin.has_archive());
        let frozen = has_past.then(|| store.state.freeze().ok()).flatten();
        Ok(frozen.map(Frozen::likeness))
    })?;
    let watcher = Watcher::of(&ahead.chosen, until, likeness);
    let damage = prove(&*site.disk, &site.layout, options.threads, &watcher, progress)?;
    // What was seen here need not be looked for again.
    let mut sight = watcher.sight();
    if let Some(damage) = damage.into_iter().next() {
        return Err(Error::Corrupted(Box::new(damage)));
    }
    if !order.dry_run {
        clear_leftovers(turns, now())?;
    }
    let known = KnownCopies::read(&site)?;
    let terms = (&site, &options);
    let mut done = None;
    for _ in 0..MOST_STARTS {
        let before = std::mem::take(&mut sight);
        done = attempt(&reach, terms, order, (ahead, before), progress)?;
        if done.is_some() {
            break;
        }
        ahead = ErasePlan::look(&reach, order)?;
    }
    let (mut told, chosen) = match done {
        Some(done) => done,
        None => held(&reach, terms, order, progress)?,
    };
    if !chosen.is_empty() {
        // It may take long to reach them.
        (told.copies, told.missing_copies) = outside(&site, &known, &chosen, options.threads);
    }
    if told.seq.is_some() {
        write_snapshot(turns)?;
    }
    Ok(told)
}

/// Others wait: whatever they change, they do so before or afterwards.
fn held(
    reach: &impl StoreAccess,
    terms: (&Arc<Site>, &Options),
    order: &Erase,
    progress: Progress<'_>,
) -> Result<(Erased, Chosen)> {
    reach.locked(|store, now| {
        let reach = LockedAccess::of(store, now);
        let ahead = ErasePlan::look(&reach, order)?;
        let done = attempt(&reach, terms, order, (ahead, SeenLog::default()), progress)?;
        done.ok_or_else(|| Error::busy("what is to be erased changes while nobody can change it"))
    })
}
