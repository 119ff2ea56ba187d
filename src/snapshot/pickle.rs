//! A pickle of plain data, read without running anything.
//!
//! The format is a program for a small stack machine, described in `Lib/pickletools.py` of CPython.
//! Of its instructions only those are known here that make plain data; those that import or call
//! something are refused by their names, wherever they stand. Protocols 2 to 5 are read, which is
//! what Python 3 writes.

use super::tree::{Id, MOST, MOST_ENTRIES, NOTHING, Node, Tree};

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
        memo: Vec::new(),
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
    /// Keys are numbers that are given in order.
    memo: Vec<Option<Id>>,
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
                self.check_size()
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
            (Node::Map(map), b's' | b'u') if map.len() + items.len() / 2 <= MOST_ENTRIES => {
                map.extend(pairs(items)?);
            }
            (Node::Map(_), b's' | b'u') => {
                return Err("it has a map of too many entries".to_owned());
            }
            _ => return Err("it puts items into what holds none".to_owned()),
        }
        self.push_id(target)
    }

    fn remember(&mut self, code: u8) -> Result<(), String> {
        let key = match code {
            0x94 => self.memo.len(),
            b'q' | b'h' => self.input.number(1)? as usize,
            _ => self.input.number(4)? as usize,
        };
        if matches!(code, b'h' | b'j') {
            let known = self.memo.get(key).copied().flatten();
            return self.push_id(known.ok_or_else(|| format!("it recalls {key}, which is unset"))?);
        }
        let top = self.pop()?;
        if key >= MOST {
            return Err(too_large());
        }
        if key >= self.memo.len() {
            self.memo.resize(key + 1, None);
        }
        self.memo[key] = Some(top);
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
        self.check_size()
    }

    /// What is under way takes memory too.
    fn check_size(&self) -> Result<(), String> {
        let kept = self.stack.len() + self.marks.len();
        if kept < MOST { Ok(()) } else { Err(too_large()) }
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

fn too_large() -> String {
    format!("it takes more than {MOST} values to read")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython 3.11 makes of
    /// `{'a': [1, -2, 2**40, -2**40, 1.5, None, True, ('x', 'y'), ('x', 'y', 'x', 'y')], 'b': 'x'}`.
    const PROTOCOL_2: &[u8] = b"\
        \x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\
        \x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xffG?\xf8\x00\x00\x00\x00\x00\
        \x00N\x88X\x01\x00\x00\x00xq\x03X\x01\x00\x00\x00yq\x04\x86q\x05(h\x03h\x04h\x03\
        h\x04tq\x06eX\x01\x00\x00\x00bq\x07h\x03u.";
    const PROTOCOL_4: &[u8] = b"\
        \x80\x04\x95J\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\
        \xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xffG?\xf8\
        \x00\x00\x00\x00\x00\x00N\x88\x8c\x01x\x94\x8c\x01y\x94\x86\x94(h\x03h\x04h\x03h\
        \x04t\x94e\x8c\x01b\x94h\x03u.";
    const SMALL: &[u8] = include_bytes!("../../tests/snapshots/small.pickle");

    #[test]
    fn plain_data_is_read_in_every_protocol_of_python_3() {
        for bytes in [PROTOCOL_2, PROTOCOL_4] {
            let tree = read(bytes).unwrap();
            let items = tree.list(tree.field(tree.root(), "a").unwrap()).unwrap();
            let numbers: Vec<_> = items[..6].iter().map(|id| tree.node(*id)).collect();
            let expected = [
                &Node::Integer(1),
                &Node::Integer(-2),
                &Node::Integer(1 << 40),
                &Node::Integer(-(1 << 40)),
                &Node::Number(1.5),
                &Node::Nothing,
            ];
            assert_eq!(numbers, expected);
            assert_eq!(items[6], Tree::flag(true));
            let words = |id: Id| -> Vec<_> {
                tree.list(id).unwrap().iter().map(|word| tree.text(*word).unwrap()).collect()
            };
            assert_eq!(words(items[7]), ["x", "y"]);
            assert_eq!(words(items[8]), ["x", "y", "x", "y"]);
            assert_eq!(tree.text(tree.field(tree.root(), "b").unwrap()), Some("x"));
        }
    }

    #[test]
    fn what_a_small_file_has_remembered_without_end_is_refused() {
        for endless in [&b"\x94"[..], b"N", b"("] {
            let bytes = [b"\x80\x04N", &endless.repeat(MOST + 1)[..], b"."].concat();
            assert_eq!(read(&bytes).unwrap_err(), too_large(), "{endless:?}");
        }
        let far = [b"\x80\x04Nr", &u32::MAX.to_le_bytes()[..], b"."].concat();
        assert_eq!(read(&far).unwrap_err(), too_large());
        let wide = [b"\x80\x04}(", &b"NN".repeat(MOST_ENTRIES + 1)[..], b"u."].concat();
        assert!(read(&wide).unwrap_err().contains("too many entries"));
    }

    #[test]
    fn what_would_run_code_is_refused_by_its_name() {
        let system: [(&[u8], &str); 9] = [
            (b"\x80\x02cposix\nsystem\nX\x02\0\0\0id\x85R.", "GLOBAL posix system"),
            (
                b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
                "STACK_GLOBAL posix system",
            ),
            (b"\x80\x02(X\x02\0\0\0idiposix\nsystem\n.", "INST posix system"),
            (b"\x80\x04N)R.", "REDUCE"),
            (b"\x80\x04N}b.", "BUILD"),
            (b"\x80\x04(No.", "OBJ"),
            (b"\x80\x04N)\x81.", "NEWOBJ"),
            (b"\x80\x04N)}\x92.", "NEWOBJ_EX"),
            (b"\x80\x02\x82\x01.", "EXT"),
        ];
        for (bytes, name) in system {
            let reason = read(bytes).unwrap_err();
            assert!(reason.contains(&format!("`{name}`")), "{reason}");
        }
        let reason = read(b"\x80\x02c\x1b[2J\nsystem\n.").unwrap_err();
        assert!(!reason.contains('\x1b'), "a name does nothing to a terminal");
    }

    #[test]
    fn what_breaks_off_is_refused_wherever_it_does() {
        for length in 0..SMALL.len() {
            assert!(read(&SMALL[..length]).is_err(), "after {length} bytes");
        }
        assert!(read(SMALL).is_ok());
    }

    #[test]
    fn depth_cycles_and_lengths_that_lie_cost_nothing() {
        let deep =
            [b"\x80\x04".as_slice(), &b"]".repeat(1 << 20), &b"a".repeat((1 << 20) - 1), b"."];
        assert!(read(&deep.concat()).is_ok());
        assert!(read(b"\x80\x04]\x94h\x00a.").is_ok(), "a list in itself");
        for lie in [
            &b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."[..],
            b"\x80\x04\x8b\xff\xff\xff\xff.",
        ] {
            assert!(read(lie).unwrap_err().starts_with("it breaks off"));
        }
        for wrong in [
            &b"\x80\x04u."[..],
            b"\x80\x04(N\x86.",
            b"\x80\x04Na.",
            b"\x80\x04h\x07.",
            b"\x80\x04.",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
