//! Parses a *where* into a condition, and says at which place it is wrong if it is.

use super::like::Pattern;
use super::operand::{Operand, Operands, TYPES};
use super::place::FieldPath;
use super::test::{Clause, Operator, Relation, Test};
use chronolog::error::{Error, Result};
use chronolog::event::stamp::{self, Unclear};
use chronolog::json::{self, Value};

/// How deep wheres may stand in each other, and how deep an operand may go.
const MAX_LEVELS: usize = 32;
const MAX_TESTS: usize = 1_024;
const MAX_OPERANDS: usize = 10_000;
const MAX_BYTES: usize = 1024 * 1024;
/// So much of a text is shown.
const SHOWN_LETTERS: usize = 60;

const MOMENT: &str = "moment";
/// The operator that asks for what is printed of a field.
const TEXT: &str = "text";
/// The key of a path that is given as a list of names.
const PATH: &str = "path";

/// The keys of a where that are not names of fields: what joins tests, two forms of operands, then the operators.
pub const WHERE_KEYS: [&str; 20] = [
    "and", "or", "not", PATH, MOMENT, "eq", "ne", "in", "gt", "gte", "lt", "lte", "starts", "like", "any", "all",
    "under", "type", "exists", TEXT,
];
const NOT_OPERATORS: usize = 5;

/// Reads a where; gives how many tests it has, too.
pub fn parse(text: &[u8]) -> Result<(Clause, usize)> {
    if text.len() > MAX_BYTES {
        let bytes = with_commas(text.len());
        return Err(Error::argument(
            "where",
            format!("{bytes} bytes of JSON; at most 1 MiB"),
        ));
    }
    let value = json::parse(text).map_err(|fault| Error::argument("where", format!("no JSON: {fault}")))?;
    let mut reader = ConditionReader {
        trail: ConditionPath("where".to_owned()),
        tests: 0,
    };
    let node = reader.level(&value, 1)?;
    Ok((node, reader.tests))
}

/// Where in the where we are, as errors name it.
struct ConditionPath(String);

impl ConditionPath {
    fn refused<T>(&self, reason: impl std::fmt::Display) -> Result<T> {
        Err(Error::argument(&self.0, reason))
    }

    fn expected<T>(&self, what: &str, value: &Value) -> Result<T> {
        self.refused(format!("{what} expected, got {}", shown(value)))
    }
}

struct ConditionReader {
    trail: ConditionPath,
    tests: usize,
}

impl ConditionReader {
    /// Reads what stands one step further.
    fn inside<T>(&mut self, step: &str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let length = self.trail.0.len();
        self.trail.0.push_str(step);
        let outcome = read(self);
        self.trail.0.truncate(length);
        outcome
    }

    fn level(&mut self, value: &Value, depth: usize) -> Result<Clause> {
        let Value::Object(pairs) = value else {
            return self.trail.expected("an object", value);
        };
        if depth > MAX_LEVELS {
            return self.trail.refused(format!("more than {MAX_LEVELS} levels deep"));
        }
        if let Some(names) = value.get(PATH) {
            let place = self.inside(".path", |reader| reader.names(names))?;
            let operators = pairs.iter().filter(|(key, _)| key != PATH);
            return self.operators(&place, operators);
        }
        let mut nodes = Vec::new();
        for (key, inner) in pairs {
            nodes.push(match key.as_str() {
                "and" => self.inside(".and", |reader| Ok(Clause::All(reader.several(inner, depth)?)))?,
                "or" => self.inside(".or", |reader| Ok(Clause::Any(reader.several(inner, depth)?)))?,
                "not" => self.inside(".not", |reader| {
                    Ok(Clause::Not(Box::new(reader.level(inner, depth + 1)?)))
                })?,
                path => {
                    let step = format!(".{}", quoted(path));
                    self.inside(&step, |reader| reader.field(path, inner))?
                }
            });
        }
        Ok(joined(nodes))
    }

    fn several(&mut self, value: &Value, depth: usize) -> Result<Vec<Clause>> {
        let Value::Array(wheres) = value else {
            return self.trail.expected("a list of objects", value);
        };
        let read =
            |(at, inner): (usize, &Value)| self.inside(&format!("[{at}]"), |reader| reader.level(inner, depth + 1));
        wheres.iter().enumerate().map(read).collect()
    }

    fn names(&mut self, value: &Value) -> Result<FieldPath> {
        let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
            return self.trail.expected("a list of names", value);
        };
        let mut names = Vec::new();
        for (at, item) in items.iter().enumerate() {
            names.push(self.inside(&format!("[{at}]"), |reader| reader.text(item))?);
        }
        FieldPath::of_names(&names).or_else(|why| self.trail.refused(why))
    }

    /// What stands behind a path: a value, or an object of operators.
    fn field(&mut self, path: &str, value: &Value) -> Result<Clause> {
        let place = match FieldPath::of_text(path) {
            Ok(place) => place,
            Err(why) => {
                let known = FIELD_HINTS.iter().find(|(other, _)| *other == path);
                return match known {
                    Some((_, name)) => self.trail.refused(format!("no such field; write \"{name}\"")),
                    None => self.trail.refused(why),
                };
            }
        };
        match value {
            Value::Object(pairs) if moment_in(value).is_none() => self.operators(&place, pairs.iter()),
            Value::Array(_) => self
                .trail
                .refused("a list needs an operator; write {\"in\": […]} or {\"eq\": […]}"),
            _ => {
                let operand = self.operand(&place, value)?;
                self.test(&place, Operator::Eq(operand))
            }
        }
    }

    fn operators<'a>(&mut self, place: &FieldPath, pairs: impl Iterator<Item = &'a (String, Value)>) -> Result<Clause> {
        let mut nodes = Vec::new();
        for (name, value) in pairs {
            nodes.push(self.operator(place, name, value)?);
        }
        match nodes.is_empty() {
            true => self.trail.refused("no operator; for an object write {\"eq\": {…}}"),
            false => Ok(joined(nodes)),
        }
    }

    fn operator(&mut self, place: &FieldPath, name: &str, value: &Value) -> Result<Clause> {
        if !WHERE_KEYS[NOT_OPERATORS..].contains(&name) {
            let (name, hint) = (quoted(name), operator_hint(name));
            return self.trail.refused(format!("unknown operator {name}; {hint}"));
        }
        self.inside(&format!(".{name}"), |reader| {
            let is_of_moments = matches!(name, "eq" | "ne" | "in" | "gt" | "gte" | "lt" | "lte" | "exists");
            if place.stamp().is_some() && !is_of_moments {
                let words = format!("{place} is a moment; use eq, ne, in, gt, gte, lt, lte or exists");
                return reader.trail.refused(words);
            }
            let wanted = match name {
                "eq" | "ne" => Operator::Eq(reader.operand(place, value)?),
                "in" => Operator::In(Operands::new(reader.operands(place, value)?)),
                "any" => Operator::Any(Operands::new(reader.operands(place, value)?)),
                "all" => Operator::All(Operands::new(reader.operands(place, value)?)),
                "under" => Operator::Under(reader.operands(place, value)?),
                "gt" => Operator::Order(Relation::Gt, reader.ordered(place, value)?),
                "gte" => Operator::Order(Relation::Gte, reader.ordered(place, value)?),
                "lt" => Operator::Order(Relation::Lt, reader.ordered(place, value)?),
                "lte" => Operator::Order(Relation::Lte, reader.ordered(place, value)?),
                "starts" => Operator::Starts(reader.text(value)?),
                "like" => match Pattern::new(&reader.text(value)?) {
                    Some(pattern) => Operator::Like(pattern),
                    None => return reader.trail.refused("ends in an escape; write \\\\ for a backslash"),
                },
                "type" => Operator::Type(reader.types(value)?),
                TEXT => Operator::Text(Box::new(reader.of_text(place, value)?)),
                "exists" => match value {
                    Value::Bool(is_there) => Operator::Exists(*is_there),
                    other => {
                        return reader.trail.expected("true or false", other);
                    }
                },
                _ => return reader.trail.refused("this operator is not read here"),
            };
            let test = reader.test(place, wanted)?;
            Ok(if name == "ne" {
                Clause::Not(Box::new(test))
            } else {
                test
            })
        })
    }

    fn test(&mut self, place: &FieldPath, wanted: Operator) -> Result<Clause> {
        self.tests += 1;
        if self.tests > MAX_TESTS {
            let most = with_commas(MAX_TESTS);
            return Err(Error::argument("where", format!("more than {most} tests")));
        }
        let place = place.clone();
        Ok(Clause::Test(Test { place, wanted }))
    }

    /// What is asked of a field as it is printed: one of the operators that texts have.
    fn of_text(&mut self, place: &FieldPath, value: &Value) -> Result<Operator> {
        let one = match value {
            Value::Object(pairs) => match &pairs[..] {
                [(name, operand)] => Some((name, operand)),
                _ => None,
            },
            _ => None,
        };
        let asked = one.filter(|(name, _)| ["eq", "gt", "gte", "lt", "lte", "starts", "like"].contains(&name.as_str()));
        let Some((name, operand)) = asked else {
            let words = "one of eq, gt, gte, lt, lte, starts and like expected, such as {\"like\": \"7%\"}";
            return self.trail.refused(words);
        };
        self.inside(&format!(".{name}"), |reader| reader.text(operand))?;
        let tests = self.tests;
        let clause = self.operator(place, name, operand)?;
        self.tests = tests;
        match clause {
            Clause::Test(test) => Ok(test.wanted),
            _ => self.trail.refused("no test of a text"),
        }
    }

    fn text(&self, value: &Value) -> Result<String> {
        match value {
            Value::Str(text) => Ok(text.clone()),
            other => self.trail.expected("text", other),
        }
    }

    fn types(&mut self, value: &Value) -> Result<u8> {
        let all = "number, string, bool, null, array, object";
        let one = |reader: &mut Self, value: &Value| match value {
            Value::Str(name) => match TYPES.iter().find(|(known, _)| known == name) {
                Some((_, bit)) => Ok(*bit),
                None => {
                    let name = quoted(name);
                    reader
                        .trail
                        .refused(format!("unknown type {name}; the types are {all}"))
                }
            },
            other => reader.trail.expected("the name of a type", other),
        };
        match value {
            Value::Array(names) if !names.is_empty() => {
                let mut types = 0;
                for (at, name) in names.iter().enumerate() {
                    types |= self.inside(&format!("[{at}]"), |reader| one(reader, name))?;
                }
                Ok(types)
            }
            other => one(self, other),
        }
    }

    fn operands(&mut self, place: &FieldPath, value: &Value) -> Result<Vec<Operand>> {
        let Value::Array(items) = value else {
            return self.trail.expected("a list", value);
        };
        if items.len() > MAX_OPERANDS {
            let (given, most) = (with_commas(items.len()), with_commas(MAX_OPERANDS));
            return self.trail.refused(format!("{given} operands; at most {most}"));
        }
        let read = |(at, item): (usize, &Value)| self.inside(&format!("[{at}]"), |reader| reader.operand(place, item));
        items.iter().enumerate().map(read).collect()
    }

    fn ordered(&mut self, place: &FieldPath, value: &Value) -> Result<Operand> {
        let has_order = matches!(value, Value::Int(_) | Value::Large(_) | Value::Float(_) | Value::Str(_))
            || moment_in(value).is_some();
        if !has_order {
            let given = shown(value);
            return self.trail.refused(format!("{given} has no order; use eq, ne or in"));
        }
        self.operand(place, value)
    }

    fn operand(&mut self, place: &FieldPath, value: &Value) -> Result<Operand> {
        if let Some(moment) = moment_in(value) {
            return self.inside(".moment", |reader| reader.moment(moment));
        }
        if place.stamp().is_some() {
            return self.moment(value);
        }
        self.check_inner(value, 0)?;
        let bytes = value.to_bytes();
        Ok(Operand::of(bytes))
    }

    /// Within an array or an object nothing is a moment, and nothing goes on for ever.
    fn check_inner(&self, value: &Value, depth: usize) -> Result<()> {
        if depth > 0 && moment_in(value).is_some() {
            return self.trail.refused("a moment cannot stand within an array or object");
        }
        let inner: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(pairs) => pairs.iter().map(|(_, value)| value).collect(),
            _ => return Ok(()),
        };
        if depth >= MAX_LEVELS {
            return self.trail.refused(format!("more than {MAX_LEVELS} levels deep"));
        }
        inner
            .into_iter()
            .try_for_each(|value| self.check_inner(value, depth + 1))
    }

    fn moment(&self, value: &Value) -> Result<Operand> {
        match value.as_str().map(stamp::read_zoned) {
            Some(Ok(micros)) => Ok(Operand::Moment(micros)),
            Some(Err(Unclear::NoZone)) => {
                let given = shown(value);
                self.trail
                    .refused(format!("{given} has no time zone; write Z or an offset behind it"))
            }
            Some(Err(Unclear::NoMoment)) | None => {
                self.trail.expected("a moment such as \"2026-05-18T09:00:00Z\"", value)
            }
        }
    }
}

/// The clause that all of some hold.
fn joined(mut clauses: Vec<Clause>) -> Clause {
    match clauses.len() {
        1 => clauses.remove(0),
        _ => Clause::All(clauses),
    }
}

/// Keys that other query languages or `order_by` have, and what they are called here.
const FIELD_HINTS: [(&str, &str); 6] = [
    ("$and", "and"),
    ("$or", "or"),
    ("$not", "not"),
    ("created", "created_at"),
    ("updated", "updated_at"),
    ("happened", "happened_at"),
];

/// What to write in place of an operator that other query languages have.
fn operator_hint(name: &str) -> &'static str {
    match name.trim_start_matches('$').to_ascii_lowercase().as_str() {
        "eq" | "=" | "==" => "write \"eq\"",
        "ne" | "!=" | "<>" => "write \"ne\"",
        "gt" | ">" => "write \"gt\"",
        "gte" | "ge" | ">=" => "write \"gte\"",
        "lt" | "<" => "write \"lt\"",
        "lte" | "le" | "<=" => "write \"lte\"",
        "in" => "write \"in\"",
        "nin" | "not_in" => "write {\"not\": {field: {\"in\": […]}}}",
        "between" | "range" => "write {\"gte\": …, \"lte\": …}",
        "contains" | "includes" | "has" => "for a list write {\"any\": […]}, for a text {\"like\": \"%…%\"}",
        "startswith" | "starts_with" | "prefix" => "write \"starts\"",
        "regex" | "match" | "ilike" | "glob" => "write \"like\": % stands for any text, _ for one character",
        _ => "for an object write {\"eq\": {…}}",
    }
}

/// What an object that stands for a moment says.
fn moment_in(value: &Value) -> Option<&Value> {
    match value.as_object()? {
        [(key, moment)] if key == MOMENT => Some(moment),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Str(text) => quoted(text),
        other => {
            let out = other.to_bytes();
            shortened(&String::from_utf8_lossy(&out))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::write_string(&shortened(text), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn shortened(text: &str) -> String {
    if text.chars().nth(SHOWN_LETTERS).is_none() {
        return text.to_owned();
    }
    text.chars().take(SHOWN_LETTERS - 1).chain(['…']).collect()
}

/// A number as people write it.
pub fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
