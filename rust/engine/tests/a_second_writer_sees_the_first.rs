//! Two stores on one log each see what the other wrote, and their events form one chain.

use crate::scenario::{Action, contents, fresh_disk, layout, open, perform};
use chronomemory::{Durability, Store};

#[test]
fn writes_alternate_and_nobody_is_left_behind() {
    let disk = fresh_disk();
    let mut one = open(&disk, Durability::Normal).expect("open");
    let mut two = open(&disk, Durability::Normal).expect("open");
    for round in 0..40 {
        let now = crate::scenario::START + i64::from(round);
        let (writer, reader) = if round % 2 == 0 {
            (&mut one, &mut two)
        } else {
            (&mut two, &mut one)
        };
        let action = match round % 10 {
            3 => Action::Compact(true),
            6 => Action::Backup,
            9 => Action::Delete(round),
            n if n % 2 == 0 => Action::Batch(round),
            _ => Action::Put(round),
        };
        perform(&disk, writer, &action, now).expect("a write");
        reader.refresh().expect("a look");
        assert_eq!(contents(writer), contents(reader), "round {round}: {action:?}");
        assert_eq!(writer.last_seq(), reader.last_seq());
        assert_eq!(writer.head(), reader.head());
    }
    one.close().expect("close");
    two.close().expect("close");
    let report = Store::verify(&disk, &layout(), 1, &mut |_, _| {}).expect("verify");
    assert!(report.valid() && report.tail.is_none(), "{report:?}");
}
