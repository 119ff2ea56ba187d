use crate::program::Program;
use crate::{environments, is_thorough};

/// Those of the first list always, those of the second where everything is to run.
fn models(always: &[&'static str], further: &[&'static str]) -> Vec<&'static str> {
    let further = if is_thorough() { further } else { &[] };
    [always, further].concat()
}

#[test]
fn architectures_of_timm_train_in_fp16_and_no_step_is_skipped() {
    let always = ["convnext_atto", "efficientnet_b0", "swin_tiny_patch4_window7_224"];
    let further = [
        "eva02_tiny_patch14_224",
        "maxvit_tiny_rw_224",
        "mixer_s32_224",
        "mobilenetv3_small_100",
        "regnety_002",
        "resnext50_32x4d",
    ];
    for model in models(&always, &further) {
        let run = Program::new("timm_models", &["--model", model]).trains(3, 3);
        assert_eq!(run.number("optimizer_steps"), 3, "{model}");
        assert_eq!(run.answers[0]["scale"], 65536.0, "{model}");
    }
}

#[test]
fn optimizers_of_timm_train() {
    for optimizer in models(&["lamb"], &["adopt", "muon", "lion", "nadamw"]) {
        Program::new("timm_models", &["--model", "vit_tiny_patch16_224", "--opt", optimizer])
            .trains(3, 3);
    }
}

#[test]
fn checkpointing_of_timms_transformers_lowers_the_peak() {
    let vit = ["--model", "vit_tiny_patch16_224"];
    let plain = Program::new("timm_models", &vit).trains(3, 3);
    let arguments = [&vit[..], &["--grad-checkpointing"]].concat();
    let checkpointed = Program::new("timm_models", &arguments).trains(3, 3);
    assert!(checkpointed.allocated() < plain.allocated() * 3 / 4, "{:?}", checkpointed.peaks());
}

/// The program counts right answers, which nobody knows.
fn torchvision<'a>(arguments: &[&'a str]) -> Program<'a> {
    Program::new("torchvision_models", arguments).reads(&["int64"])
}

#[test]
fn architectures_of_torchvision_train() {
    let always = ["mobilenet_v3_small", "fcn_resnet50"];
    let further = [
        "deeplabv3_resnet50",
        "densenet121",
        "googlenet",
        "maxvit_t",
        "shufflenet_v2_x1_0",
        "swin_t",
        "vgg11",
    ];
    for model in models(&always, &further) {
        torchvision(&["--model", model, "--bf16"]).trains(3, 3);
    }
}

#[test]
fn neither_loader_workers_nor_shadow_execution_change_a_byte_and_a_larger_batch_does() {
    let plain = torchvision(&["--channels-last", "--bf16"]).trains(3, 3);
    let workers = torchvision(&["--channels-last", "--bf16", "--workers", "2"]).trains(3, 3);
    assert_eq!(workers.peaks(), plain.peaks());
    let without = torchvision(&["--channels-last", "--bf16"]).flags(&["--no-shadow"]).trains(3, 3);
    assert_eq!(without.peaks(), plain.peaks());
    let double = torchvision(&["--channels-last", "--bf16", "--batch-size", "16"]).trains(3, 3);
    // The first activation of ResNet-18 alone, in bf16, with what its norm and its ReLU make of it.
    let first = 3 * 2 * 8 * 64 * 112 * 112;
    assert!(double.allocated() > plain.allocated() + first, "{:?}", double.peaks());
}

#[test]
fn a_detector_trains_and_its_peak_is_an_interval() {
    let run = |flags: &[&'static str]| Program::new("detection", &[]).flags(flags).trains(2, 2);
    let (highest, lowest) = (run(&[]), run(&["--unknown-sizes", "lowest"]));
    assert!(highest.allocated() > lowest.allocated(), "{:?}", highest.peaks());
    let sizes = &highest.python().shadow.sizes;
    assert!(sizes.iter().any(|size| size.operator == "nms" && size.taken > size.lowest));
    assert!(highest.said.contains("sizes that depend on values nobody knows"), "{}", highest.said);
    if is_thorough() {
        for (model, reads) in
            [("retinanet_resnet50_fpn", "bool"), ("ssdlite320_mobilenet_v3_large", "bool")]
        {
            Program::new("detection", &["--model", model]).reads(&[reads]).trains(2, 2);
        }
        let flags = ["--unknown-sizes", "lowest"];
        Program::new("detection", &["--model", "maskrcnn_resnet50_fpn"]).flags(&flags).trains(2, 2);
    }
}

#[test]
fn each_pytorch_trains_an_image_model_from_loader_workers() {
    let mut allocated = Vec::new();
    for environment in environments::all() {
        let name = environment.name.clone();
        let run = torchvision(&["--workers", "1"]).environment(environment).trains(3, 3);
        allocated.push(run.allocated());
        // Versions differ in a few workspaces and temporaries.
        let ratio = run.allocated() as f64 / allocated[0] as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{name}: {allocated:?}");
    }
}
