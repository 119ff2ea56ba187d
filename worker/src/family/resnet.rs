//! Residual networks, module by module as torchvision's.

use tch::{Device, Kind, Reduction, Tensor};
use vramfit::profile::model::{ResidualBlock, Resnet as Dimensions};

use super::{Batch, Network};
use crate::blocks::Blocks;
use crate::model::{Builder, Linear, Then, Weight, dim};

/// Channels after the stem and inside the first stage.
const WIDTH: i64 = 64;

pub(super) struct Resnet {
    stem: Conv,
    stem_norm: BatchNorm,
    blocks: Vec<Block>,
    classifier: Linear,
    classes: i64,
    image: i64,
    device: Device,
}

impl Resnet {
    pub(super) fn new(builder: &mut Builder, dimensions: &Dimensions) -> Self {
        let stem = Conv::new(builder, 3, WIDTH, 7, 2);
        let stem_norm = BatchNorm::new(builder, WIDTH);
        let mut channels = WIDTH;
        let mut blocks = Vec::new();
        for (stage, &count) in (0u32..).zip(&dimensions.stages) {
            let width = WIDTH << stage;
            for index in 0..count {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                let block = Block::new(builder, dimensions.block, channels, width, stride);
                channels = block.channels;
                blocks.push(block);
            }
        }
        Self {
            stem,
            stem_norm,
            blocks,
            classifier: Linear::new(builder, channels, dim(dimensions.classes), true),
            classes: dim(dimensions.classes),
            image: dim(dimensions.image),
            device: builder.device(),
        }
    }
}

impl Network for Resnet {
    fn batch(&self, samples: i64) -> Batch {
        let images =
            Tensor::randn([samples, 3, self.image, self.image], (Kind::Float, self.device));
        let classes = Tensor::randint(self.classes, [samples], (Kind::Int64, self.device));
        Batch { inputs: images, targets: Some(classes) }
    }

    fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn loss(&self, batch: &Batch, blocks: &Blocks) -> Tensor {
        let mut x = self
            .stem
            .forward(&batch.inputs)
            .then(|x| self.stem_norm.forward(x))
            .then(|x| x.shallow_clone().relu_())
            .then(|x| x.max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false));
        for (index, block) in self.blocks.iter().enumerate() {
            let block = block.clone();
            x = blocks.run(index, &x, move |x| block.forward(x));
        }
        let logits = x
            .then(|x| x.adaptive_avg_pool2d([1, 1]))
            .then(|x| x.flatten(1, -1))
            .then(|x| self.classifier.forward(x));
        classification_loss(&logits, batch)
    }
}

/// Cross entropy of class indices.
pub(super) fn classification_loss(logits: &Tensor, batch: &Batch) -> Tensor {
    let targets = batch.targets.as_ref().unwrap_or(&batch.inputs);
    logits.cross_entropy_loss(targets, None::<&Tensor>, Reduction::Mean, -100, 0.0)
}

#[derive(Clone)]
struct Block {
    layers: Vec<(Conv, BatchNorm)>,
    shortcut: Option<(Conv, BatchNorm)>,
    /// Channels of the output.
    channels: i64,
}

impl Block {
    fn new(
        builder: &mut Builder,
        kind: ResidualBlock,
        inputs: i64,
        width: i64,
        stride: i64,
    ) -> Self {
        // (channels, kernel, stride); torchvision strides in the 3×3 convolution (ResNet V1.5).
        let plan = match kind {
            ResidualBlock::Basic => vec![(width, 3, stride), (width, 3, 1)],
            ResidualBlock::Bottleneck => {
                vec![(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)]
            }
        };
        let mut channels = inputs;
        let layers = plan
            .into_iter()
            .map(|(outputs, kernel, stride)| {
                let conv = Conv::new(builder, channels, outputs, kernel, stride);
                channels = outputs;
                (conv, BatchNorm::new(builder, outputs))
            })
            .collect();
        let shortcut = (stride != 1 || inputs != channels).then(|| {
            (Conv::new(builder, inputs, channels, 1, stride), BatchNorm::new(builder, channels))
        });
        Self { layers, shortcut, channels }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let last = self.layers.len() - 1;
        let mut out = x.shallow_clone();
        for (index, (conv, norm)) in self.layers.iter().enumerate() {
            out = conv.forward(&out);
            out = norm.forward(&out);
            if index < last {
                let _ = out.relu_();
            }
        }
        let identity = match &self.shortcut {
            Some((conv, norm)) => conv.forward(x).then(|x| norm.forward(x)),
            None => x.shallow_clone(),
        };
        out += &identity;
        out.relu_()
    }
}

/// A convolution without bias whose padding keeps the size at stride 1.
#[derive(Clone)]
struct Conv {
    weight: Weight,
    stride: i64,
    padding: i64,
}

impl Conv {
    fn new(builder: &mut Builder, inputs: i64, outputs: i64, kernel: i64, stride: i64) -> Self {
        // Kaiming's initialisation by fan-out, torchvision's choice.
        let deviation = (2.0 / (outputs * kernel * kernel) as f64).sqrt();
        Self {
            weight: builder.normal(&[outputs, inputs, kernel, kernel], deviation),
            stride,
            padding: kernel / 2,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let (stride, padding) = (self.stride, self.padding);
        x.conv2d(&self.weight, None::<&Tensor>, [stride, stride], [padding, padding], [1, 1], 1)
    }
}

#[derive(Clone)]
struct BatchNorm {
    weight: Weight,
    bias: Weight,
    mean: Weight,
    variance: Weight,
    batches: Weight,
}

impl BatchNorm {
    fn new(builder: &mut Builder, channels: i64) -> Self {
        Self {
            weight: builder.constant(&[channels], 1.0),
            bias: builder.constant(&[channels], 0.0),
            mean: builder.buffer(&[channels], Kind::Float, 0.0),
            variance: builder.buffer(&[channels], Kind::Float, 1.0),
            batches: builder.buffer(&[], Kind::Int64, 0.0),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let _ = self.batches.shallow_clone().g_add_scalar_(1);
        x.batch_norm(
            Some(&*self.weight),
            Some(&*self.bias),
            Some(&*self.mean),
            Some(&*self.variance),
            true,
            0.1,
            1e-5,
            true,
        )
    }
}
