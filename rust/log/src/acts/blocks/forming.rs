//! The list of forming links that a block keeps, and which of them make room for others.
//!
//! A rule has no index at hand, so a block lists the other ends under `data.forming`. Some of them may count by now or
//! be gone: readers look at the links themselves.

use std::collections::{BTreeSet, HashMap};

use super::book::{Book, TOMBSTONE, field, number};
use super::ids;
use crate::json::Value;

/// So many a block has at most.
const MOST_OF_A_BLOCK: usize = 20;

/// Room for more of these links in a session.
pub struct LinkRoom<'a> {
    session: &'a str,
    lists: HashMap<&'a str, Listed>,
}

/// The links of a block that are forming.
#[derive(Default)]
struct Listed {
    /// Their other ends; once they were looked at, only of those that still are.
    others: BTreeSet<String>,
    /// Those that were looked at and may give way.
    weak: Option<Vec<Weak>>,
}

/// A link that may give way: the lowest does first.
struct Weak {
    sessions: usize,
    hours: f64,
    edge: String,
    other: String,
}

impl Listed {
    fn of(book: &mut Book<'_>, block: &str) -> Self {
        Self {
            others: list_of(book, block),
            weak: None,
        }
    }

    /// Strikes out what is not forming any more, and finds what may give way. Later changes of the act are applied to it.
    fn look(&mut self, book: &mut Book<'_>, block: &str, session: &str) {
        if self.weak.is_some() {
            return;
        }
        let mut weak = Vec::new();
        self.others.retain(|other| {
            let edge = ids::edge(block, other);
            let Some(seen) = book.forming(&edge, session) else {
                return false;
            };
            if !seen.is_now {
                weak.push(Weak {
                    sessions: seen.sessions,
                    hours: seen.hours.unwrap_or_else(|| last_used(book, [block, other])),
                    edge,
                    other: other.clone(),
                });
            }
            true
        });
        self.weak = Some(weak);
    }

    fn weakest(&self) -> Option<&Weak> {
        self.weak.iter().flatten().min_by(|one, other| {
            let order = one.sessions.cmp(&other.sessions);
            let order = order.then(one.hours.total_cmp(&other.hours));
            order.then_with(|| one.edge.cmp(&other.edge))
        })
    }

    /// It may not give way: it was seen in this session, or is gone.
    fn spare(&mut self, other: &str) {
        if let Some(weak) = &mut self.weak {
            weak.retain(|one| one.other != other);
        }
    }

    fn strike(&mut self, other: &str) {
        self.others.remove(other);
        self.spare(other);
    }
}

impl<'a> LinkRoom<'a> {
    /// Nothing is looked at yet.
    pub fn of(session: &'a str) -> Self {
        Self {
            session,
            lists: HashMap::new(),
        }
    }

    /// Makes room for one more link of two blocks, if links from other sessions can go: the least and longest ago seen.
    pub fn make(&mut self, book: &mut Book<'_>, pair: (&'a str, &'a str)) -> bool {
        let mut giving_way = Vec::new();
        for block in [pair.0, pair.1] {
            let session = self.session;
            let list = self.list(book, block);
            if list.others.len() >= MOST_OF_A_BLOCK {
                list.look(book, block, session);
            }
            if list.others.len() < MOST_OF_A_BLOCK {
                continue;
            }
            match list.weakest() {
                Some(weakest) => giving_way.push((block, weakest.other.clone())),
                None => return false,
            }
        }
        for (block, other) in giving_way {
            let edge = ids::edge(block, &other);
            if book.record(ids::EDGE, &edge).is_some() {
                book.set(&edge, "status", Value::from(TOMBSTONE));
            }
            for (one, another) in [(block, other.as_str()), (other.as_str(), block)] {
                if let Some(list) = self.lists.get_mut(one) {
                    list.strike(another);
                }
            }
        }
        true
    }

    /// Takes note of a new one, or of one that was seen again.
    pub fn taken(&mut self, book: &mut Book<'_>, pair: (&'a str, &'a str)) {
        for (block, other) in [pair, (pair.1, pair.0)] {
            let list = self.list(book, block);
            list.others.insert(other.to_owned());
            list.spare(other);
        }
    }

    /// Takes note that one counts from now on.
    pub fn left(&mut self, book: &mut Book<'_>, pair: (&'a str, &'a str)) {
        for (block, other) in [pair, (pair.1, pair.0)] {
            self.list(book, block).strike(other);
        }
    }

    /// Writes the lists down that are other than they were.
    pub fn write(mut self, book: &mut Book<'_>) {
        let mut blocks: Vec<&str> = self.lists.keys().copied().collect();
        blocks.sort_unstable();
        for block in blocks {
            let mut list = self.lists.remove(block).unwrap_or_default();
            if list.others.len() > MOST_OF_A_BLOCK {
                list.look(book, block, self.session);
            }
            if list.others == list_of(book, block) {
                continue;
            }
            book.change(&ids::block(block), |data| {
                if list.others.is_empty() {
                    data.remove("forming");
                } else {
                    let others = list.others.into_iter().map(Value::Str);
                    data.set("forming", Value::Array(others.collect()));
                }
            });
        }
    }

    fn list(&mut self, book: &mut Book<'_>, block: &'a str) -> &mut Listed {
        self.lists.entry(block).or_insert_with(|| Listed::of(book, block))
    }
}

/// When both ends of a link were used that does not say it: the earlier of the hours of those that are active.
fn last_used(book: &mut Book<'_>, ends: [&str; 2]) -> f64 {
    let used = |end| Some(number(book.active_block(end)?, "last_reinforced_at").unwrap_or(0.0));
    ends.into_iter().filter_map(used).reduce(f64::min).unwrap_or(0.0)
}

fn list_of(book: &mut Book<'_>, block: &str) -> BTreeSet<String> {
    let record = book.record(ids::BLOCK, &ids::block(block));
    let list = record.and_then(|record| field(record, "forming")?.as_array());
    let names = list.unwrap_or_default().iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}
