//! Checks the invariants of a tree without a writer, entry by entry: an error there may cost time
//! only, or an entry only where a reader and the writer meet, and no look-up would show it.

use crate::base::abbreviated_keys::common_prefix;

use super::node::{Node, abbreviate};
use super::record::Bound;
use super::tree::Tree;

/// The number of entries, after all invariants of nodes have been found to hold.
pub(super) fn check(tree: &Tree) -> usize {
    let Some(mut first) = tree.root() else { return 0 };
    assert!(first.next().is_none(), "the root is the only node of its level");
    loop {
        let level: Vec<&Node> = std::iter::successors(Some(first), |node| node.next()).collect();
        let entries = level.iter().map(|node| check_node(tree, node)).sum();
        if first.shape.level == 0 {
            return entries;
        }
        let children = level.iter().flat_map(|node| slots(node).map(|slot| node.child(slot)));
        first = first.child(first.state().slot(0));
        let below = std::iter::successors(Some(first), |node| node.next());
        assert!(
            children.map(std::ptr::from_ref).eq(below.map(std::ptr::from_ref)),
            "parents know every child, in order"
        );
        assert!(first.shape.leftmost);
    }
}

fn slots(node: &Node) -> impl Iterator<Item = usize> {
    let state = node.state();
    (0..state.count()).map(move |at| state.slot(at))
}

fn check_node(tree: &Tree, node: &Node) -> usize {
    let order = &tree.order;
    let (low, skip) = (node.low_bound(), node.state().skip());
    let end = node.next().map(Node::low_bound);
    let inner = node.shape.level > 0;
    // The bound of the first child of all is one in name only.
    let is_bound = |at: usize| !(inner && node.shape.leftmost && at == 0);
    // Equal internal keys are allowed.
    let in_order = |a: &Bound<'_>, b: &Bound<'_>| !b.is_before(order, a);
    let mut previous: Option<Bound<'_>> = None;
    for (_, slot) in slots(node).enumerate().filter(|&(at, _)| is_bound(at)) {
        let bound = node.bound(slot);
        assert_eq!(node.abbreviated(slot), abbreviate(order, bound.user_key, skip));
        assert!(
            common_prefix(bound.user_key, low.user_key) >= skip,
            "all share what abbreviated_keys leave out"
        );
        assert!(node.shape.leftmost || in_order(&low, &bound), "nothing before the lower bound");
        assert!(
            end.is_none_or(|end| in_order(&bound, &end)),
            "nothing from the next lower bound on"
        );
        assert!(previous.is_none_or(|previous| in_order(&previous, &bound)), "entries in order");
        previous = Some(bound);
    }
    assert!(previous.is_some(), "no node is empty");
    if node.is_confined() && skip > 0 {
        assert!(!node.shape.leftmost);
        assert!(end.is_some_and(|end| common_prefix(low.user_key, end.user_key) >= skip));
    }
    slots(node).count()
}
