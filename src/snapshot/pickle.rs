//! A pickle of plain data, read without running anything.
//!
//! The format is a program for a small stack machine, described in `Lib/pickletools.py` of CPython.
//! Of its instructions only those are known here that make plain data; those that import or call
//! something are refused by their names, wherever they stand. Protocols 2 to 5 are read, which is
//! what Python 3 writes.

use std::collections::HashMap;

use super::tree::{Id, NOTHING, Node, Tree};

/// Reads a pickle.
///
/// # Errors
/// Says in words why it is none of plain data, or where it breaks off.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, String> {
    let mut machine = Machine {
        input: Input { bytes, at: 0 },
        tree: Tree::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    let root = machine.run()?;
    let mut tree = machine.tree;
    tree.set_root(root);
    Ok(tree)
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let taken = self.bytes[self.at..].get(..count);
        let taken = taken.ok_or_else(|| format!("it breaks off at byte {}", self.bytes.len()))?;
        self.at += count;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.take(1).map(|byte| byte[0])
    }

    /// A little-endian number of so many bytes, up to eight.
    fn number(&mut self, width: usize) -> Result<u64, String> {
        let mut whole = [0; 8];
        whole[..width].copy_from_slice(self.take(width)?);
        Ok(u64::from_le_bytes(whole))
    }

    /// What a length of so many bytes stands before.
    fn counted(&mut self, width: usize) -> Result<&'a [u8], String> {
        let length = self.number(width)?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn line(&mut self) -> &'a str {
        let rest = &self.bytes[self.at..];
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        self.at += line.len().saturating_add(1).min(rest.len());
        std::str::from_utf8(line).unwrap_or_default()
    }
}

struct Machine<'a> {
    input: Input<'a>,
    tree: Tree,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Id, String> {
        loop {
            let at = self.input.at;
            let code = self.input.byte()?;
            if code == b'.' {
                return self.pop();
            }
            self.step(code, at)?;
        }
    }

    fn step(&mut self, code: u8, at: usize) -> Result<(), String> {
        match code {
            // PROTO, FRAME: how it is laid out, not what it is.
            0x80 => self.input.take(1).map(drop),
            0x95 => self.input.take(8).map(drop),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => self.pop().map(drop),
            b'1' => self.since_mark().map(drop),
            b'N' => self.push_id(NOTHING),
            0x88 | 0x89 => self.push_id(Tree::flag(code == 0x88)),
            b'J' | b'K' | b'M' | 0x8a | 0x8b | b'G' => self.number(code),
            0x8c | b'X' | 0x8d | b'T' | b'U' | b'B' | b'C' | 0x8e | 0x96 => self.text(code),
            b'}' | b']' | b')' | b't' | 0x85..=0x87 | b'd' | b'l' => self.container(code),
            b'a' | b'e' | b's' | b'u' => self.fill(code),
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.remember(code),
            _ => Err(self.refusal(code, at)),
        }
    }

    fn number(&mut self, code: u8) -> Result<(), String> {
        let node = match code {
            b'J' => Node::Integer(i64::from(self.input.number(4)? as u32 as i32)),
            b'K' => Node::Integer(self.input.number(1)? as i64),
            b'M' => Node::Integer(self.input.number(2)? as i64),
            b'G' => Node::Number(f64::from_bits(self.input.number(8)?.swap_bytes())),
            _ => long(self.input.counted(if code == 0x8a { 1 } else { 4 })?),
        };
        self.push(node)
    }

    fn text(&mut self, code: u8) -> Result<(), String> {
        let width = match code {
            0x8c | b'U' | b'C' => 1,
            b'X' | b'T' | b'B' => 4,
            _ => 8,
        };
        let bytes = self.input.counted(width)?;
        match (code, std::str::from_utf8(bytes)) {
            (0x8c | b'X' | 0x8d, Ok(text)) => {
                let id = self.tree.add_text(text)?;
                self.push_id(id)
            }
            // Bytes, and texts with halves of characters in them: no snapshot needs them.
            _ => self.push_id(NOTHING),
        }
    }

    fn container(&mut self, code: u8) -> Result<(), String> {
        let node = match code {
            b'}' => Node::Map(Vec::new()),
            b']' | b')' => Node::List(Vec::new()),
            b't' | b'l' => Node::List(self.since_mark()?),
            b'd' => Node::Map(pairs(self.since_mark()?)?),
            // TUPLE1 to TUPLE3.
            _ => {
                let items = self.stack.len().checked_sub(usize::from(code - 0x84));
                let items = items.filter(|from| *from >= self.floor()).ok_or_else(underflow)?;
                Node::List(self.stack.split_off(items))
            }
        };
        self.push(node)
    }

    fn fill(&mut self, code: u8) -> Result<(), String> {
        let items = match code {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        let target = self.pop()?;
        match (self.tree.node_mut(target), code) {
            (Node::List(list), b'a' | b'e') => list.extend(items),
            (Node::Map(map), b's' | b'u') => map.extend(pairs(items)?),
            _ => return Err("it puts items into what holds none".to_owned()),
        }
        self.push_id(target)
    }

    fn remember(&mut self, code: u8) -> Result<(), String> {
        let key = match code {
            0x94 => self.memo.len() as u64,
            b'q' | b'h' => self.input.number(1)?,
            _ => self.input.number(4)?,
        };
        if matches!(code, b'h' | b'j') {
            let known = self.memo.get(&key).copied();
            return self.push_id(known.ok_or_else(|| format!("it recalls {key}, which is unset"))?);
        }
        let top = self.pop()?;
        self.memo.insert(key, top);
        self.push_id(top)
    }

    /// Below it the items before the last mark lie.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id, String> {
        if self.stack.len() <= self.floor() {
            return Err(underflow());
        }
        self.stack.pop().ok_or_else(underflow)
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or_else(underflow)?;
        Ok(self.stack.split_off(mark))
    }

    fn push(&mut self, node: Node) -> Result<(), String> {
        let id = self.tree.add(node)?;
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<(), String> {
        self.stack.push(id);
        Ok(())
    }

    /// Why an instruction is not followed.
    fn refusal(&mut self, code: u8, at: usize) -> String {
        let top = |below: usize| {
            let id = self.stack.len().checked_sub(below).map(|index| self.stack[index]);
            id.and_then(|id| self.tree.text(id)).unwrap_or("?").to_owned()
        };
        let what = match code {
            b'c' => format!("GLOBAL {} {}", self.input.line(), self.input.line()),
            b'i' => format!("INST {} {}", self.input.line(), self.input.line()),
            0x93 => format!("STACK_GLOBAL {} {}", top(2), top(1)),
            b'R' => "REDUCE".to_owned(),
            b'b' => "BUILD".to_owned(),
            b'o' => "OBJ".to_owned(),
            0x81 => "NEWOBJ".to_owned(),
            0x92 => "NEWOBJ_EX".to_owned(),
            0x82..=0x84 => "EXT".to_owned(),
            b'P' => "PERSID".to_owned(),
            b'Q' => "BINPERSID".to_owned(),
            0x97 | 0x98 => "NEXT_BUFFER".to_owned(),
            _ => return format!("byte {at} is {code:#04x}, which makes no plain data"),
        };
        let what = crate::error::shorten(&what, 80);
        format!("byte {at} would import or call something, `{what}`, which is never done")
    }
}

fn underflow() -> String {
    "it takes more from its stack than there is".to_owned()
}

/// A two's complement number. Of those beyond 64 bits a snapshot has none.
fn long(bytes: &[u8]) -> Node {
    if bytes.len() > 8 {
        return Node::Nothing;
    }
    let sign = bytes.last().map_or(0, |last| if last & 0x80 == 0 { 0 } else { 0xff });
    let mut whole = [sign; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    Node::Integer(i64::from_le_bytes(whole))
}

fn pairs(items: Vec<Id>) -> Result<Vec<(Id, Id)>, String> {
    let (pairs, rest) = items.as_chunks::<2>();
    match rest {
        [] => Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect()),
        _ => Err("it has a key without a value".to_owned()),
    }
}
