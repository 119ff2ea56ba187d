//! A recurrent network as cuDNN is told of it, and where its weights lie.
//!
//! The order of weights was compared with cuDNN 9.19's own answers, which need no device, for each
//! cell, bias mode, direction, with and without projection: all offsets are equal.

/// `cudnnRNNMode_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Both of its activations.
    Plain,
    Lstm,
    Gru,
}

impl Cell {
    pub(super) fn of(mode: i32) -> Option<Self> {
        match mode {
            0 | 1 => Some(Self::Plain),
            2 => Some(Self::Lstm),
            3 => Some(Self::Gru),
            _ => None,
        }
    }

    /// Matrices that see the input; as many see the hidden state.
    pub(super) fn gates(self) -> u64 {
        match self {
            Self::Plain => 1,
            Self::Gru => 3,
            Self::Lstm => 4,
        }
    }
}

/// `cudnnRNNBiasMode_t`: which of a gate's two products has a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bias {
    None,
    Input,
    Both,
    Hidden,
}

impl Bias {
    pub(super) fn of(mode: i32) -> Option<Self> {
        [Self::None, Self::Input, Self::Both, Self::Hidden]
            .get(usize::try_from(mode).ok()?)
            .copied()
    }
}

/// What `cudnnSetRNNDescriptor_v8` says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) cell: Cell,
    pub(super) bias: Bias,
    /// 2 where it goes both ways, else 1.
    pub(super) directions: u64,
    pub(super) input: u64,
    pub(super) hidden: u64,
    /// Width of the projected state, if it is projected.
    pub(super) projection: Option<u64>,
    pub(super) layers: u64,
    pub(super) element_bytes: u64,
    /// `cudnnDataType_t`.
    pub(super) data_type: i32,
    /// Whether products may be done on tensor cores: in single precision that means TF32.
    pub(super) tensor_cores: bool,
    /// `CUDNN_RNN_PADDED_IO_ENABLED`.
    pub(super) padded: bool,
    /// Something is dropped between layers.
    pub(super) drops: bool,
}

/// Where one matrix or bias lies in the weight space, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) rows: u64,
    pub(super) columns: u64,
}

impl Network {
    /// Width of the state handed on.
    pub(super) fn output(&self) -> u64 {
        self.projection.unwrap_or(self.hidden)
    }

    /// A layer in one direction, cuDNN's pseudo-layers.
    pub(super) fn pseudo_layers(&self) -> u64 {
        self.layers * self.directions
    }

    /// Width of what pseudo-layer `layer` sees.
    pub(super) fn input_of(&self, layer: u64) -> u64 {
        if layer < self.directions { self.input } else { self.output() * self.directions }
    }

    /// Matrices of a pseudo-layer: those that see the input, those that see the state, the projection.
    fn matrices(&self) -> u64 {
        2 * self.cell.gates() + u64::from(self.projection.is_some())
    }

    /// Rows and columns of a matrix.
    fn shape_of(&self, layer: u64, matrix: u64) -> (u64, u64) {
        let gates = self.cell.gates();
        if matrix < gates {
            (self.hidden, self.input_of(layer))
        } else if matrix < 2 * gates {
            (self.hidden, self.output())
        } else {
            (self.output(), self.hidden)
        }
    }

    /// Elements of the first `count` matrices of a pseudo-layer.
    fn elements(&self, layer: u64, count: u64) -> u64 {
        (0..count)
            .map(|matrix| self.shape_of(layer, matrix))
            .map(|(rows, columns)| rows * columns)
            .sum()
    }

    /// Elements of all matrices, without biases.
    pub(super) fn matrix_elements(&self) -> u64 {
        (0..self.pseudo_layers()).map(|layer| self.elements(layer, self.matrices())).sum()
    }

    fn biases(&self) -> u64 {
        self.cell.gates()
            * match self.bias {
                Bias::None => 0,
                Bias::Input | Bias::Hidden => 1,
                Bias::Both => 2,
            }
    }

    /// Size of the weight space: all matrices by pseudo-layer, then all biases.
    pub(super) fn weight_bytes(&self) -> u64 {
        let biases = self.pseudo_layers() * self.biases() * self.hidden;
        (self.matrix_elements() + biases) * self.element_bytes
    }

    /// Whether there is such a matrix.
    pub(super) fn has(&self, layer: u64, matrix: u64) -> bool {
        layer < self.pseudo_layers() && matrix < self.matrices()
    }

    /// Where `matrix` of `layer` lies.
    pub(super) fn matrix(&self, layer: u64, matrix: u64) -> Place {
        let before: u64 = (0..layer).map(|layer| self.elements(layer, self.matrices())).sum();
        let (rows, columns) = self.shape_of(layer, matrix);
        Place { offset: before + self.elements(layer, matrix), rows, columns }
    }

    /// Where the bias that goes with `matrix` of `layer` lies, if it has one.
    pub(super) fn bias(&self, layer: u64, matrix: u64) -> Option<Place> {
        let gates = self.cell.gates();
        let index = match self.bias {
            Bias::Both if matrix < 2 * gates => matrix,
            Bias::Input if matrix < gates => matrix,
            Bias::Hidden if (gates..2 * gates).contains(&matrix) => matrix - gates,
            _ => return None,
        };
        let offset = self.matrix_elements() + (layer * self.biases() + index) * self.hidden;
        Some(Place { offset, rows: self.hidden, columns: 1 })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// 64 → 128, single precision, two layers with both biases.
    pub(crate) fn network(cell: Cell) -> Network {
        Network {
            cell,
            bias: Bias::Both,
            directions: 1,
            input: 64,
            hidden: 128,
            projection: None,
            layers: 2,
            element_bytes: 4,
            data_type: 0,
            tensor_cores: true,
            padded: false,
            drops: false,
        }
    }

    /// All figures are cuDNN 9.19's.
    #[test]
    fn the_weight_space_is_as_large_as_cudnn_says() {
        let lstm = network(Cell::Lstm);
        assert_eq!(lstm.weight_bytes(), 925_696);
        assert_eq!(Network { directions: 2, ..lstm }.weight_bytes(), 2_375_680);
        assert_eq!(Network { projection: Some(64), ..lstm }.weight_bytes(), 598_016);
        assert_eq!(Network { bias: Bias::None, ..lstm }.weight_bytes(), 917_504);
        assert_eq!(Network { bias: Bias::Hidden, ..lstm }.weight_bytes(), 921_600);
        assert_eq!(network(Cell::Gru).weight_bytes(), 694_272);
        assert_eq!(network(Cell::Plain).weight_bytes(), 231_424);
    }

    #[test]
    fn weights_lie_where_cudnn_says() {
        let small = Network { input: 5, hidden: 7, ..network(Cell::Lstm) };
        assert_eq!(small.matrix(0, 2), Place { offset: 70, rows: 7, columns: 5 });
        assert_eq!(small.bias(0, 1).map(|place| place.offset * 4), Some(2940));
        let projected = Network { projection: Some(3), ..small };
        assert_eq!(projected.matrix(0, 8), Place { offset: 224, rows: 3, columns: 7 });
        assert_eq!(projected.bias(0, 8), None);
        let single = Network { bias: Bias::Input, ..small };
        assert_eq!((single.bias(0, 0).is_some(), single.bias(0, 4)), (true, None));
    }
}
