//! Acts on several records at once, for scenarios.

use chronomemory::Draft;
use chronomemory::Value;

/// A block as its face writes it.
pub fn block(id: &str) -> Value {
    let text = |text: &str| Value::Str(text.to_owned());
    let data = ["category", "content", "created_at", "source"].map(|name| (name, text(id)));
    Value::object([
        ("confidence", Value::Float(0.5)),
        ("data", Value::object(data)),
        ("id", text(&format!("block:{id}"))),
        ("kind", text("block")),
    ])
}

/// Blocks were shown together.
pub fn shown(ids: &[&str], session: Option<&str>, passed: f64) -> Value {
    let ids = ids.iter().map(|id| Value::from(*id)).collect();
    let mut said = Value::object([
        ("act", Value::from("shown/1")),
        ("at", Value::from("2026-11-16T00:00:00+00:00")),
        ("ids", Value::Array(ids)),
        ("passed", Value::Float(passed)),
    ]);
    if let Some(session) = session {
        said.set("session", Value::from(session));
    }
    said
}

/// Three blocks are shown together; the first time they come along.
pub fn act(draft: &mut Draft, n: u32) {
    let ids = ["a", "b", "c"];
    if n == 0 {
        for id in ids {
            draft.upsert_value(&block(id), 0, Some("blocks")).expect("a block");
        }
    }
    let shown = shown(&ids, Some(&format!("session {n}")), 0.5);
    draft.act("blocks", &shown, 0).expect("an act");
}
