//! From a [`Tree`] to the [`Snapshot`] that it holds.

use std::collections::{BTreeMap, HashMap};

use super::tree::{Id, Tree};
use super::{Action, Block, Event, Frame, Pool, Releaser, Segment, Snapshot, Stack, Trace};

/// Devices that a snapshot may have: more than any machine.
const MOST_DEVICES: usize = 1024;
/// Frames of one stack that are kept, the innermost.
const MOST_FRAMES: usize = 128;
/// Most blocks and events together. Values may be named again and again, so that a small file could
/// hold any number.
const MOST_ITEMS: usize = 1 << 24;
/// What `torch.cuda.empty_cache` is called in a stack of calls, in Python and in C++.
const EMPTY_CACHE: [&str; 2] = ["empty_cache", "::emptyCache("];

/// Reads it.
///
/// # Errors
/// In words, what is not as in a snapshot.
pub(super) fn snapshot(tree: &Tree) -> Result<Snapshot, String> {
    let root = tree.root();
    if tree.list(root).is_some() {
        return Err("it is a list, as `torch.cuda.memory_snapshot` gives, without a trace".into());
    }
    let traces = tree.field(root, "device_traces").ok_or("it has no `device_traces`")?;
    let traces = tree.list(traces).ok_or("its `device_traces` are no list")?;
    if traces.len() > MOST_DEVICES {
        return Err(format!("it has {} devices", traces.len()));
    }
    let mut reader = Reader {
        tree,
        items: 0,
        releasers: HashMap::new(),
        known: HashMap::new(),
        stacks: Vec::new(),
    };
    let mut segments = reader.segments(root)?;
    let mut devices = Vec::new();
    for (device, trace) in (0..).zip(traces) {
        let (events, unknown_events) =
            reader.events(*trace).map_err(|reason| format!("device_traces[{device}]{reason}"))?;
        let segments = segments.remove(&u64::from(device)).unwrap_or_default();
        let stacks = std::mem::take(&mut reader.stacks);
        reader.known.clear();
        if !events.is_empty() {
            devices.push(Trace { device, events, stacks, segments, unknown_events });
        }
    }
    if devices.is_empty() {
        return Err("no event is recorded in it".to_owned());
    }
    Ok(Snapshot { settings: settings(tree, root), devices })
}

fn settings(tree: &Tree, root: Id) -> String {
    let Some(settings) = tree.field(root, "allocator_settings") else { return String::new() };
    let text = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"]
        .into_iter()
        .find_map(|name| tree.text(tree.field(settings, name)?).filter(|text| !text.is_empty()));
    let expandable = tree.field(settings, "expandable_segments") == Some(Tree::flag(true));
    match text {
        Some(text) => text.to_owned(),
        // Set by a call, which some versions do not put into the text.
        None if expandable => "expandable_segments:True".to_owned(),
        None => String::new(),
    }
}

struct Reader<'a> {
    tree: &'a Tree,
    items: usize,
    releasers: HashMap<Id, Releaser>,
    /// Stacks of the device by the list that holds them, and themselves.
    known: HashMap<Id, u32>,
    stacks: Vec<Stack>,
}

impl Reader<'_> {
    /// Of each device, in order of their addresses.
    fn segments(&mut self, root: Id) -> Result<BTreeMap<u64, Vec<Segment>>, String> {
        let list = self.tree.field(root, "segments").ok_or("it has no `segments`")?;
        let list = self.tree.list(list).ok_or("its `segments` are no list")?;
        let mut devices: BTreeMap<u64, Vec<Segment>> = BTreeMap::new();
        for (index, segment) in list.iter().enumerate() {
            let (device, segment) =
                self.segment(*segment).map_err(|reason| format!("segments[{index}]{reason}"))?;
            devices.entry(device).or_default().push(segment);
        }
        for segments in devices.values_mut() {
            segments.sort_by_key(|segment| segment.address);
        }
        Ok(devices)
    }

    fn segment(&mut self, id: Id) -> Result<(u64, Segment), String> {
        let address = self.count(id, "address")?;
        let bytes = self.count(id, "total_size")?;
        let list = self.tree.field(id, "blocks").and_then(|blocks| self.tree.list(blocks));
        let mut blocks = Vec::new();
        let mut next = address;
        for (index, block) in list.ok_or(" has no list of blocks")?.iter().enumerate() {
            self.charge()?;
            let block =
                self.block(*block, next).map_err(|reason| format!(".blocks[{index}]{reason}"))?;
            next = block.address.checked_add(block.bytes).ok_or("lies beyond all addresses")?;
            blocks.push(block);
        }
        let end = address.checked_add(bytes).ok_or("lies beyond all addresses")?;
        if next > end {
            return Err(" is smaller than its blocks".to_owned());
        }
        let kind = self.tree.field(id, "segment_type").and_then(|kind| self.tree.text(kind));
        let segment = Segment {
            address,
            bytes,
            stream: self.count_or(id, "stream", 0),
            large: kind == Some("large"),
            pool: self.pool(id),
            expandable: self.tree.field(id, "is_expandable") == Some(Tree::flag(true)),
            blocks,
        };
        Ok((self.count_or(id, "device", 0), segment))
    }

    /// Before PyTorch 2.1 a block says only how long it is.
    fn block(&self, id: Id, next: u64) -> Result<Block, String> {
        let bytes = self.count(id, "size")?;
        let address = self.count_or(id, "address", next);
        if address < next {
            return Err(" lies in the one before".to_owned());
        }
        let state = self.tree.field(id, "state").and_then(|state| self.tree.text(state));
        let active = state.ok_or(" has no state")?.starts_with("active");
        Ok(Block { address, bytes, requested: self.count_or(id, "requested_size", bytes), active })
    }

    fn pool(&self, segment: Id) -> Option<Pool> {
        let pair = self.tree.list(self.tree.field(segment, "segment_pool_id")?)?;
        let [first, second] = pair else { return None };
        let pool = (self.tree.count(*first)?, self.tree.count(*second)?);
        (pool != (0, 0)).then_some(pool)
    }

    fn events(&mut self, id: Id) -> Result<(Vec<Event>, u64), String> {
        let list = self.tree.list(id).ok_or(" is no list")?;
        let (mut events, mut unknown) = (Vec::new(), 0);
        for (index, event) in list.iter().enumerate() {
            self.charge()?;
            match self.event(*event).map_err(|reason| format!("[{index}]{reason}"))? {
                Some(event) => events.push(event),
                None => unknown += 1,
            }
        }
        Ok((events, unknown))
    }

    fn event(&mut self, id: Id) -> Result<Option<Event>, String> {
        let action = self.tree.field(id, "action").and_then(|action| self.tree.text(action));
        let action = match action.ok_or(" has no action")? {
            "alloc" => Action::Alloc,
            "free_requested" => Action::FreeRequested,
            "free_completed" => Action::Free,
            "segment_alloc" | "segment_map" => Action::SegmentAlloc,
            "segment_free" | "segment_unmap" => Action::SegmentFree(self.releaser(id)),
            "oom" => Action::OutOfMemory,
            _ => return Ok(None),
        };
        // It says `device_free` instead.
        let address = match action {
            Action::OutOfMemory => 0,
            _ => self.count(id, "addr")?,
        };
        let bytes = self.count(id, "size")?;
        address.checked_add(bytes).ok_or(" lies beyond all addresses")?;
        let stream = self.count_or(id, "stream", 0);
        Ok(Some(Event { action, address, bytes, stream, stack: self.stack(id) }))
    }

    fn stack(&mut self, event: Id) -> Option<u32> {
        let tree = self.tree;
        let list = tree.field(event, "frames")?;
        if let Some(index) = self.known.get(&list) {
            return Some(*index);
        }
        let frame = |id: &Id| {
            let text = |key| Some(tree.text(tree.field(*id, key)?)?.to_owned());
            Frame {
                file: text("filename").unwrap_or_default(),
                line: u32::try_from(self.count_or(*id, "line", 0)).unwrap_or_default(),
                function: text("name").unwrap_or_default(),
            }
        };
        let stack = tree.list(list)?.iter().take(MOST_FRAMES).map(frame).collect();
        let index = u32::try_from(self.stacks.len()).ok()?;
        self.stacks.push(stack);
        self.known.insert(list, index);
        Some(index)
    }

    /// By the stack of calls, where there is one. Events share them.
    fn releaser(&mut self, event: Id) -> Releaser {
        let tree = self.tree;
        let Some(stack) = tree.field(event, "frames") else { return Releaser::Unknown };
        let Some(frames) = tree.list(stack).filter(|frames| !frames.is_empty()) else {
            return Releaser::Unknown;
        };
        *self.releasers.entry(stack).or_insert_with(|| {
            let name = |frame: &Id| tree.text(tree.field(*frame, "name")?);
            let empties = |name: &str| name == EMPTY_CACHE[0] || name.contains(EMPTY_CACHE[1]);
            match frames.iter().filter_map(name).any(empties) {
                true => Releaser::Program,
                false => Releaser::Allocator,
            }
        })
    }

    fn charge(&mut self) -> Result<(), String> {
        self.items += 1;
        match self.items {
            ..=MOST_ITEMS => Ok(()),
            _ => Err(format!(": more than {MOST_ITEMS} events and blocks in all")),
        }
    }

    fn count(&self, map: Id, key: &str) -> Result<u64, String> {
        match self.tree.field(map, key) {
            None => Err(format!(" has no `{key}`")),
            Some(id) => self.tree.count(id).ok_or_else(|| format!(" has no number as `{key}`")),
        }
    }

    fn count_or(&self, map: Id, key: &str, default: u64) -> u64 {
        self.tree.field(map, key).and_then(|id| self.tree.count(id)).unwrap_or(default)
    }
}
