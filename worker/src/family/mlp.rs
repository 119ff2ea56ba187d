//! Multi-layer perceptrons: `nn.Sequential` of `nn.Linear` and an activation.

use tch::{Device, Kind, Tensor};
use vramfit::profile::model::{Activation, Mlp as Dimensions};

use super::resnet::classification_loss;
use super::{Batch, Network};
use crate::blocks::Blocks;
use crate::model::{Builder, Linear, Then, dim};

pub(super) struct Mlp {
    hidden: Vec<Linear>,
    output: Linear,
    activation: Activation,
    inputs: i64,
    classes: i64,
    device: Device,
}

impl Mlp {
    pub(super) fn new(builder: &mut Builder, dimensions: &Dimensions) -> Self {
        let mut width = dim(dimensions.inputs);
        let hidden = dimensions
            .hidden
            .iter()
            .map(|&outputs| {
                let layer = Linear::new(builder, width, dim(outputs), true);
                width = dim(outputs);
                layer
            })
            .collect();
        Self {
            hidden,
            output: Linear::new(builder, width, dim(dimensions.outputs), true),
            activation: dimensions.activation,
            inputs: dim(dimensions.inputs),
            classes: dim(dimensions.outputs),
            device: builder.device(),
        }
    }
}

impl Network for Mlp {
    fn batch(&self, samples: i64) -> Batch {
        let features = Tensor::randn([samples, self.inputs], (Kind::Float, self.device));
        let classes = Tensor::randint(self.classes, [samples], (Kind::Int64, self.device));
        Batch { inputs: features, targets: Some(classes) }
    }

    fn block_count(&self) -> usize {
        self.hidden.len()
    }

    fn loss(&self, batch: &Batch, blocks: &Blocks) -> Tensor {
        let mut x = batch.inputs.shallow_clone();
        for (index, layer) in self.hidden.iter().enumerate() {
            let (layer, activation) = (layer.clone(), self.activation);
            x = blocks.run(index, &x, move |x| layer.forward(x).then(|x| activate(activation, x)));
        }
        let logits = x.then(|x| self.output.forward(x));
        classification_loss(&logits, batch)
    }
}

fn activate(activation: Activation, x: &Tensor) -> Tensor {
    match activation {
        Activation::Relu => x.relu(),
        Activation::Gelu => x.gelu("none"),
        Activation::Tanh => x.tanh(),
    }
}
