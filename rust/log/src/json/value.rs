//! A JSON value, the ways to look into it, and the RFC 7396 merge patch.

use std::fmt;

/// One JSON value. Integers and floats are different things, as they are in Python.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without point and exponent.
    Int(Int),
    /// A number written with a point or an exponent. Finite in every value that came from [`parse`](super::parse).
    Float(f64),
    /// A string.
    Str(String),
    /// An array.
    Array(Vec<Value>),
    /// An object. INVARIANT: pairs are sorted by key and unique; [`Value::object`] sees to that.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// An object from pairs in any order; of two pairs with the same key the later one stays.
    pub fn object<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Value {
        let mut sorted: Vec<(String, Value)> = pairs.into_iter().map(|(key, value)| (key.into(), value)).collect();
        // Both steps are stable, so "the later one" means what the caller wrote last.
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        sorted.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
        Value::Object(sorted)
    }

    /// Its canonical form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        super::write_value(self, &mut bytes);
        bytes
    }

    /// The value under `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let pairs = self.as_object()?;
        let at = pairs.binary_search_by(|pair| pair.0.as_str().cmp(key)).ok()?;
        Some(&pairs[at].1)
    }

    /// Puts `value` under `key`, in its sorted place. Does nothing unless this is an object.
    pub fn set(&mut self, key: &str, value: Value) {
        if let Value::Object(pairs) = self {
            match pairs.binary_search_by(|pair| pair.0.as_str().cmp(key)) {
                Ok(at) => pairs[at].1 = value,
                Err(at) => pairs.insert(at, (key.to_owned(), value)),
            }
        }
    }

    /// Takes the value under `key` out of this object.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let Value::Object(pairs) = self else {
            return None;
        };
        let at = pairs.binary_search_by(|pair| pair.0.as_str().cmp(key)).ok()?;
        Some(pairs.remove(at).1)
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The integer, if this is one and it fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_int()?.as_i64()
    }

    /// The integer, if this is one and it fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_int()?.as_u64()
    }

    /// The number, integer or float, as the nearest finite float.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(float) => Some(*float),
            Value::Int(int) => int.as_f64(),
            _ => None,
        }
    }
}

macro_rules! value_as {
    ($($doc:literal $name:ident $kind:ident $of:ty;)+) => {
        impl Value {
            $(#[doc = $doc]
            pub fn $name(&self) -> Option<&$of> {
                match self {
                    Value::$kind(value) => Some(value),
                    _ => None,
                }
            })+
        }
    };
}

value_as! {
    "The integer, if this is one." as_int Int Int;
    "The string, if this is one." as_str Str str;
    "The items, if this is an array." as_array Array [Value];
    "The sorted pairs, if this is an object." as_object Object [(String, Value)];
}

impl Value {
    /// The truth value, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }
}

macro_rules! value_from {
    ($($from:ty => |$given:ident| $value:expr;)+) => {
        $(impl From<$from> for Value {
            fn from($given: $from) -> Value {
                $value
            }
        })+
    };
}

value_from! {
    &str => |text| Value::Str(text.to_owned());
    String => |text| Value::Str(text);
    i64 => |number| Value::Int(Int::from(number));
    u64 => |number| Value::Int(Int::from(number));
    f64 => |number| Value::Float(number);
    bool => |truth| Value::Bool(truth);
}

/// An integer of any size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Int(Size);

/// INVARIANT: `Large` holds the canonical decimal text of a number that `Small` cannot, so equal means equal fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Size {
    Small(i64),
    Large(Box<str>),
}

impl Int {
    /// The integer that `text` spells: an optional `-` and at least one digit. Leading zeros are dropped, `-0` is 0.
    pub fn from_decimal(text: &str) -> Option<Int> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if let Ok(small) = text.parse::<i64>() {
            return Some(Int(Size::Small(small)));
        }
        let canonical = digits.trim_start_matches('0');
        Some(Int(Size::Large([sign, canonical].concat().into_boxed_str())))
    }

    /// The integer, if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Size::Small(small) => Some(small),
            Size::Large(_) => None,
        }
    }

    /// The integer, if it fits.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Size::Small(small) => u64::try_from(*small).ok(),
            Size::Large(text) => text.parse().ok(),
        }
    }

    /// The nearest float, unless that would be infinite.
    pub fn as_f64(&self) -> Option<f64> {
        match &self.0 {
            // Rounds to nearest, ties to even, as Python's `float(int)` does.
            #[allow(clippy::cast_precision_loss)]
            Size::Small(small) => Some(*small as f64),
            Size::Large(text) => text.parse().ok().filter(|float: &f64| float.is_finite()),
        }
    }

    /// The canonical decimal text of an integer that does not fit into 64 bits; `None` for all others.
    pub fn large_text(&self) -> Option<&str> {
        match &self.0 {
            Size::Small(_) => None,
            Size::Large(text) => Some(text),
        }
    }
}

impl From<i64> for Int {
    fn from(number: i64) -> Int {
        Int(Size::Small(number))
    }
}

impl From<u64> for Int {
    fn from(number: u64) -> Int {
        match i64::try_from(number) {
            Ok(small) => Int(Size::Small(small)),
            Err(_) => Int(Size::Large(number.to_string().into_boxed_str())),
        }
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Size::Small(small) => write!(f, "{small}"),
            Size::Large(text) => f.write_str(text),
        }
    }
}

/// The RFC 7396 merge patch: an object names the members that change, `null` removes one, anything else replaces.
#[must_use]
pub fn merge(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let kept = match target {
        Value::Object(pairs) => pairs,
        // A patch that names members makes an object out of whatever stood here.
        _ => Vec::new(),
    };
    let mut merged = Vec::with_capacity(kept.len() + changes.len());
    let mut kept = kept.into_iter().peekable();
    // Both lists are sorted, so one walk along the two keeps the result sorted.
    for (key, change) in changes {
        while let Some(before) = kept.next_if(|pair| pair.0 < *key) {
            merged.push(before);
        }
        let old = kept.next_if(|pair| pair.0 == *key).map_or(Value::Null, |pair| pair.1);
        if !change.is_null() {
            merged.push((key.clone(), merge(old, change)));
        }
    }
    merged.extend(kept);
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, write_value};
    use super::*;

    #[test]
    fn an_object_is_sorted_and_the_later_pair_wins() {
        let object = Value::object([("b", Value::from(1_i64)), ("a", Value::Null), ("b", Value::from(2_i64))]);
        assert_eq!(object.get("b").and_then(Value::as_i64), Some(2));
        assert_eq!(object.as_object().map(<[_]>::len), Some(2));
        assert_eq!(object.as_object().map(|pairs| pairs[0].0.as_str()), Some("a"));
    }

    #[test]
    fn set_and_remove_keep_the_order() {
        let mut object = Value::object([("b", Value::Null)]);
        object.set("c", Value::from(true));
        object.set("a", Value::from("x"));
        object.set("b", Value::from(0.5));
        let keys: Vec<&str> = object
            .as_object()
            .unwrap_or_default()
            .iter()
            .map(|pair| pair.0.as_str())
            .collect();
        assert_eq!(keys, ["a", "b", "c"]);
        assert_eq!(object.remove("b"), Some(Value::Float(0.5)));
        assert_eq!(object.remove("b"), None);
        assert_eq!(object.get("b"), None);
    }

    #[test]
    fn one_integer_has_one_form() {
        let spelled = |text: &str| Int::from_decimal(text).map(|int| int.to_string());
        assert_eq!(spelled("-0").as_deref(), Some("0"));
        assert_eq!(spelled("-007").as_deref(), Some("-7"));
        assert_eq!(
            spelled("00018446744073709551616").as_deref(),
            Some("18446744073709551616")
        );
        assert_eq!(spelled("-9223372036854775809").as_deref(), Some("-9223372036854775809"));
        assert_eq!(
            Int::from_decimal("0009223372036854775808"),
            Some(Int::from(1_u64 << 63))
        );
        for bad in ["", "-", "+1", "1.0", "1e3", " 1", "--1"] {
            assert_eq!(Int::from_decimal(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_integer_knows_what_it_fits_into() {
        let large = Int::from(u64::MAX);
        assert_eq!((large.as_i64(), large.as_u64()), (None, Some(u64::MAX)));
        assert_eq!(large.as_f64(), Some(18_446_744_073_709_551_616.0));
        let huge = Int::from_decimal(&"9".repeat(400));
        assert_eq!(huge.as_ref().and_then(Int::as_u64), None);
        assert_eq!(huge.as_ref().and_then(Int::as_f64), None);
        assert_eq!(Int::from(-1_i64).as_u64(), None);
    }

    fn merged(target: &str, patch: &str) -> String {
        let mut out = Vec::new();
        match (parse(target.as_bytes()), parse(patch.as_bytes())) {
            (Ok(target), Ok(patch)) => write_value(&merge(target, &patch), &mut out),
            faults => out.extend(format!("{faults:?}").bytes()),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (target, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(target, patch), expected, "{target} + {patch}");
        }
    }

    #[test]
    fn the_walk_keeps_members_on_all_sides() {
        assert_eq!(
            merged(r#"{"a":1,"c":3,"e":5}"#, r#"{"b":2,"c":null,"f":6}"#),
            r#"{"a":1,"b":2,"e":5,"f":6}"#
        );
    }
}
