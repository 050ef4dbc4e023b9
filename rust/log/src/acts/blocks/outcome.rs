//! `outcome/1` and `outcome/2`: blocks got an outcome.

use super::book::{Book, FORMING, confidence, field, number, status};
use super::ids;
use super::payload::Payload;
use crate::json::Value;

/// How much is known of a block before its first outcome.
const PRIOR_STRENGTH: f64 = 2.0;
/// Above this an outcome was good.
pub const GOOD_ABOVE: f64 = 0.5;
const BAD_BELOW: f64 = 0.2;
/// How strongly blocks that helped together are linked, times the signal.
const LINK_WEIGHT: f64 = 0.8;
/// How much of what a link lacks to one it gains when it proves right again.
const STRENGTHENED: f64 = 0.1;
/// What a block with this tag says is not worn away by how things went.
const CONSTITUTIONAL: &str = "self/constitutional";
/// How fast a block fades that does not say it, and how fast one may at most.
const USUAL_DECAY: f64 = 0.01;
const FASTEST_DECAY: f64 = 0.05;

/// Tells active blocks how it went; a good outcome is a use of them, and links the first of them.
pub fn apply(book: &mut Book<'_>, payload: &Payload<'_>, (signal, weight, source): (f64, f64, &str)) {
    let mut heard = Vec::new();
    for &block in &payload.ids {
        if hear(book, block, signal, weight, source) {
            heard.push(block);
        }
    }
    if signal <= GOOD_ABOVE {
        return;
    }
    for block in &heard {
        book.reinforce(block);
    }
    for (one, other) in ids::pairs(payload.linked()) {
        if heard.contains(&one) && heard.contains(&other) {
            join(book, (one, other), LINK_WEIGHT * signal);
        }
    }
}

/// Updates what is believed of a block; false if it is not active, or believes nothing that could be updated.
fn hear(book: &mut Book<'_>, block: &str, signal: f64, weight: f64, source: &str) -> bool {
    let Some(record) = book.active_block(block) else {
        return false;
    };
    let (known, evidence) = (confidence(record), number(record, "evidence").unwrap_or(0.0));
    let strength = PRIOR_STRENGTH + evidence;
    let alpha = known * strength + signal * weight;
    let beta = (1.0 - known) * strength + (1.0 - signal) * weight;
    let believed = alpha / (alpha + beta);
    if !believed.is_finite() || !(evidence + weight).is_finite() {
        return false;
    }
    let fades = signal < BAD_BELOW && !is_tagged(record, CONSTITUTIONAL);
    let fading = number(record, "decay_lambda").unwrap_or(USUAL_DECAY);
    let fastest = (2.0 * fading).min(FASTEST_DECAY);
    // One that fades faster already keeps its number as it is spelled.
    let faster = (fades && fastest > fading).then_some(fastest);
    let id = ids::block(block);
    book.set(&id, "confidence", Value::Float(believed.clamp(0.0, 1.0)));
    book.change(&id, |data| {
        data.set("evidence", Value::Float(evidence + weight));
        if source.is_empty() {
            data.remove("outcome_source");
        } else {
            data.set("outcome_source", Value::from(source));
        }
        if let Some(faster) = faster {
            data.set("decay_lambda", Value::Float(faster));
        }
    });
    true
}

/// Links two blocks that proved right together, or strengthens their link.
fn join(book: &mut Book<'_>, pair: (&str, &str), weight: f64) {
    let id = ids::edge(pair.0, pair.1);
    let known = book.record(ids::EDGE, &id).filter(|known| status(known) != FORMING);
    let Some(held) = known.map(|known| number(known, "weight").unwrap_or(0.0)) else {
        book.link(pair, weight, None);
        return;
    };
    let stronger = (held + STRENGTHENED * (1.0 - held)).min(1.0);
    book.use_link(pair);
    book.change(&id, |data| data.set("weight", Value::Float(stronger)));
}

fn is_tagged(record: &Value, tag: &str) -> bool {
    match field(record, "tags") {
        Some(Value::Array(tags)) => tags.iter().any(|known| known.as_str() == Some(tag)),
        Some(tags) => tags.get(tag).is_some(),
        None => false,
    }
}
