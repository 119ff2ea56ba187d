//! A snapshot that was turned into JSON.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::tree::{Id, NOTHING, Node, Tree};

/// Reads JSON.
///
/// # Errors
/// Says in words where it is none.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, String> {
    let mut tree = Tree::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let root = Reader(&mut tree).deserialize(&mut deserializer).map_err(|it| it.to_string())?;
    deserializer.end().map_err(|it| it.to_string())?;
    tree.set_root(root);
    Ok(tree)
}

/// Reads one value into a tree. serde_json goes down 128 levels and no further.
struct Reader<'a>(&'a mut Tree);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Id;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Id, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Reader<'_> {
    fn add<E: serde::de::Error>(self, node: Node) -> Result<Id, E> {
        self.0.add(node).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Id, E> {
        Ok(NOTHING)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Id, E> {
        Ok(Tree::flag(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Id, E> {
        self.add(Node::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Id, E> {
        self.add(i64::try_from(value).map_or(Node::Nothing, Node::Integer))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Id, E> {
        self.add(Node::Number(value))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Id, E> {
        self.0.add_text(value).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Id, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Reader(self.0))? {
            list.push(item);
        }
        self.0.add(Node::List(list)).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Id, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(Reader(self.0))? {
            map.push((key, entries.next_value_seed(Reader(self.0))?));
        }
        self.0.add(Node::Map(map)).map_err(A::Error::custom)
    }
}
