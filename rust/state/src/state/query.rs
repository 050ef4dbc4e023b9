//! The query with which a caller looks for records.

use std::borrow::Cow;
use std::sync::Arc;

use super::catalog::Class;
use super::listing::Listing;
use super::records::State;
use super::rows::Dated;
use super::scopes::Sight;
use super::spelled;
use chronolog::memory::{Refused, gathered};
use chronolog::scope::Viewer;

/// What a caller looks for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Who asks.
    pub viewer: Arc<Viewer>,
    /// Only these kinds.
    pub kinds: Option<Vec<String>>,
    /// Not these kinds, unless `kinds` names them.
    pub without_kinds: Option<Vec<String>>,
    /// Only this status.
    pub status: Option<String>,
    /// At least this confidence.
    pub min_confidence: f64,
    /// At most so many.
    pub limit: Option<usize>,
    /// The faces' records too; a kind that is named includes them anyway.
    pub faces: bool,
}

/// Which slots a query asks for. It is good until the state changes.
#[derive(Clone, Debug)]
pub struct SlotSieve {
    classes: Vec<bool>,
    least: f64,
    pub(super) sight: Sight,
}

impl SlotSieve {
    /// Whether the query asks for the record in a slot.
    pub fn passes(&self, state: &State, slot: u32) -> bool {
        let slot = state.slots.view(slot);
        let is_of_class = self.classes.get(slot.class as usize).copied().unwrap_or(false);
        is_of_class && slot.confidence >= self.least && self.sight.sees(state.scope_of(&slot))
    }
}

impl Query {
    /// Whether records of a class are asked for.
    pub(super) fn wanted(&self) -> impl Fn(&Class) -> bool + use<> {
        let spell = |kinds: &Vec<String>| -> Vec<_> { kinds.iter().map(|kind| spelled(kind)).collect() };
        let kinds = self.kinds.as_ref().map(spell);
        let without = self.without_kinds.as_ref().filter(|_| kinds.is_none()).map(spell);
        let status = self.status.as_deref().map(spelled);
        let faces = self.faces || kinds.is_some();
        move |class| {
            let is_among = |kinds: &Vec<Vec<u8>>| kinds.iter().any(|kind| **kind == *class.kind);
            (faces || !class.face)
                && kinds.as_ref().is_none_or(is_among)
                && !without.as_ref().is_some_and(is_among)
                && status.as_ref().is_none_or(|status| **status == *class.status)
        }
    }

    /// The query, ready to be asked of single slots.
    pub fn sieve(&self, state: &State) -> SlotSieve {
        let (wanted, sight) = (self.wanted(), state.sight(&self.viewer));
        let sees_all = sight.is_of_all_scopes();
        SlotSieve {
            classes: state
                .catalog
                .accepted(|class| wanted(class) && (sees_all || !class.is_of_store())),
            least: self.min_confidence,
            sight,
        }
    }

    /// The canonical records, in the order in which they were made.
    ///
    /// # Errors
    /// `Refused` if there is no memory for the list.
    pub fn records<'a>(&self, state: &'a State) -> Result<Vec<Cow<'a, [u8]>>, Refused> {
        gathered(self.in_order(state)?.map(|slot| state.slots.record(slot)))
    }

    /// The same with their moments.
    ///
    /// # Errors
    /// `Refused` if there is no memory for the list.
    pub fn dated<'a>(&self, state: &'a State) -> Result<Vec<Dated<'a>>, Refused> {
        gathered(self.in_order(state)?.map(|slot| state.dated_in(slot)))
    }

    fn in_order(&self, state: &State) -> Result<impl Iterator<Item = u32> + use<>, Refused> {
        let listing = Listing {
            query: self.clone(),
            ..Listing::default()
        };
        let slots = listing.by_place(state, None, self.limit.unwrap_or(usize::MAX))?;
        Ok(slots.into_iter())
    }

    /// How many records it would find, its limit aside.
    pub fn count(&self, state: &State) -> u64 {
        match self.min_confidence <= 0.0 && state.sight(&self.viewer).is_of_all_scopes() {
            true => self.count_of(state, |_| true, u64::MAX),
            false => self.slots(state, None).count() as u64,
        }
    }

    /// The slots of the records, ascending, its limit aside; among some, which ascend, if given.
    pub fn slots<'a>(&self, state: &'a State, among: Option<Vec<u32>>) -> impl Iterator<Item = u32> + use<'a> {
        let sieve = self.sieve(state);
        // A viewer who sees little costs what is seen, one who sees all what is of the kind and status.
        let some = among.or_else(|| state.scopes.seen(&sieve.sight));
        let classes = some.is_none().then(|| state.catalog.slots(self.wanted()));
        let slots = some.into_iter().flatten().chain(classes.into_iter().flatten());
        slots.filter(move |&slot| sieve.passes(state, slot))
    }

    /// The slots of the classes that it asks for and that fit, ascending; its confidence and limit aside.
    pub fn slots_of<'a>(&self, state: &'a State, fits: impl Fn(&Class) -> bool) -> impl Iterator<Item = u32> + 'a {
        let wanted = self.wanted();
        let fits = move |class: &Class| wanted(class) && fits(class);
        let sight = state.sight(&self.viewer);
        let seen = state.scopes.seen(&sight);
        let accepted = seen.as_ref().map(|_| state.catalog.accepted(&fits)).unwrap_or_default();
        let classes = seen.is_none().then(|| state.catalog.slots(fits));
        let is_accepted = move |slot: &u32| accepted[state.slots.class(*slot) as usize];
        let seen = seen.into_iter().flatten().filter(is_accepted);
        let classes = classes.into_iter().flatten();
        seen.chain(classes.filter(move |&slot| sight.sees(state.scope_in(slot))))
    }

    /// How many there are, but no more than so many are counted one by one.
    pub(crate) fn count_of(&self, state: &State, fits: impl Fn(&Class) -> bool, most: u64) -> u64 {
        let sight = state.sight(&self.viewer);
        let wanted = self.wanted();
        let fits = |class: &Class| wanted(class) && fits(class);
        if sight.is_of_all_scopes() {
            let hidden = state.hidden_in(&sight);
            let hidden = hidden.filter(|&slot| fits(state.catalog.class_of(state.slots.class(slot))));
            let hidden = hidden.count() as u64;
            return state.catalog.count(fits) - hidden;
        }
        let accepted = state.catalog.accepted(fits);
        let numbers = state.scopes.numbers(&sight);
        let seen = numbers.iter().flat_map(|&scope| state.scopes.slots(scope));
        let counted = seen.filter(|&slot| accepted[state.slots.class(slot) as usize]);
        counted.take(usize::try_from(most).unwrap_or(usize::MAX)).count() as u64
    }
}
