//! What a recurrent network asks of the device: the products of its matrices. Those with the input can do
//! all steps at once; those with the state go step by step.

use vramfit_vgpu_cost::{Product, Work};

use super::network::Network;
use super::spaces::Sequences;
use crate::cudnn::asks;

impl Network {
    /// Forward, and backward for the gradients of the data: one product of all steps for each
    /// pseudo-layer, and one for each step.
    pub(super) fn steps(&self, sequences: &Sequences) -> Vec<Work> {
        let Sequences { batch, tokens, .. } = *sequences;
        let steps = tokens.div_ceil(batch.max(1));
        (0..self.pseudo_layers())
            .flat_map(|layer| {
                let input = self.product(tokens, self.input_of(layer));
                let state = self.product(batch, self.output());
                std::iter::once(input).chain(std::iter::repeat_n(state, steps as usize))
            })
            .collect()
    }

    /// Backward for the gradients of the weights: inner products over all tokens.
    pub(super) fn of_weights(&self, sequences: &Sequences) -> Vec<Work> {
        let rows = self.cell.gates() * self.hidden;
        (0..self.pseudo_layers())
            .flat_map(|layer| [self.input_of(layer), self.output()])
            .map(|columns| self.work(rows, columns, sequences.tokens))
            .collect()
    }

    /// The gates of `columns` tokens from `inner` values each.
    fn product(&self, columns: u64, inner: u64) -> Work {
        self.work(self.cell.gates() * self.hidden, columns, inner)
    }

    fn work(&self, m: u64, n: u64, k: u64) -> Work {
        let bytes = self.element_bytes;
        let Some(arithmetic) = asks::arithmetic(self.data_type, self.tensor_cores) else {
            return Work::Unknown;
        };
        Work::Product(Product {
            m,
            n,
            k,
            batch: 1,
            arithmetic,
            input_bytes: bytes,
            output_bytes: bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::Cell;
    use super::super::network::tests::network;
    use super::*;

    fn operations(works: &[Work]) -> u64 {
        let of = |work: &Work| match work {
            Work::Product(it) => 2 * it.m * it.n * it.k,
            other => panic!("{other:?}"),
        };
        works.iter().map(of).sum()
    }

    #[test]
    fn every_token_meets_every_matrix_once() {
        let sequences = Sequences { batch: 4, tokens: 28, training: true };
        for cell in [Cell::Plain, Cell::Lstm, Cell::Gru] {
            let network = Network { directions: 2, layers: 3, ..network(cell) };
            let expected = 2 * 28 * network.matrix_elements();
            let forward = network.steps(&sequences);
            assert_eq!(operations(&forward), expected);
            assert_eq!(forward.len(), 6 * (1 + 7), "steps follow each other");
            assert_eq!(operations(&network.of_weights(&sequences)), expected);
        }
    }
}
