use std::fs;
use std::path::Path;

use vramfit::profile::Catalog;
use vramfit::profile::context;
use vramfit::profile::gpu::{Basis, GpuProfile, Segment};
use vramfit::units::Bytes;

use crate::harness::Test;

/// Every GeForce laptop card since Turing, by what people call it.
const GEFORCE_LAPTOPS: &[&str] = &[
    "gtx-1650-laptop",
    "gtx-1650-ti-laptop",
    "gtx-1660-ti-laptop",
    "rtx-2050-laptop",
    "rtx-2060-laptop",
    "rtx-2070-laptop",
    "rtx-2070-super-laptop",
    "rtx-2080-laptop",
    "rtx-2080-super-laptop",
    "rtx-3050-a-laptop",
    "rtx-3050-laptop-4gb",
    "rtx-3050-laptop-4gb-20sm",
    "rtx-3050-laptop-6gb",
    "rtx-3050-ti-laptop",
    "rtx-3060-laptop",
    "rtx-3070-laptop",
    "rtx-3070-ti-laptop",
    "rtx-3080-laptop-16gb",
    "rtx-3080-laptop-8gb",
    "rtx-3080-ti-laptop",
    "rtx-4050-laptop",
    "rtx-4060-laptop",
    "rtx-4070-laptop",
    "rtx-4080-laptop",
    "rtx-4090-laptop",
    "rtx-5050-laptop",
    "rtx-5060-laptop",
    "rtx-5070-laptop",
    "rtx-5070-ti-laptop",
    "rtx-5080-laptop",
    "rtx-5090-laptop",
];

fn gpus() -> Vec<GpuProfile> {
    Catalog::built_in().gpus().unwrap()
}

#[test]
fn every_file_is_a_gpu_under_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles/gpus");
    let mut stems: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    stems.sort_unstable();
    let names: Vec<_> = gpus().into_iter().map(|gpu| gpu.name).collect();
    assert_eq!(names, stems);
    assert!(names.len() >= 60);
    for name in names {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.chars().all(kebab), "{name}");
    }
}

#[test]
fn cards_that_people_plan_for_are_there() {
    let catalog = Catalog::built_in();
    let others = ["rtx-3090", "rtx-4090", "t4", "a100-40gb", "a100-80gb", "h100", "h200"];
    for name in GEFORCE_LAPTOPS.iter().chain(&others) {
        catalog.gpu(name).unwrap();
    }
    for gpu in gpus() {
        let geforce = gpu.product.contains("GeForce") && gpu.segment == Segment::Laptop;
        assert!(!geforce || GEFORCE_LAPTOPS.contains(&gpu.name.as_str()), "{}", gpu.name);
    }
}

#[test]
fn the_small_card_of_the_first_example_is_as_its_logs_say() {
    let gpu = Catalog::built_in().gpu("rtx-3050-laptop-4gb").unwrap();
    assert_eq!(gpu.total_memory.value, Bytes::gib(4));
    assert_eq!(gpu.usable_memory.value, Bytes::mib(3770));
    assert_eq!(gpu.multiprocessors.value, 16);
    assert_eq!(gpu.compute_capability.value.to_string(), "8.6");
    assert_eq!(gpu.memory_clock_khz(), 6_000_000);
}

#[test]
fn the_driver_keeps_a_small_part_of_the_memory() {
    for gpu in gpus() {
        let reserve = gpu.total_memory.value - gpu.usable_memory.value;
        // What it keeps has grown with drivers to some 500 MiB, and with memory to under 800 MiB.
        // On boards that share the host's memory the operating system keeps more.
        let most = match gpu.segment {
            Segment::Embedded => gpu.total_memory.value.percent(8.0),
            _ => Bytes::mib(800),
        };
        assert!(reserve >= Bytes::mib(80) && reserve <= most, "{}: {reserve}", gpu.name);
    }
}

#[test]
fn a_context_takes_what_contexts_take() {
    for gpu in gpus() {
        let context = gpu.context.value;
        assert!(context >= Bytes::mib(50) && context <= Bytes::mib(750), "{}", gpu.name);
        if gpu.context.basis == Basis::Inferred {
            assert_eq!(gpu.context, context::inferred(&gpu), "{}", gpu.name);
        }
    }
}

#[test]
fn a_size_in_a_name_is_the_cards_size() {
    for gpu in gpus() {
        let named = gpu.name.split('-').find_map(|part| part.strip_suffix("gb")?.parse().ok());
        let Some(named) = named.map(Bytes::gib) else { continue };
        let total = gpu.total_memory.value;
        assert!(total > named.percent(90.0) && total <= named, "{}: {total}", gpu.name);
    }
}

#[test]
fn the_architecture_tells_the_compute_capability_and_so_bf16() {
    for gpu in gpus() {
        let major = gpu.compute_capability.value.major;
        let expected: &[u32] = match gpu.architecture.as_str() {
            "Pascal" => &[6],
            "Volta" | "Turing" => &[7],
            "Ampere" | "Ada" => &[8],
            "Hopper" => &[9],
            "Blackwell" => &[10, 12],
            other => panic!("{}: {other}", gpu.name),
        };
        assert!(expected.contains(&major), "{}", gpu.name);
        let old = ["Pascal", "Volta", "Turing"].contains(&gpu.architecture.as_str());
        assert_eq!(gpu.compute_capability.value.has_bf16(), !old, "{}", gpu.name);
    }
}

#[test]
fn bandwidth_and_bus_give_a_clock_that_memory_runs_at() {
    for gpu in gpus() {
        // From HBM2 at 0.7 GHz to GDDR7 at 14 to 15 GHz, two transfers a tick.
        let clock = gpu.memory_clock_khz();
        assert!((700_000..=15_100_000).contains(&clock), "{}: {clock} kHz", gpu.name);
    }
}

#[test]
fn cards_that_a_driver_cannot_tell_apart_have_the_same_memory() {
    let all = gpus();
    for (index, one) in all.iter().enumerate() {
        for other in &all[index + 1..] {
            let same = other.goes_by(&one.product)
                && one.multiprocessors.value == other.multiprocessors.value
                && one.total_memory.value == other.total_memory.value;
            if same {
                let memory = |gpu: &GpuProfile| (gpu.usable_memory.value, gpu.context.value);
                assert_eq!(memory(one), memory(other), "{} and {}", one.name, other.name);
            }
        }
    }
}

#[test]
fn a_real_card_is_found_by_name_memory_and_multiprocessors() {
    let catalog = Catalog::built_in();
    let found = |product: &str, mib, multiprocessors| {
        let memory = Bytes::mib(mib);
        catalog.match_product(product, memory, multiprocessors).unwrap().map(|gpu| gpu.name)
    };
    let some = |name: &str| Some(name.to_owned());
    let rtx_3080 = "NVIDIA GeForce RTX 3080 Laptop GPU";
    assert_eq!(found(rtx_3080, 8192, Some(48)), some("rtx-3080-laptop-8gb"));
    assert_eq!(found(rtx_3080, 16384, Some(48)), some("rtx-3080-laptop-16gb"));
    assert_eq!(found(rtx_3080, 12288, Some(48)), None);
    assert_eq!(found("NVIDIA GeForce RTX 3080", 10240, None), some("rtx-3080-10gb"));
    // Old drivers leave the vendor's name out; ECC takes a sixteenth.
    assert_eq!(found("GeForce RTX 3090", 24576, Some(82)), some("rtx-3090"));
    assert_eq!(found("NVIDIA RTX A6000", 46068, Some(84)), some("rtx-a6000"));
    // The desktop card has the laptop's name, but 14 multiprocessors.
    assert_eq!(found("NVIDIA GeForce GTX 1650", 4096, Some(16)), some("gtx-1650-laptop"));
    assert_eq!(found("NVIDIA GeForce GTX 1650", 4096, Some(14)), None);
    // A modded card has its name's profile only where the memory is the same.
    assert_eq!(found("NVIDIA GeForce RTX 2080 Ti", 22528, Some(68)), None);
    assert_eq!(found("NVIDIA GeForce RTX 9090", 65536, None), None);
}

#[test]
fn every_model_loads_under_the_name_of_its_file() {
    for model in Catalog::built_in().models().unwrap() {
        assert!(!model.description.is_empty(), "{}", model.name);
        assert!(model.parameters > 0, "{}", model.name);
    }
}

#[test]
fn ones_own_profile_stands_before_the_one_built_in() {
    let own = T4.replace("15360 MiB", "15109 MiB");
    let shown = Test::new(&["gpus", "show", "t4", "--json"]).file("own/gpus/t4.toml", &own);
    let shown: GpuProfile = serde_json::from_str(&shown.output()).unwrap();
    assert_eq!(shown.total_memory.value, Bytes::mib(15109));
}

#[test]
fn ones_own_profiles_are_looked_for_in_the_configuration_folder() {
    let own = T4.replace("\"t4\"", "\"mine\"");
    let file = "config/vramfit/profiles/gpus/mine.toml";
    let test = Test::new(&["gpus", "show", "mine", "--json"]).file(file, &own);
    let shown = test.without_env("VRAMFIT_PROFILES").env("XDG_CONFIG_HOME", "config").output();
    assert_eq!(serde_json::from_str::<GpuProfile>(&shown).unwrap().name, "mine");
}

#[test]
fn a_broken_profile_of_ones_own_is_named_with_line_and_reason() {
    for (broken, complaint) in [
        (
            T4.replace("\"15360 MiB\"", "\"15 GX\""),
            "`own/gpus/t4.toml` line 8: `15 GX` is not a size",
        ),
        (
            T4.replace("segment = \"data-center\"", "segment = \"cellar\""),
            "`own/gpus/t4.toml` line 3: unknown variant `cellar`, expected one of `laptop`, \
             `desktop`, `workstation`, `data-center`, `embedded`",
        ),
        (
            T4.replace("power =", "powr ="),
            "`own/gpus/t4.toml` line 15: unknown field `powr`, \
             expected one of `name`, `product`, `aliases`, `segment`, `architecture`, \
             `compute_capability`, `multiprocessors`, `total_memory`, `usable_memory`, `context`, \
             `l2_cache`, `memory_bus`, `bandwidth`, `boost_clock`, `lowest_boost_clock`, `power`, \
             `lowest_power`, `notes`",
        ),
        (
            T4.replace("\"t4\"", "\"t5\""),
            "`own/gpus/t4.toml`: its name is `t5`, not that of the file",
        ),
        (
            T4.replace("\"14912 MiB\"", "\"16 GiB\""),
            "`own/gpus/t4.toml`: usable memory of 16.00 GiB exceeds the total of 15.00 GiB",
        ),
        (T4.replace("\"power\"", "\" \""), "`own/gpus/t4.toml`: `power` has no source"),
        (
            T4.replace("multiprocessors = { value = 40", "multiprocessors = { value = 4000000000"),
            "`own/gpus/t4.toml`: `multiprocessors` of 4000000000 is beyond 10000",
        ),
    ] {
        Test::new(&["gpus"])
            .file("own/gpus/t4.toml", &broken)
            .stderr(&format!("error: {complaint}\n"))
            .status(2);
    }
}

#[test]
fn a_model_that_cannot_be_built_is_refused_when_it_is_read() {
    for (broken, complaint) in [
        (DECODER.replace("heads = 12\nkv", "heads = 0\nkv"), "`heads` must be above zero"),
        (
            DECODER.replace("hidden = 768", "hidden = 770"),
            "`hidden` of 770 does not divide by 12 `heads`",
        ),
        (
            DECODER.replace("kv_heads = 12", "kv_heads = 5"),
            "12 `heads` do not divide by 5 `kv_heads`",
        ),
        (DECODER.replace("0.1", "1.5"), "`dropout` of 1.5 is not from 0 up to 1"),
        (DECODER.replace("81912576", "0"), "`parameters` must be above zero"),
    ] {
        Test::new(&["models"])
            .file("own/models/my-gpt.toml", &broken)
            .stderr(&format!("error: `own/models/my-gpt.toml`: {complaint}\n"))
            .status(2);
    }
    let shown = Test::new(&["models", "show", "my-gpt"]).file("own/models/my-gpt.toml", DECODER);
    assert!(shown.output().contains("81912576"));
}

const DECODER: &str = r#"name = "my-gpt"
description = "GPT-2 with 6 layers"
source = "made up"
parameters = 81912576

[architecture.decoder]
vocabulary = 50257
context = 1024
hidden = 768
layers = 6
heads = 12
kv_heads = 12
feed_forward = 3072
style = "gpt2"
tied_embeddings = true
dropout = 0.1
"#;

/// A whole profile, each fact on a line of its own.
const T4: &str = r#"name = "t4"
product = "Tesla T4"
segment = "data-center"
architecture = "Turing"

compute_capability = { value = "7.5", basis = "specified", source = "s" }
multiprocessors = { value = 40, basis = "specified", source = "s" }
total_memory = { value = "15360 MiB", basis = "inferred", source = "s" }
usable_memory = { value = "14912 MiB", basis = "observed", source = "s" }
context = { value = "143 MiB", basis = "observed", source = "s" }
l2_cache = { value = "4 MiB", basis = "specified", source = "s" }
memory_bus = { value = 256, basis = "specified", source = "s" }
bandwidth = { value = 320.0, basis = "specified", source = "s" }
boost_clock = { value = 1590, basis = "specified", source = "s" }
power = { value = 70, basis = "specified", source = "power" }
"#;
