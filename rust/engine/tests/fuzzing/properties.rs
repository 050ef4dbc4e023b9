//! What must hold for any bytes whatever; the seeded mutator and the targets of `cargo fuzz` both check it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::crash_disk::CrashDisk;
use chronomemory::testing::event::line::{Event, Trust};
use chronomemory::testing::json;
use chronomemory::testing::json::RecordSpans;
use chronomemory::testing::snapshot;
use chronomemory::testing::snapshot::{Moments, RecordSink};
use chronomemory::{Access, Disk, Draft, Durability, Layout, Options, Report, Store, Value};

const NOW: i64 = 1_779_105_600_000_000;

fn spelled(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    json::write_value(value, &mut out);
    out
}

/// What was read is written in one way, and read again it is the same; what the scan accepts is written so already.
pub fn json_has_one_spelling(bytes: &[u8]) {
    let parsed = json::parse(bytes);
    if let Ok(value) = &parsed {
        let canonical = spelled(value);
        let again = json::parse(&canonical).expect("canonical JSON is JSON");
        assert_eq!(spelled(&again), canonical, "written, read and written again");
        let mut spaced = Vec::new();
        json::write_value_spaced(value, &mut spaced);
        let loose = json::parse(&spaced).expect("spaced JSON is JSON");
        assert_eq!(spelled(&loose), canonical, "the spaced dialect says the same");
        let is_shallow = json::parse_to_depth(bytes, json::MAX_DEPTH - 1).is_ok();
        if value.as_object().is_some() && is_shallow {
            assert!(json::scan_record(&canonical).is_some(), "the scan knows canonical form");
        }
    }
    if json::scan_record(bytes).is_some() {
        let value = parsed.expect("what the scan accepts is JSON");
        assert_eq!(spelled(&value), bytes, "what the scan accepts is canonical");
    }
}

/// A line and the same line with a space behind it are the same event; the space forces the slow path.
pub fn both_paths_read_a_line_alike(line: &[u8]) {
    if line.contains(&b'\n') || line.len() >= json::MAX_LINE_BYTES {
        return;
    }
    let mut other = line.to_vec();
    other.push(b' ');
    match (Event::read(line, Trust::Nothing), Event::read(&other, Trust::Nothing)) {
        (Ok(fast), Ok(slow)) => {
            assert_eq!(fast.text(line), slow.text(&other), "the canonical text");
            assert_eq!(fast.hash(line), slow.hash(&other));
            assert_eq!(fast.record(line), slow.record(&other));
            assert_eq!(fast.record_id(line), slow.record_id(&other));
            assert_eq!(fast.prev_hash(line), slow.prev_hash(&other));
            assert_eq!(fast.ts(line), slow.ts(&other));
            assert_eq!(
                (fast.op, fast.events, fast.unknown_fields),
                (slow.op, slow.events, slow.unknown_fields)
            );
        }
        (Err(fast), Err(slow)) => assert_eq!((fast.kind, fast.seq), (slow.kind, slow.seq)),
        (fast, slow) => panic!("one path reads it, the other does not: {fast:?}, {slow:?}"),
    }
    if json::scan_event(line).is_some() {
        let value = json::parse(line).expect("what the scan accepts is JSON");
        assert_eq!(spelled(&value), line, "what the scan accepts is canonical");
    }
}

fn layout() -> Layout {
    Layout::of_project(&PathBuf::from("/project"))
}

fn disk_with(files: &[(PathBuf, &[u8])]) -> CrashDisk {
    let disk = CrashDisk::new();
    disk.create_dir(layout().folder()).expect("a folder");
    for (path, bytes) in files {
        let file = disk.create(path).expect("a file");
        file.write_at(bytes, 0).expect("a write");
    }
    disk
}

fn verify(disk: &CrashDisk, threads: usize) -> Report {
    Store::verify(disk, &layout(), threads, &mut |_, _| {}).expect("nothing fails on this disk")
}

/// Any log opens, is judged the same by one thread and by several, takes a write and then still shows its damage.
pub fn any_log_can_be_lived_with(log: &[u8], synced: Option<&[u8]>) {
    let end = log.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if !end.is_empty() && end.iter().all(|byte| b" \t\r".contains(byte)) {
        // White space that a writer ends with a newline becomes a blank line, and those are no damage by the law.
        return;
    }
    let mut files = vec![(layout().log().to_owned(), log)];
    files.extend(synced.map(|bytes| (layout().synced(), bytes)));
    live_with(&disk_with(&files));
}

fn live_with(disk: &CrashDisk) {
    let before = verify(disk, 1);
    assert_eq!(
        format!("{before:?}"),
        format!("{:?}", verify(disk, 3)),
        "one thread and three"
    );
    let options = Options {
        durability: Durability::Full,
        ..Options::default()
    };
    let mut store = Store::open(Arc::new(disk.clone()), layout(), options, &mut |_, _| {}).expect("every store opens");
    let mut draft = Draft::default();
    let text = |text: &str| Value::Str(text.to_owned());
    let record = Value::object([("id", text("fuzz")), ("label", text("written behind it"))]);
    draft.upsert_value(&record, 0, None).expect("a record");
    let written = store.commit(&draft, NOW);
    store.close().expect("a close");
    let after = verify(disk, 1);
    assert_eq!(
        before.valid(),
        after.valid(),
        "a write neither heals nor harms:\n{before:?}\n{after:?}"
    );
    if let Ok(written) = written {
        assert!(after.events > 0 && after.last_seq == written.next_seq - 1);
        assert!(after.tail.is_none());
    }
}

#[derive(Default, PartialEq, Debug)]
struct Taken(Vec<(Vec<u8>, Vec<u8>, Option<Moments>)>);

impl RecordSink for Taken {
    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
        self.0.push((record.to_vec(), id.to_vec(), moments));
    }
    fn date(&mut self, id: &[u8], moments: Moments) {
        let undated = self.0.iter_mut().find(|(_, own, known)| own == id && known.is_none());
        undated.expect("a record without moments").2 = Some(moments);
    }
    fn start_over(&mut self) {
        self.0.clear();
    }
}

/// A state file is read line by line if it is ours; with a space behind it, it is parsed whole: the same records.
pub fn both_paths_read_a_state_alike(bytes: &[u8]) {
    let path = layout().snapshot();
    let mut other = bytes.to_vec();
    other.push(b' ');
    let read = |bytes: &[u8]| {
        let disk = disk_with(&[(path.clone(), bytes)]);
        let file = disk.open(&path, Access::Read).expect("the file");
        let mut taken = Taken::default();
        let header = snapshot::read(&*file, &mut taken).expect("nothing fails here").header;
        header.ok().map(|header| (header.seq, header.last_hash, taken))
    };
    assert_eq!(read(bytes), read(&other));
}

/// Any snapshot under another tool's sentinel can be lived with, too.
pub fn any_snapshot_can_be_lived_with(snapshot: &[u8]) {
    let payload = concat!(
        r#"{"op":"compact","prev_hash":"","record":{"data":{},"id":"__compact__"},"#,
        r#""record_id":"__compact__","recursion_depth":0,"seq":5,"ts":"2026-01-01T00:00:00Z"}"#
    );
    let hash = chronomemory::sha256(payload.as_bytes());
    let line = format!("{{\"hash\":\"{}\",{}\n", hash.text(), &payload[1..]);
    live_with(&disk_with(&[
        (layout().log().to_owned(), line.as_bytes()),
        (layout().snapshot(), snapshot),
    ]));
}
