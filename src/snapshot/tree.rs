//! What a file holds, as it stands there: values by number, so that a value that a file names a
//! thousand times is held once, and depth and cycles cost nothing.

use std::collections::HashMap;

/// Most values that a file may hold, and that reading it may keep: of an event there are about
/// eight. A small file can name as many as its packing allows.
pub(super) const MOST: usize = 1 << 25;
/// Most entries of a map: a snapshot's have some twenty, and each is looked through.
pub(super) const MOST_ENTRIES: usize = 1024;

/// A value of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

/// What a value is. A list is also a tuple, and what no snapshot needs is [`Node::Nothing`].
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    Nothing,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(Box<str>),
    List(Vec<Id>),
    Map(Vec<(Id, Id)>),
}

/// Values, and which of them is the whole.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    texts: HashMap<Box<str>, Id>,
    root: Id,
}

/// What `None`, `False` and `True` are in every tree.
pub(super) const NOTHING: Id = Id(0);

impl Tree {
    /// With nothing in it but [`NOTHING`] and the flags.
    pub(super) fn new() -> Self {
        let nodes = vec![Node::Nothing, Node::Flag(false), Node::Flag(true)];
        Self { nodes, texts: HashMap::new(), root: NOTHING }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn add(&mut self, node: Node) -> Result<Id, String> {
        match u32::try_from(self.nodes.len()) {
            Ok(id) if self.nodes.len() < MOST => {
                self.nodes.push(node);
                Ok(Id(id))
            }
            _ => Err(format!("it holds more than {MOST} values")),
        }
    }

    pub(super) fn flag(value: bool) -> Id {
        Id(1 + u32::from(value))
    }

    /// Adds a text; the same one again is the same value, since files repeat their keys.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn add_text(&mut self, text: &str) -> Result<Id, String> {
        if let Some(id) = self.texts.get(text) {
            return Ok(*id);
        }
        let id = self.add(Node::Text(text.into()))?;
        self.texts.insert(text.into(), id);
        Ok(id)
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(super) fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub(super) fn set_root(&mut self, root: Id) {
        self.root = root;
    }

    pub(super) fn root(&self) -> Id {
        self.root
    }

    /// The value of a map's key; of a key that stands there twice the last, as in Python.
    pub(super) fn field(&self, map: Id, key: &str) -> Option<Id> {
        let Node::Map(entries) = self.node(map) else { return None };
        let is = |id: &Id| matches!(self.node(*id), Node::Text(text) if **text == *key);
        entries.iter().rev().find(|(name, _)| is(name)).map(|(_, value)| *value)
    }

    pub(super) fn list(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match self.node(id) {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number that is not negative.
    pub(super) fn count(&self, id: Id) -> Option<u64> {
        match self.node(id) {
            Node::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}
