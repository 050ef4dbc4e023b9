//! All who read an event that several records follow from come to the same, and each record knows of it.

use crate::crash_disk::CrashDisk;
use crate::scenario::acting::{block, shown};
use crate::scenario::{START, contents, fresh_disk, layout, open};
use crate::upkeep::Upkeep;
use chronomemory::{Access, AtomicBatch, Bookmark, Disk, Draft, Durability, Moment, Query, Store, Value, parse_json};

const FACE: &str = "blocks";
const NAMES: [&str; 25] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w",
    "x:%", "y\"z",
];

/// Numbers that look like chance, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn some(&mut self, most: usize) -> Vec<&'static str> {
        let count = 1 + self.below(most);
        (0..count).map(|_| NAMES[self.below(NAMES.len())]).collect()
    }
}

fn acting(said: &Value) -> Draft {
    let mut draft = Draft::default();
    draft.act(FACE, said, 0).expect("an act");
    draft
}

fn outcome(ids: &[&str], signal: f64) -> Value {
    let mut said = shown(ids, None, 0.0);
    said.remove("passed");
    said.set("act", Value::from("outcome/1"));
    said.set("signal", Value::Float(signal));
    said.set("weight", Value::Float(1.5));
    said
}

fn next(dice: &mut Dice) -> Draft {
    let mut draft = Draft::default();
    let name = NAMES[dice.below(NAMES.len())];
    match dice.below(10) {
        0 => draft.upsert_value(&block(name), 0, Some(FACE)).expect("a block"),
        1 => draft.delete(&format!("block:{name}"), Some(FACE)).expect("an id"),
        2 => {
            // An act may stand in a batch with others.
            draft.upsert_value(&block(name), 0, Some(FACE)).expect("a block");
            let said = shown(&dice.some(4), Some("in a batch"), 0.25);
            draft.act(FACE, &said, 0).expect("an act");
        }
        3 | 4 => return acting(&outcome(&dice.some(6), [0.0, 0.5, 1.0][dice.below(3)])),
        _ => {
            let session = ["one", "two", "three", "four", "five", "six"][dice.below(6)];
            let session = Some(session).filter(|_| dice.below(5) > 0);
            return acting(&shown(&dice.some(25), session, [0.0, 0.001, 7.5][dice.below(3)]));
        }
    }
    draft
}

fn settled(disk: &CrashDisk) -> Store {
    let mut store = open(disk, Durability::Normal).expect("open");
    let mut draft = Draft::default();
    for name in NAMES {
        draft.upsert_value(&block(name), 0, Some(FACE)).expect("a block");
    }
    store.commit(&draft, START).expect("a batch");
    store
}

fn histories(store: &Store) -> Vec<(String, Vec<Vec<u8>>)> {
    let ids = contents(store).into_keys();
    ids.map(|id| (id.clone(), store.past().of_record(&id).expect("a history")))
        .collect()
}

#[test]
fn all_who_read_the_log_come_to_the_same() {
    let disk = fresh_disk();
    let (mut one, mut dice) = (settled(&disk), Dice(7));
    let mut two = open(&disk, Durability::Normal).expect("open");
    let mut moments = vec![(one.last_seq(), contents(&one))];
    for step in 1..160 {
        let (writer, reader) = if dice.below(2) == 0 {
            (&mut one, &mut two)
        } else {
            (&mut two, &mut one)
        };
        writer.commit(&next(&mut dice), START + step).expect("a write");
        reader.refresh().expect("a look");
        let now = contents(writer);
        assert_eq!(now, contents(reader), "step {step}");
        moments.push((writer.last_seq(), now));
        if step % 50 == 0 {
            let told = histories(writer);
            assert_eq!(told, histories(reader), "step {step}");
            writer
                .compact(true, START + step, &mut |_, _| {})
                .expect("a compaction");
            assert_eq!(told, histories(writer), "step {step}, from the archives");
        }
        if step % 40 == 0 {
            let fresh = open(&disk, Durability::Normal).expect("open");
            assert_eq!(contents(writer), contents(&fresh), "step {step}");
            assert_eq!(histories(writer), histories(&fresh), "step {step}");
        }
    }
    let everything = Query {
        faces: true,
        ..Default::default()
    };
    for (seq, then) in moments.iter().step_by(9) {
        let view = one.past().as_of(Moment::Seq(*seq)).expect("a view");
        let found = everything.records(view.state()).expect("memory").into_iter();
        let found: Vec<String> = found
            .map(|record| String::from_utf8_lossy(&record).into_owned())
            .collect();
        let mut wanted: Vec<String> = then.values().cloned().collect();
        let mut sorted = found.clone();
        wanted.sort();
        sorted.sort();
        assert_eq!(sorted, wanted, "as of {seq}");
    }
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{report:?}");
}

#[test]
fn each_record_knows_of_it_once_and_so_does_who_minds_it() {
    let disk = fresh_disk();
    let mut store = settled(&disk);
    let before: Bookmark = store.bookmark();
    let said = shown(&["a", "b"], Some("s"), 0.5);
    let seq = store.commit(&acting(&said), START + 1).expect("an act").first_seq;
    for id in ["block:a", "block:b", "bedge:a:b", "config:total_active_hours"] {
        let lines = store.past().of_record(id).expect("a history");
        let wanted = format!("\"seq\":{seq},");
        let told = lines
            .iter()
            .filter(|line| memchr::memmem::find(line, wanted.as_bytes()).is_some());
        assert_eq!(told.count(), 1, "{id}");
        let mut draft = Draft::default();
        draft.upsert_value(&block("z"), 0, Some(FACE)).expect("a block");
        let read = [id.to_owned()];
        let change = AtomicBatch {
            draft: &draft,
            attachments: &[],
            unless_changed: Some((&before, &read)),
            at: None,
        };
        assert!(
            store.commit_change(&change, START + 2).expect("a look").is_none(),
            "{id}"
        );
    }
    assert!(store.past().of_record("act:blocks").expect("a history").is_empty());
    let mut changed = store.past().changed_since(seq, true).expect("a look");
    changed.sort();
    assert_eq!(
        changed,
        ["bedge:a:b", "block:a", "block:b", "config:total_active_hours"]
    );
    assert!(store.past().changed_since(seq, false).expect("a look").is_empty());
    // Another act minds nothing, so nothing is in its way.
    let again = acting(&said);
    let change = AtomicBatch {
        draft: &again,
        attachments: &[],
        unless_changed: Some((&before, &[])),
        at: None,
    };
    assert!(store.commit_change(&change, START + 3).expect("an act").is_some());
}

#[test]
fn what_nobody_knows_changes_nothing() {
    let disk = fresh_disk();
    let mut store = settled(&disk);
    let before = contents(&store);
    for (step, odd) in (1..).zip([
        "{}",
        r#"{"act":"shown/99","at":"t","ids":["a"]}"#,
        r#"{"act":"shown/1","at":"t","ids":[]}"#,
        r#"{"act":"shown/1","at":"t","ids":{"a":1}}"#,
        r#"{"act":["shown/1"],"at":"t","ids":["a"]}"#,
        r#"{"act":"outcome/1","at":"t","ids":["a"],"signal":"1","weight":1.0}"#,
    ]) {
        let odd = parse_json(odd.as_bytes()).expect("JSON");
        store.commit(&acting(&odd), START + step).expect("an event");
        assert_eq!(contents(&store), before, "{odd:?}");
    }
    let mut draft = Draft::default();
    assert!(draft.act("pages", &shown(&["a"], None, 0.0), 0).is_err());
    assert!(draft.act(FACE, &Value::Null, 0).is_err());
    assert!(
        draft
            .upsert_value(&crate::scenario::record("act:blocks", ""), 0, Some(FACE))
            .is_err()
    );
    assert!(
        draft
            .upsert_value(&crate::scenario::record("act:other", ""), 0, None)
            .is_err()
    );
    let fresh = open(&disk, Durability::Normal).expect("open");
    assert_eq!(contents(&fresh), before);
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid(), "{report:?}");
}

#[test]
fn a_lost_one_is_reported_by_its_number() {
    let disk = fresh_disk();
    let mut store = settled(&disk);
    let lost = store
        .commit(&acting(&shown(&["a", "b", "c"], Some("s"), 0.5)), START + 1)
        .expect("an act");
    store
        .commit(&acting(&shown(&["d"], None, 0.0)), START + 2)
        .expect("an act");
    store.sync().expect("a sync");
    store.close().expect("closed");
    let log = disk.open(layout().log(), Access::Write).expect("the log");
    let mut bytes = vec![0; log.length().expect("a length") as usize];
    log.read_at(&mut bytes, 0).expect("a read");
    let place = memchr::memmem::find(&bytes, b"\"op\":\"act\"").expect("it is there");
    log.write_at(b"####", place as u64 + 2).expect("damage");
    let mut store = open(&disk, Durability::Normal).expect("open");
    let repaired = store
        .repair(false, START + 3, &mut |_, _| {})
        .expect("a repair")
        .expect("damage");
    let said = format!("event {} lost", lost.first_seq);
    assert!(repaired.lost[0].starts_with(&said), "{:?}", repaired.lost);
    // It was shown later, at an hour of the clock to which the lost act had added.
    assert_eq!(repaired.unsettled, ["block:d"]);
}
