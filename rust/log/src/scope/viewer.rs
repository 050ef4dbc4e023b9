//! The one who asks, with the scopes that they see.

use std::collections::BTreeMap;

use super::carried::Carried;
use super::names::Scope;

/// How a record is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAs {
    /// It may be changed.
    Own,
    /// It is only read.
    Wider,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// One who sees everything, and says so.
    Everyone,
    /// One who gives names, or none.
    Named {
        /// The names.
        scope: Scope,
        /// Whether what is wider is seen too.
        shared: bool,
    },
    /// One who also sees what has expired.
    WithExpired(Box<Viewer>),
}

impl Default for Viewer {
    /// One without names: what is shared is seen, not everything.
    fn default() -> Self {
        Self::Named {
            scope: Scope::default(),
            shared: true,
        }
    }
}

impl Viewer {
    /// The same, who also sees what has expired.
    #[must_use]
    pub fn with_expired(self) -> Self {
        match self {
            Self::WithExpired(_) => self,
            other => Self::WithExpired(Box::new(other)),
        }
    }

    /// Whether what has expired is seen.
    pub fn sees_expired(&self) -> bool {
        matches!(self, Self::WithExpired(_))
    }

    /// Who it is, whether what has expired is seen or not.
    pub fn who(&self) -> &Self {
        match self {
            Self::WithExpired(who) => who,
            who => who,
        }
    }

    /// Whether it is one without names.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.who(), Self::Named { scope, shared: true } if scope.is_shared())
    }

    /// Those in an ordered map of scopes that are seen; `None` if all are.
    pub fn choose<T: Copy>(&self, known: &BTreeMap<Carried, T>) -> Option<Vec<T>> {
        let Self::Named { scope, shared } = self.who() else {
            return None;
        };
        let mut seen: Vec<T> = Vec::new();
        // All scopes of an owner lie together; without an owner there is one.
        let own = known.range(Carried::Names(scope.of_owner())..);
        let of_owner = |carried: &Carried| match carried {
            Carried::Names(names) => names.owner_key() == scope.owner_key(),
            Carried::Malformed => false,
        };
        let own = own.take_while(|(carried, _)| of_owner(carried));
        seen.extend(
            own.filter(|(carried, _)| self.sees(carried).is_some())
                .map(|(_, &one)| one),
        );
        if *shared {
            let wider = scope.wider().into_iter().map(Carried::Names);
            seen.extend(wider.filter_map(|wider| known.get(&wider)));
        }
        (seen.len() < known.len()).then_some(seen)
    }

    /// How a record is seen that carries this; `None` if it is not.
    pub fn sees(&self, carried: &Carried) -> Option<SeenAs> {
        let Self::Named { scope, shared } = self.who() else {
            return Some(SeenAs::Own);
        };
        match carried {
            Carried::Malformed => None,
            Carried::Names(names) => see(scope, names, *shared),
        }
    }
}

fn see(given: &Scope, names: &Scope, shared: bool) -> Option<SeenAs> {
    let levels = || given.names().into_iter().zip(names.names());
    let has_owner = given.owner() == names.owner();
    let contradicts = levels().any(|(given, name)| given.is_some() && name.is_some() && given != name);
    let has_all = levels().all(|(given, name)| given.is_none() || given == name);
    if has_owner && !contradicts && (shared || has_all) {
        return Some(SeenAs::Own);
    }
    let is_given = levels().all(|(given, name)| name.is_none() || given == name);
    (shared && is_given).then_some(SeenAs::Wider)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Scope {
        let mut names = [None; 3];
        for part in text.split_whitespace() {
            let level = match part {
                "ann" | "bob" => 0,
                "sup" | "sales" => 1,
                _ => 2,
            };
            names[level] = Some(part);
        }
        Scope::new(names).expect("good names")
    }

    /// The table of the guide, cell by cell: own, wider or not at all.
    #[test]
    fn what_is_seen() {
        let viewers = ["", "sup", "ann", "ann sup", "ann s1", "ann!", "ann s1!"];
        let table = [
            ("", "owwww--"),
            ("sup", "-o-w---"),
            ("s1", "----w--"),
            ("sup s1", "-o-----"),
            ("ann", "--oooo-"),
            ("ann sup", "--oooo-"),
            ("ann s1", "--ooooo"),
            ("ann sales", "--o-oo-"),
            ("ann s2", "--oo-o-"),
            ("bob", "-------"),
            ("bob sup s1", "-------"),
        ];
        for (carries, expected) in table {
            let carried = Carried::Names(named(carries));
            let seen = viewers.map(|viewer| {
                let viewer = Viewer::Named {
                    scope: named(viewer.trim_end_matches('!')),
                    shared: !viewer.ends_with('!'),
                };
                match viewer.sees(&carried) {
                    Some(SeenAs::Own) => 'o',
                    Some(SeenAs::Wider) => 'w',
                    None => '-',
                }
            });
            assert_eq!(seen.iter().collect::<String>(), expected, "{carries:?}");
            assert_eq!(Viewer::Everyone.sees(&carried), Some(SeenAs::Own));
        }
    }

    #[test]
    fn what_is_malformed_is_seen_by_nobody_in_particular() {
        assert_eq!(Viewer::default().sees(&Carried::Malformed), None);
        assert_eq!(Viewer::Everyone.sees(&Carried::Malformed), Some(SeenAs::Own));
    }
}
