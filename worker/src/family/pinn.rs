//! Physics-informed networks: the loss is the residual of the heat equation, so that it holds first
//! and second derivatives of the network by its inputs.

use tch::{Device, Kind, Tensor};
use vramfit::profile::model::Pinn as Dimensions;

use super::{Batch, Network};
use crate::blocks::Blocks;
use crate::model::{Builder, Linear, Then, dim};

pub(super) struct Pinn {
    hidden: Vec<Linear>,
    output: Linear,
    coordinates: i64,
    points: i64,
    device: Device,
}

impl Pinn {
    pub(super) fn new(builder: &mut Builder, dimensions: &Dimensions) -> Self {
        let mut inputs = dim(dimensions.inputs);
        let width = dim(dimensions.width);
        let hidden = (0..dimensions.depth)
            .map(|_| {
                let layer = Linear::new(builder, inputs, width, true);
                inputs = width;
                layer
            })
            .collect();
        Self {
            hidden,
            output: Linear::new(builder, inputs, 1, true),
            coordinates: dim(dimensions.inputs),
            points: dim(dimensions.points),
            device: builder.device(),
        }
    }

    fn value(&self, coordinates: &[Tensor], blocks: &Blocks) -> Tensor {
        let mut x = Tensor::cat(coordinates, 1);
        for (index, layer) in self.hidden.iter().enumerate() {
            let layer = layer.clone();
            x = blocks.run(index, &x, move |x| layer.forward(x).then(Tensor::tanh));
        }
        x.then(|x| self.output.forward(x))
    }
}

impl Network for Pinn {
    fn batch(&self, samples: i64) -> Batch {
        let shape = [samples * self.points, self.coordinates];
        Batch { inputs: Tensor::rand(shape, (Kind::Float, self.device)), targets: None }
    }

    fn block_count(&self) -> usize {
        self.hidden.len()
    }

    fn loss(&self, batch: &Batch, blocks: &Blocks) -> Tensor {
        // One leaf a coordinate, so that each derivative is asked for by itself.
        let coordinates: Vec<Tensor> = (0..self.coordinates)
            .map(|i| {
                let column = batch.inputs.narrow(1, i, 1).contiguous();
                column.detach().set_requires_grad(true)
            })
            .collect();
        let value = self.value(&coordinates, blocks);
        let first = Tensor::run_backward(&[&value], &coordinates, true, true);
        let spatial = first.iter().zip(&coordinates).skip(1);
        let residual = spatial.fold(first[0].shallow_clone(), |residual, (slope, coordinate)| {
            let second = Tensor::run_backward(&[slope], &[coordinate], true, true);
            residual - &second[0]
        });
        residual.pow_tensor_scalar(2).then(|square| square.mean(Kind::Float))
    }
}
