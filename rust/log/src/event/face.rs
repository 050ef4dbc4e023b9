//! The types with which a face declares its prefixes, indexes, networks, acts and ties.

use super::tie::Tie;
use crate::acts::Rules;

/// A face.
#[derive(Debug)]
pub struct Face {
    /// Its name.
    pub name: &'static str,
    /// What its ids begin with, up to a colon. Nobody else may write such ids.
    pub prefixes: &'static [&'static str],
    /// What its records are looked up by.
    pub indexes: &'static [FaceIndex],
    /// Which of its records join others to a network.
    pub networks: &'static [Network],
    /// Which of its records call others by less than their ids.
    pub calls: &'static [Call],
    /// What follows from its acts, if it has any.
    pub acts: Option<&'static Rules>,
    /// Which of its records a rule makes something of, if there are any.
    pub sorting: Option<&'static Sorting>,
    /// How its records name others.
    pub ties: &'static [Tie],
}

/// Records with one prefix call those of another by what follows it: a link between `a` and `b` means `of:a` and `of:b`.
#[derive(Debug)]
pub struct Call {
    /// The prefix of those who call, with its colon.
    pub by: &'static str,
    /// The prefix of those who are called, likewise.
    pub of: &'static str,
}

/// Records that follow each other, each of which may take the place of what was said before: what a rule makes of them is said
/// by what stands in these fields. A record that lacks the text, its source, its moment or its meaning is passed over.
#[derive(Debug)]
pub struct Sorting {
    /// What their ids begin with, with its colon.
    pub prefix: &'static str,
    /// The names of a scope that say whose a record is; the first tells for whom something is made of it.
    pub owner: [&'static str; 2],
    /// The field with what was said: a text.
    pub content: &'static str,
    /// The field that tells where it comes from: a text.
    pub source: &'static str,
    /// The field that tells when it was said: a moment with its time zone.
    pub time: &'static str,
    /// The field that tells what is meant by it: an object, which has the keys below, or some of them.
    pub meaning: &'static str,
    /// What is intended: `update`, `delete` or `noop`.
    pub intent: &'static str,
    /// What is replaced: a name or an array of names.
    pub replaces: &'static str,
    /// How sure it is: a number from 0 to 1.
    pub confidence: &'static str,
    /// What is said of what: a subject, a predicate and an object. Two records with the same first two speak of the same.
    pub said: [&'static str; 3],
}

/// What records of a kind are looked up by. An array stands for each of its elements, an object for each of its keys.
#[derive(Debug)]
pub struct FaceIndex {
    /// Its name, that of the face in front.
    pub name: &'static str,
    /// The kind of the records.
    pub kind: &'static str,
    /// Their status; nothing for any.
    pub status: &'static str,
    /// The fields that are given in a lookup, each as the keys that lead to it. Records that lack one are not found.
    pub by: &'static [&'static [&'static str]],
    /// The field that orders what is found; records that lack it, or have null there, come last. Of those that are alike, the older comes first.
    pub then: &'static [&'static str],
}

/// Records that join two others each: what is joined can be walked from one to the next.
#[derive(Debug)]
pub struct Network {
    /// Its name, that of the face in front.
    pub name: &'static str,
    /// The index that leads from an end to the records that join it to others. It is by one field.
    pub by_source: &'static str,
    /// The index that leads from the other end to them, likewise.
    pub by_target: &'static str,
    /// Where a record that joins says of which kind it is.
    pub kind: &'static [&'static str],
    /// The index of those that are joined, by their kind.
    pub ends: &'static str,
    /// What the ids of those begin with; the rest of an id is how they are called by who joins them.
    pub prefix: &'static str,
}
