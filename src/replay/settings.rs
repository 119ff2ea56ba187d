use super::Card;
use crate::snapshot::Begin;

/// Settings that the documentation of PyTorch's allocator offers against fragmentation ("Memory
/// management" of its CUDA notes), each with a value that is common.
const WORTH_TRYING: [&str; 3] =
    ["expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4"];
/// Does something only in a process that limits itself to a part of the memory.
const COLLECTING: &str = "garbage_collection_threshold:0.8";

/// A setting of the allocator to replay with.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// What `PYTORCH_CUDA_ALLOC_CONF` holds; empty is PyTorch's default.
    pub conf: String,
    /// How what was there before the trace is put back.
    pub begin: Begin,
    /// What the process calls `torch.cuda.set_per_process_memory_fraction` with.
    pub memory_fraction: Option<f64>,
    /// The user wants to know of it.
    pub asked: bool,
}

/// All that are to be replayed: the recorded one first, in the recorded segments; then, of a trace
/// that begins in the midst, the same afresh, as all others are; then those worth trying on this card,
/// and those asked for.
pub fn settings(
    recorded: &str,
    whole: bool,
    asked: &[String],
    card: Option<&Card>,
) -> Vec<Setting> {
    let setting = |conf: &str| Setting {
        conf: conf.to_owned(),
        begin: Begin::Afresh,
        memory_fraction: None,
        asked: false,
    };
    let mut all = vec![setting(recorded)];
    // With it, what is asked for by its recorded size comes out larger.
    if !whole && !recorded.contains("roundup_power2_divisions") {
        all.insert(0, Setting { begin: Begin::AsRecorded, ..setting(recorded) });
    }
    let mut others = vec![setting("")];
    others.extend(WORTH_TRYING.map(setting));
    others.extend(
        card.map(|card| Setting { memory_fraction: Some(fraction(card)), ..setting(COLLECTING) }),
    );
    others.extend(asked.iter().map(|conf| Setting { asked: true, ..setting(conf) }));
    for other in others {
        match all.iter_mut().find(|it| it.conf == other.conf && it.begin == other.begin) {
            Some(same) => same.asked |= other.asked,
            None => all.push(other),
        }
    }
    all
}

/// The part of what CUDA calls its memory that the allocator can have beside the context, in whole
/// hundredths.
fn fraction(card: &Card) -> f64 {
    let left = card.budget().budget.saturating_sub(card.context());
    let hundredths = left.get() as f64 / card.budget().usable.get() as f64 * 100.0;
    hundredths.floor() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[Setting]) -> Vec<(&str, Begin, bool)> {
        all.iter().map(|it| (it.conf.as_str(), it.begin, it.asked)).collect()
    }

    #[test]
    fn the_recorded_setting_comes_first_and_no_setting_twice() {
        let asked = ["max_split_size_mb:128".to_owned(), "max_split_size_mb:64".to_owned()];
        let all = settings("expandable_segments:True", true, &asked, None);
        let expected = [
            ("expandable_segments:True", Begin::Afresh, false),
            ("", Begin::Afresh, false),
            ("max_split_size_mb:128", Begin::Afresh, true),
            ("roundup_power2_divisions:4", Begin::Afresh, false),
            ("max_split_size_mb:64", Begin::Afresh, true),
        ];
        assert_eq!(names(&all), expected);
    }

    #[test]
    fn what_begins_in_the_midst_is_replayed_as_it_lay_and_as_the_others_are() {
        let all = settings("", false, &[], None);
        assert_eq!(names(&all)[..2], [("", Begin::AsRecorded, false), ("", Begin::Afresh, false)]);
        // Its blocks would come out larger than they were.
        let rounded = settings("roundup_power2_divisions:8", false, &[], None);
        assert_eq!(names(&rounded)[0], ("roundup_power2_divisions:8", Begin::Afresh, false));
    }
}
