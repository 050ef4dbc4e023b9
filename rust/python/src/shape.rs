//! Writes many dicts with the same keys: their keys are sorted and spelled once.
//!
//! Dicts that one line of a program makes have the very same key objects in the same order: comparing addresses tells.

use std::sync::Arc;

use chronomemory::write_string;
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;

/// Most dicts have no more keys: they are sorted without asking for memory.
const USUAL_PAIRS: usize = 12;
/// How many shapes are kept; the oldest makes room.
const KEPT_SHAPES: usize = 16;

/// The pairs of a dict, in its own order.
pub type Pairs<'py> = SmallVec<[(Bound<'py, PyString>, Bound<'py, PyAny>); USUAL_PAIRS]>;

/// The keys of a dict, known from one that was written before.
struct Shape {
    /// In the dict's own order. The references keep the addresses from being given to other strings.
    keys: SmallVec<[Py<PyString>; USUAL_PAIRS]>,
    /// The canonical order: for each place which of the keys stands there, and where its spelling ends.
    order: SmallVec<[(usize, usize); USUAL_PAIRS]>,
    /// All that stands between the values: braces, commas, keys, colons.
    spelled: Vec<u8>,
}

impl Shape {
    /// The shape of pairs whose canonical order is `sorted`: places in the dict and keys.
    fn of(pairs: &Pairs<'_>, sorted: &[(usize, &str)]) -> Self {
        let mut spelled = Vec::new();
        let mut order = SmallVec::new();
        for (number, (place, key)) in sorted.iter().enumerate() {
            spelled.push(if number == 0 { b'{' } else { b',' });
            write_string(key, &mut spelled);
            spelled.push(b':');
            order.push((*place, spelled.len()));
        }
        Self {
            keys: pairs.iter().map(|(key, _)| key.clone().unbind()).collect(),
            order,
            spelled,
        }
    }

    fn is_of(&self, pairs: &Pairs<'_>) -> bool {
        self.keys.len() == pairs.len() && self.keys.iter().zip(pairs).all(|(one, (other, _))| one.is(other))
    }
}

/// Shapes of dicts that were written lately.
#[derive(Default)]
pub struct Shapes {
    known: Vec<Arc<Shape>>,
    oldest: usize,
}

impl Shapes {
    /// The shape of a dict, if one like it was written before.
    fn find(&self, pairs: &Pairs<'_>) -> Option<Arc<Shape>> {
        self.known.iter().find(|shape| shape.is_of(pairs)).map(Arc::clone)
    }

    fn learn(&mut self, shape: &Arc<Shape>) {
        if self.known.len() < KEPT_SHAPES {
            self.known.push(Arc::clone(shape));
        } else {
            self.known[self.oldest] = Arc::clone(shape);
            self.oldest = (self.oldest + 1) % KEPT_SHAPES;
        }
    }

    /// Writes a dict that has at least one pair, each value, given by its place, by way of `write`; `refuse` makes an error
    /// of a reason.
    pub fn write<E>(
        &mut self,
        pairs: &Pairs<'_>,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Self, usize, &mut Vec<u8>) -> Result<(), E>,
        refuse: impl Fn(&str) -> E,
    ) -> Result<(), E> {
        let shape = match self.find(pairs) {
            Some(shape) => shape,
            None => {
                let shape = Arc::new(Shape::of(pairs, &in_order(pairs, refuse)?));
                if pairs.len() <= USUAL_PAIRS {
                    self.learn(&shape);
                }
                shape
            }
        };
        let mut start = 0;
        for &(place, end) in &shape.order {
            out.extend_from_slice(&shape.spelled[start..end]);
            start = end;
            write(self, place, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

/// The keys in canonical order, each with its place in the dict.
fn in_order<'a, E>(
    pairs: &'a Pairs<'_>,
    refuse: impl Fn(&str) -> E,
) -> Result<SmallVec<[(usize, &'a str); USUAL_PAIRS]>, E> {
    let mut sorted = SmallVec::with_capacity(pairs.len());
    for (place, (key, _)) in pairs.iter().enumerate() {
        let key = key.to_str().map_err(|_| refuse("half a surrogate pair is not text"))?;
        sorted.push((place, key));
    }
    sorted.sort_unstable_by_key(|(_, key)| *key);
    if sorted.windows(2).any(|pair| pair[0].1 == pair[1].1) {
        return Err(refuse("the same key twice"));
    }
    Ok(sorted)
}
