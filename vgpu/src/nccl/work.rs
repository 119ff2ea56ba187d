//! What a collective asks of the links between devices.

use vramfit_vgpu_cost::{Collective, Work};

use super::operation::Exchange;

/// What one rank of `ranks` sends for `exchange`, `bytes` being one rank's share: in rings, as NCCL's "bus
/// bandwidth" counts (nccl-tests, doc/PERFORMANCE.md). Who gathers receives through one link what the others
/// send through theirs.
pub(super) fn work(exchange: &Exchange, bytes: u64, ranks: u64) -> Work {
    let others = ranks.saturating_sub(1);
    let (sent_bytes, steps) = match exchange {
        Exchange::Join => (0, 0),
        Exchange::AllReduce(..) => (
            u64::try_from(2 * u128::from(bytes) * u128::from(others) / u128::from(ranks.max(1)))
                .unwrap_or(u64::MAX),
            2 * others,
        ),
        Exchange::Reduce(..) | Exchange::Broadcast(_) => {
            (bytes.saturating_mul(others.min(1)), others)
        }
        Exchange::AllGather | Exchange::ReduceScatter(..) => (bytes.saturating_mul(others), others),
        Exchange::AllToAll | Exchange::Gather(_) => (bytes.saturating_mul(others), others.min(1)),
        Exchange::Send(_) | Exchange::Receive(_) => (bytes, 1),
    };
    Work::Collective(Collective { sent_bytes, steps })
}

#[cfg(test)]
mod tests {
    use super::super::element::Element;
    use super::super::reduction::Reduction;
    use super::*;

    #[test]
    fn ranks_send_what_the_bus_bandwidth_counts() {
        let sent = |exchange, ranks| match work(&exchange, 1000, ranks) {
            Work::Collective(Collective { sent_bytes, steps }) => (sent_bytes, steps),
            other => panic!("{other:?}"),
        };
        let all_reduce = || Exchange::AllReduce(Element::F32, Reduction::Sum);
        assert_eq!(sent(all_reduce(), 4), (1500, 6));
        assert_eq!(sent(all_reduce(), 1), (0, 0));
        assert_eq!(sent(Exchange::AllGather, 4), (3000, 3));
        assert_eq!(sent(Exchange::ReduceScatter(Element::F32, Reduction::Sum), 2), (1000, 1));
        assert_eq!(sent(Exchange::Broadcast(0), 4), (1000, 3));
        assert_eq!(sent(Exchange::Send(1), 4), (1000, 1));
    }
}
