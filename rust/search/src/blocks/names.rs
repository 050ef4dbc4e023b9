//! Numbers for names, found in both directions.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Distinct names, numbered in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct NumberedNames {
    names: Vec<Box<str>>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl NumberedNames {
    /// The number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The name with a number.
    pub fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// All names, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..).zip(self.names.iter().map(|name| &**name))
    }

    /// The number of a name, if it was added.
    pub fn find(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.numbers
            .find(hash, |&number| *self.names[number as usize] == *name)
            .copied()
    }

    /// The number of a name, which is added if it is new.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.find(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        let Self { names, numbers, hasher } = self;
        numbers.insert_unique(hasher.hash_one(name), number, |&number| {
            hasher.hash_one(&*names[number as usize])
        });
        number
    }
}
