//! Whatever others write while something is erased is as if it had come before it or behind it.

use std::cell::{Cell, RefCell};

use crate::an_erasure_is_whole_or_none::{NOW, holding, order, with_rows};
use crate::crash_disk::CrashDisk;
use crate::scenario::acting::{block, shown};
use crate::scenario::embedded::attach_to;
use crate::scenario::{Model, chance, contents, layout, open, record};
use crate::upkeep::Upkeep;
use chronomemory::testing::store::{Turns, erase};
use chronomemory::{Disk, Draft, Durability, Erase, Erased, Result, Store, Value};

/// More than what is left to the end of an erasure, under the lock.
const MUCH: usize = 300_000;

/// What others write meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Write {
    /// A record that has nothing to do with it, short or long.
    Other,
    Long,
    /// The record that goes.
    Itself,
    /// What belongs to it.
    Edge,
    /// An embedding of it, and of others in the same space.
    Row,
    OtherRow,
    /// What happens to several records, one of which goes, and to others.
    Act,
    OtherAct,
    /// An edge leads elsewhere by now.
    Turned,
}

const ALL: [Write; 9] = [
    Write::Other,
    Write::Long,
    Write::Itself,
    Write::Edge,
    Write::Row,
    Write::OtherRow,
    Write::Act,
    Write::OtherAct,
    Write::Turned,
];

fn edge(id: &str, from: &str, to: &str) -> Value {
    let text = |text: &str| Value::Str(text.to_owned());
    let label = match [from, to].contains(&"R3") {
        true => "label 3 of an edge",
        false => "of another",
    };
    Value::object([
        ("id", text(id)),
        ("kind", text("edge")),
        ("label", text(label)),
        ("data", Value::object([("from_id", text(from)), ("to_id", text(to))])),
    ])
}

fn write(disk: &CrashDisk, what: Write, number: usize) -> Result<()> {
    let mut store = open(disk, Durability::Full)?;
    let now = NOW - 1;
    let mut draft = Draft::default();
    match what {
        Write::Other => draft.upsert_value(&record(&format!("N{number}"), "new"), 0, None)?,
        Write::Long => draft.upsert_value(&record(&format!("N{number}"), &"long ".repeat(MUCH / 5)), 0, None)?,
        Write::Itself => draft.upsert_value(&record("R3", &format!("label 3 anew {number}")), 0, None)?,
        Write::Edge => draft.upsert_value(&edge(&format!("E{number}"), "R1", "R3"), 0, None)?,
        Write::Row => return attach_to(&mut store, &["R3".to_owned()], 60 + number as u32, now),
        Write::OtherRow => {
            let ids = ["R1", "R5"].map(str::to_owned);
            return attach_to(&mut store, &ids, 80 + 2 * number as u32, now);
        }
        Write::Act => draft.act("blocks", &shown(&["a", "b"], Some(&format!("s{number}")), 0.25), 0)?,
        Write::OtherAct => draft.act("blocks", &shown(&["b", "c"], Some(&format!("s{number}")), 0.25), 0)?,
        Write::Turned => draft.upsert_value(&edge("E0", "R1", "R4"), 0, None)?,
    };
    store.commit(&draft, now).map(|_| ())
}

/// A store with a past, rows, blocks that something happened to, and an edge.
fn beginning() -> CrashDisk {
    let disk = with_rows();
    let mut store = open(&disk, Durability::Full).expect("open");
    let mut draft = Draft::default();
    for id in ["a", "b", "c"] {
        draft.upsert_value(&block(id), 0, Some("blocks")).expect("a block");
    }
    draft.upsert_value(&edge("E0", "R3", "R1"), 0, None).expect("an edge");
    let seen = shown(&["a", "b", "c"], Some("first"), 0.5);
    draft.act("blocks", &seen, 0).expect("an act");
    store.commit(&draft, NOW - 2).expect("a commit");
    store.close().expect("close");
    disk
}

/// Somebody else writes before a turn, or before each.
struct Beside<'a> {
    disk: &'a CrashDisk,
    store: RefCell<&'a mut Store>,
    turns: Cell<usize>,
    at: Option<usize>,
    what: Write,
    /// So often that was refused.
    refused: Cell<usize>,
    /// The files of the present were seen half written: nobody waits for them.
    is_beside: Cell<bool>,
}

impl Turns for Beside<'_> {
    fn turn<T>(&self, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        self.turns.set(self.turns.get() + 1);
        let drafts = self.disk.list(&layout().bases()).unwrap_or_default();
        self.is_beside
            .set(self.is_beside.get() || drafts.iter().any(|name| name.ends_with(".tmp")));
        if self.at.is_none_or(|at| at == self.turns.get()) {
            // Behind it there may be nothing left to write about.
            let written = write(self.disk, self.what, self.turns.get());
            self.refused.set(self.refused.get() + usize::from(written.is_err()));
        }
        act(&mut self.store.borrow_mut())
    }
}

/// Erases beside a writer; gives what was told, in how many turns, and whether others could go on.
fn erase_beside(disk: &CrashDisk, order: &Erase, at: Option<usize>, what: Write) -> (Erased, usize, bool) {
    let mut store = open(disk, Durability::Full).expect("open");
    let turns = Beside {
        disk,
        store: RefCell::new(&mut store),
        turns: Cell::default(),
        at,
        what,
        refused: Cell::default(),
        is_beside: Cell::default(),
    };
    let told = erase(&turns, order, &|| NOW, &mut |_, _| {}).unwrap_or_else(|fault| panic!("{what:?} {at:?}: {fault}"));
    assert!(
        turns.refused.get() * 2 < turns.turns.get().max(2) || at.is_some(),
        "{what:?}: only behind it"
    );
    (told, turns.turns.get(), turns.is_beside.get())
}

/// What the store says now, apart from erasures.
fn known(disk: &CrashDisk, what: &str) -> Model {
    let store = open(disk, Durability::Full).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let report = Store::verify(disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && report.returned.is_empty(), "{what}: {report:?}");
    let mut model = contents(&store);
    model.retain(|id, _| !id.starts_with("erasure:") && !id.starts_with("vector:"));
    model
}

fn orders() -> [Erase; 2] {
    let of_blocks = Erase {
        ids: vec!["block:a".to_owned(), "R3".to_owned()],
        ..order()
    };
    [order(), of_blocks]
}

#[test]
fn whoever_writes_at_any_moment_comes_before_it_or_behind_it() {
    // Neighbouring kinds of writes take the odd and the even turns; a soak takes all.
    let stride = if chance::is_thorough() { 1 } else { 2 };
    for order in orders() {
        let turns = erase_beside(&beginning(), &order, Some(usize::MAX), Write::Other).1;
        for (kind, what) in ALL.into_iter().enumerate() {
            for at in (1 + kind % stride..=turns).step_by(stride) {
                let told = format!("{what:?} before turn {at} of {turns}");
                let before = beginning();
                write(&before, what, at).expect("a write");
                let erased = || open(&before, Durability::Full)?.erase(&order, NOW, &mut |_, _| {});
                erased().expect("an erasure");
                let behind = beginning();
                let erased = || open(&behind, Durability::Full)?.erase(&order, NOW, &mut |_, _| {});
                erased().expect("an erasure");
                // Nobody can say what happened to what is not there any more.
                let is_behind = write(&behind, what, at).is_ok();
                let disk = beginning();
                if is_behind || at < turns {
                    erase_beside(&disk, &order, Some(at), what);
                    let now = known(&disk, &told);
                    let is_before = now == known(&before, &told);
                    assert!(is_before || now == known(&behind, &told), "{told}: {now:?}");
                    if is_before {
                        assert_eq!(holding(&disk), Vec::<std::path::PathBuf>::new(), "{told}");
                    }
                }
            }
        }
    }
}

#[test]
fn whoever_writes_all_the_time_does_not_keep_it_from_ending() {
    for order in orders() {
        for what in ALL {
            let disk = beginning();
            let (told, turns, is_beside) = erase_beside(&disk, &order, None, what);
            assert!(told.seq.is_some() && turns > 8, "{what:?}");
            assert!(is_beside, "{what:?}: others go on while the files are written");
            let known = known(&disk, &format!("{what:?} all the time"));
            if matches!(what, Write::Other | Write::Long) {
                let new = known.keys().filter(|id| id.starts_with('N')).count();
                assert_eq!(new, turns, "{what:?}: every write is kept");
            }
        }
    }
}
