//! Which links of a block are only forming?
//!
//! No index is at hand when a rule is applied, so a block keeps a list of the other ends under `data.forming`. It may name
//! links that count by now or are gone: whoever needs to know looks at the links.

use std::collections::{BTreeSet, HashMap};

use super::book::{Book, FORMING, field, number, status};
use super::ids;
use crate::json::Value;

/// So many a block has at most.
const MOST_OF_A_BLOCK: usize = 20;

/// Room for more of these links in a session.
pub struct Room<'a> {
    session: &'a str,
    /// The other ends, by block.
    others: HashMap<&'a str, BTreeSet<String>>,
}

impl<'a> Room<'a> {
    /// Nothing is looked at yet.
    pub fn of(session: &'a str) -> Self {
        Self {
            session,
            others: HashMap::new(),
        }
    }

    /// Sees to it that two blocks may have one more; says whether they may. What was seen least, and longest ago, gives way;
    /// but not what was seen in this session.
    pub fn make(&mut self, book: &mut Book<'_>, pair: (&'a str, &'a str)) -> bool {
        let mut giving_way = Vec::new();
        for block in [pair.0, pair.1] {
            if self.listed(book, block).len() < MOST_OF_A_BLOCK {
                continue;
            }
            self.look(book, block);
            if self.listed(book, block).len() < MOST_OF_A_BLOCK {
                continue;
            }
            match self.weakest(book, block) {
                Some(other) => giving_way.push((block, other)),
                None => return false,
            }
        }
        for (block, other) in giving_way {
            book.delete(&ids::edge(block, &other));
            self.remove(block, &other);
            self.remove(&other, block);
        }
        true
    }

    /// Takes note of a new one, or of one that was seen again.
    pub fn taken(&mut self, book: &mut Book<'_>, pair: (&'a str, &'a str)) {
        for (block, other) in [pair, (pair.1, pair.0)] {
            self.listed(book, block).insert(other.to_owned());
        }
    }

    /// Takes note that one counts from now on.
    pub fn left(&mut self, book: &mut Book<'_>, pair: (&'a str, &'a str)) {
        for (block, other) in [pair, (pair.1, pair.0)] {
            self.listed(book, block).remove(other);
        }
    }

    /// Writes the lists down that are other than they were.
    pub fn write(mut self, book: &mut Book<'_>) {
        let mut blocks: Vec<&str> = self.others.keys().copied().collect();
        blocks.sort_unstable();
        for block in blocks {
            if self.listed(book, block).len() > MOST_OF_A_BLOCK {
                self.look(book, block);
            }
            let others = self.others.remove(block).unwrap_or_default();
            if others == list_of(book, block) {
                continue;
            }
            book.change(&ids::block(block), |data| {
                if others.is_empty() {
                    data.remove("forming");
                } else {
                    data.set("forming", Value::Array(others.into_iter().map(Value::Str).collect()));
                }
            });
        }
    }

    fn listed(&mut self, book: &mut Book<'_>, block: &'a str) -> &mut BTreeSet<String> {
        self.others.entry(block).or_insert_with(|| list_of(book, block))
    }

    fn remove(&mut self, block: &str, other: &str) {
        if let Some(others) = self.others.get_mut(block) {
            others.remove(other);
        }
    }

    /// Strikes out what is not forming any more.
    fn look(&mut self, book: &mut Book<'_>, block: &'a str) {
        self.listed(book, block).retain(|other| {
            let record = book.record(ids::EDGE, &ids::edge(block, other));
            record.is_some_and(|record| status(record) == FORMING)
        });
    }

    /// The other end of the link that was seen least, and longest ago, in other sessions.
    fn weakest(&mut self, book: &mut Book<'_>, block: &'a str) -> Option<String> {
        let others: Vec<String> = self.listed(book, block).iter().cloned().collect();
        let mut found: Option<((usize, f64, String), String)> = None;
        for other in others {
            let id = ids::edge(block, &other);
            let Some(record) = book.record(ids::EDGE, &id) else {
                continue;
            };
            let sessions = field(record, "sessions");
            if sessions.is_some_and(|sessions| sessions.get(self.session).is_some()) {
                continue;
            }
            let count = sessions.and_then(Value::as_object).map_or(0, <[_]>::len);
            let seen = number(record, "last_active_hours");
            let seen = seen.unwrap_or_else(|| last_used(book, [block, &other]));
            let promise = (count, seen, id);
            let is_weaker = |(least, _): &((usize, f64, String), String)| {
                let order = promise.0.cmp(&least.0).then(promise.1.total_cmp(&least.1));
                order.then_with(|| promise.2.cmp(&least.2)).is_lt()
            };
            if found.as_ref().is_none_or(is_weaker) {
                found = Some((promise, other));
            }
        }
        found.map(|(_, other)| other)
    }
}

/// When both ends of a link were used that does not say it: the earlier of the hours of those that are active.
fn last_used(book: &mut Book<'_>, ends: [&str; 2]) -> f64 {
    let mut earliest: Option<f64> = None;
    for end in ends {
        if let Some(record) = book.active_block(end) {
            let used = number(record, "last_reinforced_at").unwrap_or(0.0);
            earliest = Some(earliest.map_or(used, |known| known.min(used)));
        }
    }
    earliest.unwrap_or(0.0)
}

fn list_of(book: &mut Book<'_>, block: &str) -> BTreeSet<String> {
    let record = book.record(ids::BLOCK, &ids::block(block));
    let list = record.and_then(|record| field(record, "forming")?.as_array());
    let names = list.unwrap_or_default().iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}
