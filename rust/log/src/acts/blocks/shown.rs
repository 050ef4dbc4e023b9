//! `shown/1` and `shown/2`: blocks were shown together.

use super::book::{Book, FORMING, field, status};
use super::forming::LinkRoom;
use super::ids;
use super::payload::Payload;
use crate::json::Value;

/// Blocks that were shown together in so many sessions are linked, and how strongly.
const SESSIONS: usize = 3;
const WEIGHT: f64 = 0.55;

/// Counts one more use of each block; of the first, links are used, and three sessions make a new one.
pub fn apply<'a>(book: &mut Book<'_>, payload: &'a Payload<'a>, session: Option<&'a str>) {
    for block in &payload.ids {
        book.reinforce(block);
    }
    let linked = payload.linked().iter();
    let mut active: Vec<&str> = linked.copied().filter(|id| book.active_block(id).is_some()).collect();
    active.sort_unstable();
    let mut room = session.map(|session| (LinkRoom::of(session), session));
    for (one, other) in ids::pairs(&active) {
        let id = ids::edge(one, other);
        let known = book.record(ids::EDGE, &id);
        if known.is_some_and(|known| status(known) != FORMING) {
            book.use_link((one, other));
        } else if let Some((room, session)) = &mut room {
            let sessions = known.map(|known| field(known, "sessions").cloned());
            let sessions = sessions.map(|sessions| sessions.unwrap_or(Value::Object(Vec::new())));
            form(book, room, (one, other), sessions.as_ref(), session);
        }
    }
    if let Some((room, _)) = room {
        room.write(book);
    }
}

/// Counts a session in which two blocks were shown together; `sessions` are those before, if the link is forming.
fn form<'a>(
    book: &mut Book<'_>,
    room: &mut LinkRoom<'a>,
    pair: (&'a str, &'a str),
    sessions: Option<&Value>,
    session: &str,
) {
    let Some(sessions) = sessions else {
        if room.make(book, pair) {
            book.link(pair, 0.0, Some(session));
            room.taken(book, pair);
        }
        return;
    };
    if sessions.get(session).is_some() {
        return;
    }
    if sessions.as_object().map_or(0, <[_]>::len) + 1 >= SESSIONS {
        book.link(pair, WEIGHT, None);
        room.left(book, pair);
        return;
    }
    let hours = book.hour_of_link(pair);
    book.change(&ids::edge(pair.0, pair.1), |data| {
        let known = data.remove("sessions").filter(|known| known.as_object().is_some());
        let mut known = known.unwrap_or(Value::Object(Vec::new()));
        known.set(session, Value::Bool(true));
        data.set("sessions", known);
        data.set("last_active_hours", Value::Float(hours));
    });
    room.taken(book, pair);
}
