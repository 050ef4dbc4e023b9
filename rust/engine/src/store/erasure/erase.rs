//! Carries out an erasure: verify and scan, rewrite the files, commit, remove what is left.
//!
//! Everything up to the commit happens while others go on. If an event that they append changes what is erased, the erasure
//! begins again; after three attempts it holds the writer lock from the start, and writers wait.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::chosen::Chosen;
use super::copies::{CopyCheck, SearchedQuarantine};
use super::filter::{EraseFilter, Restated, RowRemoval, event_record, rewrite_kept};
use super::scan::ErasePlan;
use crate::options::Options;
use crate::store::Store;
use crate::store::archives::archive_index::ArchiveCache;
use crate::store::files::erasing::Erasing;
use crate::store::files::known_copies::KnownCopies;
use crate::store::follow::finish_erasing;
use crate::store::load::tails::check_no_tail_is_left;
use crate::store::recovery::judge::{verify, verify_at};
use crate::store::sealing::{base_rows, start_sealing_base};
use crate::store::search::page::page;
use crate::store::search::select::StateView;
use crate::store::turns::{Alone, StoreAccess, Turns, check_tail_at_the_end, take_care};
use crate::store::upkeep::backup::copy_inside;
use crate::store::upkeep::bases::RewrittenFiles;
use crate::store::upkeep::compact::{Retirement, Rewrite, check_undamaged, write_snapshot};
use crate::store::upkeep::compact_rows::Moving;
use crate::store::upkeep::history_files::clear_leftovers;
use chronolog::archive::{self, FRAME_BYTES};
use chronolog::disk::{Disk, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::ERASURES;
use chronolog::event::{Op, erasure, salt, stamp};
use chronolog::json;
use chronolog::json::{RecordSpans, Value};
use chronolog::layout::{ERASED_SUFFIX, Layout};
use chronolog::log::{Log, Progress, Site};
use chronolog::remembered::HeadStanding;
use chronolog::scope::Viewer;
use chronolog::wal::writer::EventBody;
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Listing, Query, State, unspelled};
use memchr::memmem;

/// How often an erasure begins again because writers changed the choice, before they have to wait.
const MOST_STARTS: usize = 3;

/// What came of it, and what was chosen; `None` if all has to begin anew.
type Attempt = Option<(Erased, Chosen)>;

/// How many erasures the log tells of.
pub(in crate::store) fn erasures(state: &State) -> usize {
    state.of_face(ERASURES, Some(&[b"erasure"])).count()
}

fn check_erasable(site: &Site, log: &mut Log) -> Result<()> {
    check_undamaged(log)?;
    log.check_head_is_kept()?;
    if let HeadStanding::Unknown(reason) | HeadStanding::Unreadable(reason) = &log.head.standing {
        return Err(Error::busy(format!(
            "nothing is erased while the last head is not known: {reason}"
        )));
    }
    check_no_tail_is_left(site, log)
}

/// An erasure before its commit.
struct Preparing<'a> {
    site: &'a Site,
    options: &'a Options,
    rewrite: Rewrite<EraseFilter<'a>>,
    aside: SearchedQuarantine,
    /// The log ended here when the records were found that refer to erased ones.
    mentioned_at: u64,
    spaces: Vec<Moving>,
}

impl<'a> Preparing<'a> {
    /// Rewrites the files of the past, or only counts them; no log names the new ones yet.
    fn start(
        access: &StoreAccess<'_, impl Turns>,
        (site, options): (&'a Site, &'a Options),
        plan: ErasePlan,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let mut filter = EraseFilter::of_past((site, options), plan, progress)?;
        let check = filter.plan.copy_check(site, options.threads);
        let mut backups = check.backups()?;
        let mut aside = SearchedQuarantine::default();
        aside.look(&check)?;
        if filter.erased.lines == 0 && filter.files == 0 && !(backups.is_empty() && aside.holding.is_empty()) {
            // The log holds none of it, so only a copy that is known to hold it is a reason to erase.
            let held = CopyCheck {
                drops_history: false,
                passes_unread: true,
                ..check
            };
            let mut asked = SearchedQuarantine::default();
            asked.look(&held)?;
            if asked.holding.is_empty() && held.backups()?.is_empty() {
                filter.erased.unread = backups.drain(..).chain(aside.holding.drain(..)).collect();
            }
        }
        filter.erased.backups = backups;
        let mentions = access.look(|store| Ok(filter.plan.chosen.mentions(&store.state)))?;
        filter.erased.mentions = mentions.into_iter().collect();
        let ErasePlan { log, until, order, .. } = &filter.plan;
        let (log, until, keeps_history) = (Arc::clone(log), *until, !order.drop_history);
        Ok(Self {
            site,
            options,
            aside,
            mentioned_at: until.end,
            rewrite: Rewrite::new(filter, log, until, keeps_history, options.beside_from()),
            spaces: Vec::new(),
        })
    }

    fn is_needed(&self) -> bool {
        let EraseFilter { erased, files, .. } = &self.rewrite.filter;
        erased.lines > 0 || *files > 0 || !erased.backups.is_empty() || !self.aside.holding.is_empty()
    }

    /// What is erased; from here on nothing is added.
    fn report(&mut self) -> Erased {
        let EraseFilter {
            plan, erased, files, ..
        } = &mut self.rewrite.filter;
        let (ids, belonging) = plan.chosen.found_ids();
        Erased {
            ids,
            belonging,
            replaced: match plan.order.drop_history && erased.lines > 0 {
                true => plan.past_files(self.site).len() as u64,
                false => *files,
            },
            quarantine: std::mem::take(&mut self.aside.holding),
            ..std::mem::take(erased)
        }
    }

    /// Writes what can be written before the lock is taken; false if what is erased has changed.
    fn write(&mut self, access: &StoreAccess<'_, impl Turns>) -> Result<bool> {
        let Self { rewrite, spaces, .. } = self;
        if !rewrite.catch_up(access)? {
            return Ok(false);
        }
        let is_begun = access.locked(|store, _| {
            check_erasable(&store.site, &mut store.log)?;
            rewrite.rows = base_rows(store);
            let is_begun = rewrite.begin(store)?;
            if is_begun {
                *spaces = RowRemoval::of(store, &rewrite.filter.plan.chosen).start()?;
            }
            Ok(is_begun)
        })?;
        if !is_begun {
            return Ok(false);
        }
        rewrite.run(&mut |_, _| {})?;
        spaces.iter_mut().try_for_each(Moving::run)?;
        rewrite.catch_up(access)
    }

    /// Under the lock: looks at what others changed that the log tells, and at what they set aside.
    fn look_again(&mut self, store: &Store) -> Result<()> {
        let EraseFilter { plan, erased, .. } = &mut self.rewrite.filter;
        let touched = store.state.slots_since(self.mentioned_at)?;
        if plan.chosen.tie(&store.state, &touched) {
            erased.mentions = plan.chosen.mentions(&store.state).into_iter().collect();
        }
        self.aside.look(&plan.copy_check(self.site, self.options.threads))
    }

    /// Under the lock: commits what was prepared and removes what is left; `None` if the choice changed.
    fn end(&mut self, store: &mut Store, order: &Erase, now: i64) -> Result<Option<Erased>> {
        check_erasable(&store.site, &mut store.log)?;
        store.on_log(Log::sync)?;
        store.on_log(Log::settle_hint)?;
        let meant = &self.rewrite.filter.plan.order;
        if order.now(store)?.ids != meant.ids || !self.rewrite.follow_to_the_end(store)? {
            return Ok(None);
        }
        let plan = &self.rewrite.filter.plan;
        plan.chosen.check(&plan.order, &store.state)?;
        self.look_again(store)?;
        let mut erased = self.report();
        if order.drop_history {
            mark(store, now)?;
            store.settle();
        }
        // Behind this log the last head is not looked for in one that was redacted: the sentinel names it.
        store.log.tell_head();
        let hits = self.rewrite.filter.plan.live.hits.len() as u64;
        let suffix = if hits > 0 { ERASED_SUFFIX } else { "" };
        let RewrittenFiles { base, archive, rows } = self.rewrite.finish(store, suffix)?;
        let past = &mut self.rewrite.filter;
        let (mut replaced, mut remove) = (std::mem::take(&mut past.replaced), std::mem::take(&mut past.remove));
        if order.drop_history {
            replaced.clear();
            remove.extend(past.plan.past_files(self.site));
        }
        remove.extend(erased.backups.iter().chain(&erased.quarantine).cloned());
        let unnamed = store.vectors.unnamed_rows(&store.state)?;
        let moved = RowRemoval::of(store, &past.plan.chosen).end(std::mem::take(&mut self.spaces))?;
        remove.extend(moved.files.iter().cloned());
        let in_vectors = |path: &PathBuf| Some(format!("vectors/{}", path.file_name()?.to_string_lossy()));
        remove.extend(unnamed.iter().filter_map(in_vectors));
        let retirement = Retirement {
            label: format!("Erased at seq={}", store.log.link().next_seq - 1),
            archive,
            more: vec![
                (
                    "erased".to_owned(),
                    Value::from(if order.drop_history { 0 } else { hits }),
                ),
                ("replaced".to_owned(), Value::Array(replaced)),
                ("repaired".to_owned(), Value::Array(Vec::new())),
            ],
            repair: None,
            goes_on: !order.drop_history,
        };
        let depth = self.options.recursion_depth;
        let mut new = retirement.sentinel(&store.log, base.text(), depth, now)?;
        let ts = stamp::digits(now.max(store.log.latest()));
        let seq = new.link.next_seq;
        let kept = past.sum();
        let chosen = &past.plan.chosen;
        let restated = Restated::of((&store.state, kept.as_ref()), chosen, &moved);
        let record = event_record(seq, order, past.span, &erased, &restated);
        debug_assert!(erasure::Erasure::read(seq, format!("erasure:{seq}").as_bytes(), &record).is_some());
        new.push(EventBody {
            op: Op::Erase,
            id: format!("erasure:{seq}").as_bytes(),
            record: &record,
            ts: &ts,
            depth,
        });
        let is_kept = |id: &[u8]| match &kept {
            Some(kept) => kept.slots.of_spelled(id).is_some(),
            None => !chosen.doomed.has(id) && store.state.slots.of_spelled(id).is_some(),
        };
        erased.again = rewrite_kept(&mut new, &restated, is_kept, &moved, self.options, &ts)?;
        erased.seq = Some(seq);
        // From here on files may be named by a log.
        past.made.clear();
        Erasing {
            base: Some(base),
            remove,
        }
        .write(self.site)?;
        let (time, before) = (now.max(store.log.latest()), head_of(store));
        // The commit point is in here.
        store.log.retire(&new, now)?;
        drop(kept);
        store.archives = ArchiveCache::default();
        if let Some(segment) = rows.and_then(|rows| start_sealing_base(store, rows)) {
            segment.run();
        }
        // A segment is used only up to the noted sync. If that cannot be noted, the state is loaded all the same.
        let is_ready = store.on_log(Log::make_ready);
        if let Err(fault) = store.reload(&mut |_, _| {}) {
            // What is in memory is not answered from any more.
            store.is_distrusted.store(true, Ordering::Relaxed);
            return Err(fault);
        }
        is_ready?;
        store.log.tell_head();
        finish_erasing(&store.site, &store.log, &store.state, &store.vectors)?;
        erased.done = Some((time, before, head_of(store)));
        Ok(Some(erased))
    }
}

/// Under the lock: appends a salted event without content, so that hashes before it cannot be guessed.
fn mark(store: &mut Store, now: i64) -> Result<()> {
    let Some(source) = &store.options.randomness else {
        return Err(Error::invalid(
            "history",
            "it is dropped only where there is randomness at hand to salt its end with",
        ));
    };
    let mut draft = Draft::default();
    let record = format!(
        "{{\"~\":\"{}\"}}",
        salt::drawn(source, salt::SALT_BYTES).map_err(Error::randomness)?
    );
    draft.put(Op::Mark, erasure::MARK_ID, record.as_bytes(), RecordSpans::default())?;
    store.write(&[&draft], now)?;
    store.on_log(Log::sync)?;
    store.on_log(Log::settle_hint)
}

fn check_order(order: &Erase) -> Result<()> {
    if let Some(id) = order.ids.iter().find(|id| is_reserved(id)) {
        return Err(Error::invalid("ids", format!("{id:?} is not erased by itself")));
    }
    Chosen::by(order)?;
    erasure::check_reason(&order.reason)
}

/// Tries an erasure once; `None` if others changed what is erased.
fn attempt(
    access: &StoreAccess<'_, impl Turns>,
    (site, options): (&Site, &Options),
    order: &Erase,
    progress: Progress<'_>,
) -> Result<Attempt> {
    let plan = ErasePlan::find(access, (site, options.threads), order)?;
    access.look(|store| plan.chosen.check(&plan.order, &store.state))?;
    if plan.chosen.is_empty() {
        return Ok(Some((Erased::default(), plan.chosen)));
    }
    if !order.dry_run {
        plan.put_unnamed_aside(access, site)?;
    }
    let mut work = Preparing::start(access, (site, options), plan, progress)?;
    if order.dry_run || !work.is_needed() {
        return Ok(Some((work.report(), work.rewrite.filter.plan.chosen)));
    }
    if work.rewrite.filter.replaced.len() > erasure::MOST_REPLACED {
        return Err(Error::limit(
            "more than 50,000 files of the past would be replaced: compact without history first",
        ));
    }
    work.rewrite.filter.check()?;
    let erased = work.write(access)?.then(|| {
        // The last handle of the old log is closed after the lock is released, because freeing a large file takes long.
        access.locked(|store, now| work.end(store, order, now))
    });
    let erased = erased.transpose()?.flatten();
    if erased.is_none() {
        for path in &work.rewrite.filter.made {
            site.disk.remove(path).at(path)?;
        }
    }
    Ok(erased.map(|erased| (erased, work.rewrite.filter.plan.chosen)))
}

/// Erases records from a store and from all of its past; gives what was done.
///
/// # Errors
/// `Corrupted`, `Busy` if the history has a hole, `Invalid`, `Locked`, `Io`, `Closed`, `Poisoned`: nothing happened then. After
/// the commit point the next process that opens the store finishes.
pub fn erase(turns: &impl Turns, order: &Erase, now: &dyn Fn() -> i64, progress: Progress<'_>) -> Result<Erased> {
    check_order(order)?;
    turns.turn(check_tail_at_the_end)?;
    let _care = take_care(turns, now())?;
    let (site, options) = turns.turn(|store| Ok((Arc::clone(&store.site), store.options.clone())))?;
    let access = StoreAccess::shared(turns, now);
    access.locked(|store, now| {
        check_erasable(&store.site, &mut store.log)?;
        store.anchor(now)
    })?;
    let known = KnownCopies::read(&site)?;
    let report = verify_at(&*site.disk, &site.layout, options.threads, i64::MAX, true, progress)?;
    if let Some(damage) = report.damage.into_iter().next() {
        return Err(Error::Corrupted(Box::new(damage)));
    }
    if !order.dry_run {
        clear_leftovers(&access)?;
    }
    if turns.turn(|store| Ok(store.log.open().is_none()))? {
        return Ok(Erased::default());
    }
    let terms = (&*site, &options);
    let mut done = None;
    for _ in 0..MOST_STARTS {
        if done.is_none() {
            done = attempt(&access, terms, order, progress)?;
        }
    }
    let (mut erased, chosen) = match done {
        Some(done) => done,
        None => held(&access, terms, order, progress)?,
    };
    if !chosen.is_empty() {
        // It may take long to reach them.
        (erased.copies, erased.missing_copies) = CopyCheck::of(&site, options.threads, &chosen).outside(&known);
    }
    if erased.seq.is_some() {
        write_snapshot(turns)?;
        if order.new_backup && !erased.backups.is_empty() {
            // The erasure is committed: a backup that fails is reported, and is no error of the call.
            match verified_backup(turns, (&site, options.threads), now) {
                Ok(folder) => erased.new_backup = Some(folder),
                Err(fault) => erased.backup_fault = Some(fault.to_string()),
            }
        }
    }
    Ok(erased)
}

fn verified_backup(turns: &impl Turns, (site, threads): (&Site, usize), now: &dyn Fn() -> i64) -> Result<PathBuf> {
    let folder = copy_inside(turns, now, &mut |_, _| {})?;
    let copy = Layout::of_folder(folder.clone());
    let report = verify(&*site.disk, &copy, threads, &mut |_, _| {})?;
    match report.damage.into_iter().next() {
        Some(damage) => Err(Error::Corrupted(Box::new(damage))),
        None => Ok(folder),
    }
}

/// Others wait: whatever they change, they do so before or afterwards.
fn held(
    access: &StoreAccess<'_, impl Turns>,
    terms: (&Site, &Options),
    order: &Erase,
    progress: Progress<'_>,
) -> Result<(Erased, Chosen)> {
    access.locked(|store, now| {
        let (alone, now) = (Alone::with(store), || now);
        let access = StoreAccess::locked_for_good(&alone, &now);
        let done = attempt(&access, terms, order, progress)?;
        done.ok_or_else(|| Error::busy("what is to be erased changes while nobody can change it"))
    })
}

/// What begins ids that are never erased by themselves.
const RESERVED: [&str; 5] = ["erasure:", "pruned:", "vector:", "act:", "__"];

/// The prefix of the id of the record that chooses which fields are searched.
const SEARCHED: &str = "search:";

/// Whether a record is never erased by itself.
pub(in crate::store) fn is_reserved(id: &str) -> bool {
    RESERVED.iter().any(|prefix| id.starts_with(prefix)) || id.is_empty()
}

/// What is to be erased, and how.
#[derive(Clone, Debug, Default)]
pub struct Erase {
    /// Records by their ids.
    pub ids: Vec<String>,
    /// Of these only the ones that have expired by this moment when it comes to it: what was written anew lives.
    pub due_at: Option<i64>,
    /// The viewer that erases, if besides the chosen records only those may change that it sees.
    pub by: Option<Arc<Viewer>>,
    /// The records for which this condition holds at the commit, as this viewer sees them, tombstones included.
    pub condition: Option<(Arc<Viewer>, Condition)>,
    /// Every record that carries the names of this scope, or ever did; as canonical JSON.
    pub scope: Option<Vec<u8>>,
    /// Why; it stays in the log.
    pub reason: String,
    /// The program gave the reason: it is not compared with what is erased.
    pub is_reason_trusted: bool,
    /// The history of all records goes, not only that of those.
    pub drop_history: bool,
    /// Those of the records whose present value is said again.
    pub again: Vec<String>,
    /// What was derived from one of the records goes too.
    pub derived: bool,
    /// If the erasure removes backups, one new backup is made and verified.
    pub new_backup: bool,
    /// Nothing is written: the report says what would be done.
    pub dry_run: bool,
}

impl Erase {
    /// The order as it is meant now.
    pub(super) fn now(&self, store: &Store) -> Result<Cow<'_, Self>> {
        let ids = match (self.due_at, &self.condition) {
            (None, None) => return Ok(Cow::Borrowed(self)),
            (Some(moment), _) => {
                let due = self
                    .ids
                    .iter()
                    .filter(|id| store.state.slots.expiry(id).is_some_and(|at| at <= moment));
                due.cloned().collect()
            }
            (None, Some((viewer, condition))) => found(store, viewer, condition)?,
        };
        Ok(Cow::Owned(Self { ids, ..self.clone() }))
    }
}

/// The ids of the records for which a condition holds, without the records of the store about itself.
fn found(store: &Store, viewer: &Arc<Viewer>, condition: &Condition) -> Result<Vec<String>> {
    let listing = Listing {
        query: Query {
            viewer: Arc::clone(viewer),
            faces: true,
            ..Query::default()
        },
        ..Listing::default()
    };
    let page = page(
        StateView::of(store),
        &store.views.field_indexes,
        &listing,
        Some(condition),
    )?;
    let id_of = |record: &[u8]| Some(unspelled(json::scan_record(record)?.id?.of(record)));
    let ids = page.records.iter().filter_map(|dated| id_of(&dated.record));
    Ok(ids.filter(|id| !is_reserved(id) && !id.starts_with(SEARCHED)).collect())
}

/// What was erased, or would be.
#[derive(Clone, Debug, Default)]
pub struct Erased {
    /// The seq of the event of the erasure; `None` if nothing was found or done.
    pub seq: Option<u64>,
    /// The records that were asked for, as far as they were ever there.
    pub ids: Vec<String>,
    /// Others that went with them.
    pub belonging: Vec<String>,
    /// Others that are kept: they named one of them, and were written again without that.
    pub mentions: Vec<String>,
    /// How many lines.
    pub lines: u64,
    /// How many of those had no salt: who can guess the whole text can confirm it.
    pub unsalted: u64,
    /// How many lines of each log.
    pub by_log: Vec<(String, u64)>,
    /// How many files of the past were replaced or dropped.
    pub replaced: u64,
    /// Records that were said again: those asked for, and others that events had changed which went.
    pub again: u64,
    /// Copies that went.
    pub backups: Vec<String>,
    /// The verified backup that replaces them, if one was asked for.
    pub new_backup: Option<PathBuf>,
    /// Why no new backup could be made; the erasure itself is done.
    pub backup_fault: Option<String>,
    /// What was quarantined and went.
    pub quarantine: Vec<String>,
    /// What lies in `backup/` and `quarantine/` and cannot be read to its end: it stays where nothing else holds it.
    pub unread: Vec<String>,
    /// Copies outside that hold it, or cannot be read to their end: they were not changed.
    pub copies: Vec<String>,
    /// Copies outside that are not there now, and may hold it.
    pub missing_copies: Vec<String>,
    /// When it was done, in microseconds since 1970, and the heads of the log just before and after; `None` if it was not.
    pub done: Option<(i64, LogHead, LogHead)>,
}

/// The seq and the hash of the last event of a log, and the hash of its first event, which identifies the log.
pub type LogHead = (u64, String, String);

/// The head of the log of an open store.
pub(super) fn head_of(store: &Store) -> LogHead {
    let first = store.log.open().and_then(|open| open.mark().first);
    let first = first.map(|first| first.text().to_owned()).unwrap_or_default();
    (store.last_seq(), store.head(), first)
}

/// Whether a file holds one of some lower-case texts; ASCII letters are compared without case.
pub fn holds_any(disk: &dyn Disk, path: &Path, texts: &[Vec<u8>]) -> Result<bool> {
    let file = archive::open(disk, path).at(path)?;
    let length = file.log.length().at(path)?;
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    let (mut buffer, mut at) = (Vec::new(), 0);
    while at < length {
        // What a text may need of the piece before stays in front.
        let kept = buffer.len().saturating_sub(longest.saturating_sub(1));
        buffer.drain(..kept);
        let read = read_upto(&*file.log, &mut buffer, at, FRAME_BYTES).at(path)?;
        if read == 0 {
            break;
        }
        let fresh = buffer.len() - read;
        buffer[fresh..].make_ascii_lowercase();
        at += read as u64;
        if texts.iter().any(|text| memmem::find(&buffer, text).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}
