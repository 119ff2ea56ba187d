//! Training with real numbers, on the CPU: that what is measured is a training step at all.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use vramfit::measurement::Setting;
use vramfit::profile::model::{
    Activation, Architecture, Decoder, DecoderStyle, Mlp, ModelProfile, Pinn, ResidualBlock, Resnet,
};
use vramfit::workload::{Checkpointing, Optimizer as Kind_, OptimizerImplementation, Subject};

use super::*;
use crate::family;
use crate::shim::checkpoint;

/// Random numbers come from one generator for the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        checkpoint::install().unwrap();
        // A recomputation ends by a panic on purpose; all others are failures of a test.
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.to_string().contains("recomputed as far as needed") {
                tell(panic);
            }
        }));
        // Tiny tensors: more threads only wait for each other.
        tch::set_num_threads(1);
    });
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn workload(architecture: Architecture) -> Workload {
    Workload {
        subject: Subject::BuiltIn(ModelProfile {
            name: "test".to_owned(),
            description: String::new(),
            source: String::new(),
            parameters: 0,
            architecture,
        }),
        sequence: Some(8),
        optimizer: Some(Kind_::Adamw),
        optimizer_implementation: OptimizerImplementation::Foreach,
        gradient_clipping: None,
    }
}

fn decoder(style: DecoderStyle, dropout: f64) -> Architecture {
    Architecture::Decoder(Decoder {
        vocabulary: 50,
        context: 16,
        hidden: 32,
        layers: 3,
        heads: 4,
        kv_heads: if style == DecoderStyle::Gpt2 { 4 } else { 2 },
        head_dim: None,
        feed_forward: 64,
        style,
        tied_embeddings: style == DecoderStyle::Gpt2,
        qkv_bias: style == DecoderStyle::Llama,
        dropout,
    })
}

fn mlp() -> Architecture {
    Architecture::Mlp(Mlp {
        inputs: 5,
        hidden: vec![16, 12],
        outputs: 4,
        activation: Activation::Gelu,
    })
}

fn families() -> [(&'static str, Architecture); 5] {
    let block = ResidualBlock::Bottleneck;
    [
        ("gpt2", decoder(DecoderStyle::Gpt2, 0.1)),
        ("llama", decoder(DecoderStyle::Llama, 0.1)),
        (
            "resnet",
            Architecture::Resnet(Resnet { block, stages: [1, 1, 1, 2], classes: 7, image: 32 }),
        ),
        ("mlp", mlp()),
        ("pinn", Architecture::Pinn(Pinn { inputs: 3, width: 16, depth: 3, points: 5 })),
    ]
}

fn point(precision: Precision, checkpointing: Checkpointing, micro_batch: u32) -> Point {
    let setting = Setting { precision, checkpointing };
    Point { setting, micro_batch, accumulation: 1, remainder: None }
}

fn trainer(workload: &Workload, point: &Point) -> Trainer {
    let model = family::build(workload, Device::Cpu).unwrap();
    Trainer::new(model, workload, point, Device::Cpu)
}

fn nowhere(_: Border) -> Result<(), TchError> {
    Ok(())
}

/// Loss and copies of the gradients of `batch`, with random numbers from a fixed seed.
fn gradients(trainer: &mut Trainer, batch: &Batch) -> (f64, Vec<Tensor>) {
    trainer.batch = Some(Batch {
        inputs: batch.inputs.shallow_clone(),
        targets: batch.targets.as_ref().map(Tensor::shallow_clone),
    });
    trainer.optimizer.zero_grad().unwrap();
    tch::manual_seed(7);
    let samples = trainer.micro_batch;
    trainer.accumulate(samples, &mut nowhere).unwrap();
    let loss = trainer.loss.as_ref().unwrap().double_value(&[]);
    (loss, trainer.optimizer.gradients().iter().map(Tensor::copy).collect())
}

fn assert_close(name: &str, a: &[Tensor], b: &[Tensor], tolerance: f64) {
    assert_eq!(a.len(), b.len(), "{name}");
    for (index, (a, b)) in a.iter().zip(b).enumerate() {
        let difference = (a - b).abs().max().double_value(&[]);
        assert!(difference <= tolerance, "{name}: gradient {index} differs by {difference}");
    }
}

#[test]
fn checkpointed_steps_give_the_same_gradients_dropout_included() {
    let _alone = alone();
    for precision in [Precision::Fp32, Precision::Bf16] {
        for (name, architecture) in families() {
            let workload = workload(architecture);
            let mut plain = trainer(&workload, &point(precision, Checkpointing::None, 3));
            let batch = plain.model.network.batch(3);
            let (loss, expected) = gradients(&mut plain, &batch);
            assert!(loss > 0.0, "{name}");
            assert!(expected.iter().any(|g| g.abs().max().double_value(&[]) > 0.0), "{name}");
            let some = Checkpointing::Blocks("1".parse().unwrap());
            for checkpointing in [Checkpointing::Full, Checkpointing::Every(2), some] {
                plain.blocks = Blocks::Trained(checkpointing);
                let (again, found) = gradients(&mut plain, &batch);
                assert_eq!(loss, again, "{name}");
                assert_close(
                    &format!("{name} {precision} {checkpointing}"),
                    &found,
                    &expected,
                    0.0,
                );
            }
        }
    }
}

#[test]
fn accumulated_gradients_are_those_of_the_whole_batch() {
    let _alone = alone();
    let workload = workload(mlp());
    let mut whole = trainer(&workload, &point(Precision::Fp32, Checkpointing::None, 6));
    let batch = whole.model.network.batch(6);
    let (_, expected) = gradients(&mut whole, &batch);
    for (micro_batch, accumulation, remainder) in [(3, 2, None), (4, 1, Some(2)), (2, 2, Some(2))] {
        whole.optimizer.zero_grad().unwrap();
        whole.micro_batch = micro_batch;
        whole.accumulation = accumulation;
        whole.remainder = remainder;
        let mut start = 0;
        let parts = (0..accumulation).map(|_| micro_batch).chain(remainder);
        for samples in parts {
            whole.batch = Some(Batch {
                inputs: batch.inputs.narrow(0, start, i64::from(samples)),
                targets: batch.targets.as_ref().map(|t| t.narrow(0, start, i64::from(samples))),
            });
            whole.accumulate(samples, &mut nowhere).unwrap();
            start += i64::from(samples);
        }
        assert_close("mlp", &whole.optimizer.gradients(), &expected, 1e-6);
    }
}

#[test]
fn a_few_steps_on_one_batch_lower_the_loss_in_every_family_and_precision() {
    let _alone = alone();
    for precision in [Precision::Fp32, Precision::Bf16, Precision::Fp16] {
        for (name, architecture) in families() {
            // CPUs take seconds for a backward pass of convolutions in 16 bits.
            if name == "resnet" && precision.is_mixed() {
                continue;
            }
            let mut workload = workload(architecture);
            workload.gradient_clipping = Some(1.0);
            let mut trainer = trainer(&workload, &point(precision, Checkpointing::Full, 4));
            let batch = trainer.model.network.batch(4);
            let first = gradients(&mut trainer, &batch).0;
            for _ in 0..8 {
                trainer.update().unwrap();
                gradients(&mut trainer, &batch);
            }
            let last = trainer.loss.as_ref().unwrap().double_value(&[]);
            assert!(last < first, "{name} {precision}: {first} then {last}");
        }
    }
}

#[test]
fn borders_come_in_the_order_of_a_step() {
    use Border::{
        AfterForward, AfterOptimizer, AfterZeroGrad, BeforeMicroStep, BeforeOptimizer,
        BeforeZeroGrad,
    };
    let _alone = alone();
    let mut point = point(Precision::Fp32, Checkpointing::None, 2);
    point.accumulation = 5;
    point.remainder = Some(1);
    let mut trainer = trainer(&workload(mlp()), &point);
    let mut borders = Vec::new();
    trainer
        .step(&mut |border| {
            borders.push(border);
            Ok(())
        })
        .unwrap();
    let micro_step = [BeforeMicroStep, AfterForward];
    let mut expected = vec![BeforeZeroGrad, AfterZeroGrad];
    // Two of the five equal ones, and the remainder.
    expected.extend(micro_step.repeat(3));
    expected.extend([BeforeOptimizer, AfterOptimizer]);
    assert_eq!(borders, expected);
}
