//! A scope as up to three names, and its spellings.

use std::sync::Arc;

use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::json::{self, Value, members};

/// The names that a scope may have, in the order in which they own: a record with a user is that user's.
pub const LEVELS: [&str; 3] = ["user", "agent", "session"];
/// How long a name may be in UTF-8.
pub const MAX_NAME_BYTES: usize = 256;
const DIGITS: usize = 16;
/// Ends a name: no name holds it.
const END: u8 = 0;

/// Some of three names; none of them is what all share.
///
/// Kept as one text (level of the owner, owner, other names), so that all scopes of an owner sort together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<[u8]>);

/// Refuses a name that cannot stand in a scope, with `Argument`.
pub fn check_name(level: &str, name: &str) -> Result<()> {
    let is_unseen = |c: char| matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    if name.is_empty() {
        return Err(Error::argument(
            level,
            "non-empty text expected, got ''; leave it out for what is shared",
        ));
    }
    if name.len() > MAX_NAME_BYTES {
        let bytes = name.len();
        return Err(Error::argument(
            level,
            format!("at most {MAX_NAME_BYTES} bytes of UTF-8 expected, got {bytes}"),
        ));
    }
    match name.chars().find(|&c| is_unseen(c)) {
        Some(c) => Err(Error::argument(
            level,
            format!("no control characters expected, got U+{:04X}", u32::from(c)),
        )),
        None => Ok(()),
    }
}

impl Scope {
    /// The scope of these names: user, agent, session. Errors: `Argument` for a name that is none.
    pub fn new(names: [Option<&str>; 3]) -> Result<Self> {
        for (level, name) in LEVELS.iter().zip(names) {
            name.map_or(Ok(()), |name| check_name(level, name))?;
        }
        Ok(Self::of(names))
    }

    /// Some of the three names, which are names.
    pub fn of(mut names: [Option<&str>; 3]) -> Self {
        let Some(owner) = names.iter().position(Option::is_some) else {
            return Self::default();
        };
        let mut text = vec![owner as u8 + 1];
        text.extend_from_slice(names[owner].take().unwrap_or_default().as_bytes());
        text.push(END);
        for name in &names[1..] {
            text.extend_from_slice(name.unwrap_or_default().as_bytes());
            text.push(END);
        }
        Self(text.into())
    }

    /// The scope that a canonical value spells; `None` if it spells none.
    pub fn read(value: &[u8]) -> Option<Self> {
        let mut found = [None, None, None];
        for (key, value) in members(value) {
            let level = LEVELS.iter().position(|level| level.as_bytes() == key)?;
            let Ok(Value::Str(name)) = json::parse(value) else {
                return None;
            };
            check_name(LEVELS[level], &name).ok()?;
            found[level] = Some(name);
        }
        Some(Self::of(found.each_ref().map(Option::as_deref))).filter(|scope| !scope.is_shared())
    }

    /// Its canonical spelling as a value.
    pub fn spelled(&self) -> Vec<u8> {
        let mut text = Vec::new();
        self.spell(&mut text);
        text
    }

    /// The same at the end of a text.
    pub fn spell(&self, text: &mut Vec<u8>) {
        let [user, agent, session] = self.names();
        let mut mark = b'{';
        for (level, name) in [("agent", agent), ("session", session), ("user", user)] {
            let Some(name) = name else { continue };
            text.push(mark);
            json::write_string(level, text);
            text.push(b':');
            json::write_string(name, text);
            mark = b',';
        }
        if mark == b'{' {
            text.push(mark);
        }
        text.push(b'}');
    }

    /// The digits that stand for it in ids; nothing for what is shared.
    pub fn digits(&self) -> String {
        if self.is_shared() {
            return String::new();
        }
        sha256(&self.spelled()).text()[..DIGITS].to_owned()
    }

    /// Whether it has no names.
    pub fn is_shared(&self) -> bool {
        self.0.is_empty()
    }

    /// Its names: user, agent, session.
    pub fn names(&self) -> [Option<&str>; 3] {
        let mut names = [None; 3];
        let Some((&level, rest)) = self.0.split_first() else {
            return names;
        };
        let mut parts = rest.split(|&byte| byte == END).map(|part| {
            // INVARIANT: it was made of names.
            std::str::from_utf8(part).ok().filter(|part| !part.is_empty())
        });
        let owner = parts.next().flatten();
        for name in &mut names[1..] {
            *name = parts.next().flatten();
        }
        names[usize::from(level) - 1] = owner;
        names
    }

    /// The name that owns, as its level and itself.
    pub fn owner(&self) -> Option<(usize, &str)> {
        let names = self.names();
        let level = names.iter().position(Option::is_some)?;
        names[level].map(|name| (level, name))
    }

    /// What the texts of all scopes with this owner begin with.
    pub fn owner_key(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == END);
        end.map_or(&[], |end| &self.0[..=end])
    }

    /// It as one text, by which scopes are ordered.
    pub fn key(&self) -> &[u8] {
        &self.0
    }

    /// The first of all scopes with this owner.
    pub fn of_owner(&self) -> Self {
        let mut names = [None; 3];
        if let Some((level, name)) = self.owner() {
            names[level] = Some(name);
        }
        Self::of(names)
    }

    /// The scopes that are wider: made of some of its names, but not of its owner.
    pub fn wider(&self) -> Vec<Self> {
        let Some((owner, _)) = self.owner() else {
            return Vec::new();
        };
        let own = self.names();
        let levels: Vec<usize> = (owner + 1..own.len()).filter(|&level| own[level].is_some()).collect();
        let some = |choice: u32| {
            let mut names = [None; 3];
            for (bit, &level) in levels.iter().enumerate() {
                names[level] = own[level].filter(|_| choice >> bit & 1 == 1);
            }
            Self::of(names)
        };
        (0..1 << levels.len()).map(some).collect()
    }

    /// The scope whose clock runs for it: without its session, unless that is all it has.
    pub fn of_clock(&self) -> Self {
        match self.names() {
            [None, None, _] => self.clone(),
            [user, agent, _] => Self::of([user, agent, None]),
        }
    }

    /// What joins things of two scopes carries: the names of both together, without a level on which they differ.
    pub fn joined(&self, other: &Self) -> Self {
        let (ours, theirs) = (self.names(), other.names());
        let mut names = [None; 3];
        for (at, name) in names.iter_mut().enumerate() {
            *name = match (ours[at], theirs[at]) {
                (Some(one), Some(another)) if one != another => None,
                (one, another) => one.or(another),
            };
        }
        Self::of(names)
    }

    /// The scope of such a text; `None` if none has it.
    pub fn of_key(key: &[u8]) -> Option<Self> {
        let one = Self(key.into());
        let level = one.0.first().copied().unwrap_or(1);
        (1..=LEVELS.len()).contains(&usize::from(level)).then_some(())?;
        let names = one.names();
        (Self::of(names) == one && Self::new(names).is_ok()).then_some(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(user: &str, agent: &str, session: &str) -> Scope {
        let name = |name: &'static str| Some(name).filter(|name| !name.is_empty());
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        Scope::new([name(leak(user)), name(leak(agent)), name(leak(session))]).expect("good names")
    }

    #[test]
    fn names_are_kept() {
        for names in [
            ["ann", "", ""],
            ["", "sup", ""],
            ["", "", "s1"],
            ["ann", "sup", "s1"],
            ["ann", "", "s1"],
            ["", "sup", "s1"],
            ["a\"b", "Käse", "%_*/.."],
        ] {
            let one = scope(names[0], names[1], names[2]);
            assert_eq!(one.names().map(Option::unwrap_or_default), names);
            assert_eq!(Scope::read(&one.spelled()), Some(one.clone()));
            assert_eq!(Scope::of_key(one.key()), Some(one.clone()));
            assert_eq!(one.digits().len(), DIGITS);
        }
        let shared = Scope::default();
        assert!(shared.is_shared() && shared.names() == [None; 3] && shared.owner().is_none());
        assert!(shared.digits().is_empty() && shared.owner_key().is_empty());
        assert_eq!(Scope::of_key(b""), Some(shared));
        for wrong in [
            &b"\x01"[..],
            b"\x01ann",
            b"\x01ann\0",
            b"\x04a\0\0\0",
            b"\x01a\0\0\0\0",
            b"\x01\xff\0\0\0",
            b"a",
        ] {
            assert_eq!(Scope::of_key(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_spelling_is_canonical() {
        assert_eq!(
            scope("ann", "sup", "s1").spelled(),
            br#"{"agent":"sup","session":"s1","user":"ann"}"#
        );
        assert_eq!(scope("", "", "s\"").spelled(), br#"{"session":"s\""}"#);
    }

    #[test]
    fn the_scopes_of_an_owner_lie_together() {
        let ann = scope("ann", "", "");
        for own in [scope("ann", "sup", ""), scope("ann", "", "s"), scope("ann", "z", "s")] {
            assert_eq!(own.owner_key(), ann.owner_key());
            assert!(own.key().starts_with(ann.owner_key()));
        }
        for other in [
            scope("anna", "", ""),
            scope("an", "n", ""),
            scope("", "ann", ""),
            scope("", "", "ann"),
        ] {
            assert!(!other.key().starts_with(ann.owner_key()), "{other:?}");
        }
        assert_eq!(scope("", "sup", "s1").owner(), Some((1, "sup")));
    }

    #[test]
    fn what_is_malformed_spells_none() {
        let long = format!(r#"{{"user":"{}"}}"#, "x".repeat(MAX_NAME_BYTES + 1));
        for wrong in [
            "null",
            "\"ann\"",
            "[]",
            "{}",
            "7",
            r#"{"user":""}"#,
            r#"{"user":null}"#,
            r#"{"user":["ann"]}"#,
            r#"{"user":"ann","x":"y"}"#,
            r#"{"User":"ann"}"#,
            r#"{"user":"a\u0000b"}"#,
            "{\"user\":\"a\u{2028}b\"}",
            "{\"user\":\"a\u{85}b\"}",
            &long,
        ] {
            assert_eq!(Scope::read(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(Scope::read(format!(r#"{{"user":"{}"}}"#, "x".repeat(MAX_NAME_BYTES)).as_bytes()).is_some());
    }
}
