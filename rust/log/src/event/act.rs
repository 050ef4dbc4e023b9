//! Finds the records that an event speaks of, and what an act makes of them.

use super::faces::{SESSION_PREFIX, rules_of};
use super::{IncomingEvents, Op};
use crate::acts::{Mention, Read, Rules, ids_named};
use crate::json::{self, Value};

/// What a record that an act brings about takes beside what the act says, at most.
const NEW_RECORD_BYTES: usize = 512;

/// An act of a face that has rules for it.
pub struct Act {
    rules: &'static Rules,
    payload: Value,
}

impl Act {
    /// Reads an act from the id and the canonical record of its event; `None` if no face has rules for it.
    pub fn read(id: &[u8], record: &[u8]) -> Option<Self> {
        let rules = rules_of(id)?;
        let payload = json::parse(record).ok()?;
        Some(Self { rules, payload })
    }

    /// The records that it changes, as they are afterwards.
    pub fn effects<'a>(&'a self, read: &'a Read<'a>) -> Vec<(String, Value)> {
        (self.rules.effects)(&self.payload, read)
    }

    /// The records that it is about, those included of which it does not tell whether they are there.
    pub fn mentions(&self) -> Vec<Mention> {
        (self.rules.mentions)(&self.payload)
    }

    /// The ids of the records that it speaks of.
    pub fn subjects(&self) -> impl Iterator<Item = String> {
        let told = self.mentions().into_iter().filter(|mention| mention.is_told);
        told.map(|mention| mention.id)
    }
}

/// Whether an event of this kind is of the one record that it names.
pub fn is_of_one(op: Op) -> bool {
    matches!(
        op,
        Op::Upsert | Op::Migrate | Op::Delete | Op::Patch | Op::Erase | Op::Prune
    )
}

/// Shows the ids of the records that an event speaks of, as they stand between quotes in canonical JSON.
pub fn each_subject(op: Op, id: &[u8], record: &[u8], mut show: impl FnMut(&[u8])) {
    if is_of_one(op) {
        show(id);
    } else if op == Op::Act {
        for subject in Act::read(id, record).iter().flat_map(Act::subjects) {
            show(&quoted(&subject));
        }
    }
}

/// The same, and of those too that an act changes if they are there.
pub fn each_concerned(op: Op, id: &[u8], record: &[u8], mut show: impl FnMut(&[u8])) {
    if op != Op::Act {
        return each_subject(op, id, record, show);
    }
    for mention in Act::read(id, record).iter().flat_map(Act::mentions) {
        show(&quoted(&mention.id));
    }
}

/// The same, and the session in which an act happened.
pub fn each_named(op: Op, id: &[u8], record: &[u8], mut show: impl FnMut(&[u8])) {
    each_concerned(op, id, record, &mut show);
    let act = Act::read(id, record).filter(|_| op == Op::Act);
    let session = act.as_ref().and_then(|act| act.payload.get("session")?.as_str());
    if let Some(session) = session {
        show(&quoted(&format!("{SESSION_PREFIX}{session}")));
    }
}

impl IncomingEvents {
    /// Lines of these lengths, with what acts among them need beyond their lines.
    pub fn of<'a>(lines: impl Iterator<Item = (usize, Option<(Op, &'a [u8], &'a [u8])>)>) -> Self {
        lines.fold(Self::default(), |sum, (bytes, event)| {
            let own = sum.and(Self::one(bytes));
            event.map_or(own, |(op, id, record)| own.and(beyond(op, id, record)))
        })
    }
}

/// The memory that an event needs in a state, beyond that of its line.
pub fn beyond(op: Op, id: &[u8], record: &[u8]) -> IncomingEvents {
    let Some(rules) = (op == Op::Act).then(|| rules_of(id)).flatten() else {
        return IncomingEvents::default();
    };
    let further = (rules.most_touched)(ids_named(record));
    IncomingEvents {
        further,
        // A record that comes about names two ids at most; what becomes of the others is not announced, as with a patch.
        bytes: further * NEW_RECORD_BYTES,
        ..IncomingEvents::default()
    }
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    json::write_string(text, &mut out);
    out.pop();
    out.remove(0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_of_several_records_and_others_are_of_one() {
        let shown = r#"{"act":"shown/1","at":"t","ids":["b","a\"x"]}"#;
        // A link that an act changes if it is there is not among those that it speaks of.
        for (op, id, record, told, more) in [
            (
                Op::Act,
                "act:blocks",
                shown,
                r#"block:b block:a\"x"#,
                r#" bedge:a\"x:b"#,
            ),
            (Op::Patch, "block:b", "{}", "block:b", ""),
            (Op::Act, "act:pages", shown, "", ""),
            (Op::Act, "block:b", shown, "", ""),
            (Op::Act, "act:blocks", "{}", "", ""),
            (Op::Act, "act:blocks", "no JSON", "", ""),
            (Op::Begin, "__begin__", "{}", "", ""),
            (Op::Other, "act:blocks", shown, "", ""),
        ] {
            let (mut subjects, mut concerned) = (Vec::new(), Vec::new());
            let text = |id: &[u8]| String::from_utf8_lossy(id).into_owned();
            each_subject(op, id.as_bytes(), record.as_bytes(), |id| subjects.push(text(id)));
            each_concerned(op, id.as_bytes(), record.as_bytes(), |id| concerned.push(text(id)));
            assert_eq!(subjects.join(" "), told, "{op:?} {id}");
            assert_eq!(concerned.join(" "), [told, more].concat(), "{op:?} {id}");
        }
        assert_eq!(beyond(Op::Act, b"act:blocks", shown.as_bytes()).further, 2 + 1 + 3);
        assert_eq!(beyond(Op::Patch, b"act:blocks", shown.as_bytes()).further, 0);
    }
}
