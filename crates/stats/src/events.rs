//! Change points common to several series.

use crate::{ChangePoint, Sample};

/// Change points of several series that may have the same cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The last point at the level before, as narrowed down by all series together.
    pub before: usize,
    /// The first point at the level after, likewise.
    pub after: usize,
    /// The geometric mean of its change points' ratios: their average, not an estimate for other series.
    pub ratio: f64,
    /// The smallest ratio.
    pub smallest: f64,
    /// The largest ratio.
    pub largest: f64,
    /// The change points with the indices of their series, in order of these: at most one per series.
    pub changes: Vec<(usize, ChangePoint)>,
}

/// Groups the change points of series over the same points (a missing point is `None`) into events, in order of
/// position.
///
/// Change points belong to one event if they have the same direction and can all lie at one position, by their
/// [`ChangePoint::within`]. The position at which most can lie forms the first event; the others form the next ones.
pub fn events(series: &[Vec<ChangePoint>]) -> Vec<Event> {
    let all =
        || series.iter().enumerate().flat_map(|(number, changes)| changes.iter().map(move |c| (number, *c)));
    let mut events = Vec::new();
    for falls in [true, false] {
        let mut left: Vec<(usize, ChangePoint)> =
            all().filter(|(_, change)| (change.effect.ratio < 1.0) == falls).collect();
        while let Some(place) = most_common_position(&left) {
            let changes = take(&mut left, place);
            events.extend(event(place, changes));
        }
    }
    events.sort_by_key(|event| (event.after, event.before));
    events
}

/// Whether an interval contains this position, which is before the point of that index.
fn has(interval: (usize, usize), place: usize) -> bool {
    interval.0 < place && place <= interval.1
}

/// The position at which most change points can lie, among the best positions of any; of equal ones that which is most
/// often the best position, and then the first.
fn most_common_position(changes: &[(usize, ChangePoint)]) -> Option<usize> {
    let end = changes.iter().map(|(_, change)| change.within.1).max()?;
    // Differences from one position to the next.
    let (mut possible, mut best) = (vec![0_i64; end + 2], vec![0_i64; end + 2]);
    for (_, change) in changes {
        possible[change.within.0 + 1] += 1;
        possible[change.within.1 + 1] -= 1;
        best[change.before + 1] += 1;
        best[change.after + 1] -= 1;
    }
    let (mut sums, mut most) = ((0, 0), None);
    for place in 0..=end {
        sums = (sums.0 + possible[place], sums.1 + best[place]);
        if sums.1 > 0 && most.is_none_or(|(most, _)| sums > most) {
            most = Some((sums, place));
        }
    }
    most.map(|(_, place)| place)
}

/// Removes and returns the change points that can lie at this position, the nearest one of each series.
fn take(changes: &mut Vec<(usize, ChangePoint)>, place: usize) -> Vec<(usize, ChangePoint)> {
    let mut taken: Vec<(usize, ChangePoint)> = Vec::new();
    let (here, mut left): (Vec<_>, Vec<_>) =
        changes.drain(..).partition(|(_, change)| has(change.within, place));
    for (number, change) in here {
        match taken.iter_mut().find(|(other, _)| *other == number) {
            None => taken.push((number, change)),
            Some((_, other)) if change.after.abs_diff(place) < other.after.abs_diff(place) => {
                left.push((number, std::mem::replace(other, change)));
            }
            Some(_) => left.push((number, change)),
        }
    }
    *changes = left;
    taken
}

fn event(place: usize, changes: Vec<(usize, ChangePoint)>) -> Option<Event> {
    let ratios = Sample::new(changes.iter().map(|(_, change)| change.effect.ratio))?;
    // The range common to all change points with this best position.
    let best = || changes.iter().filter(|(_, change)| has((change.before, change.after), place));
    Some(Event {
        before: best().map(|(_, change)| change.before).max()?,
        after: best().map(|(_, change)| change.after).min()?,
        ratio: ratios.geometric_mean()?,
        smallest: ratios.minimum(),
        largest: ratios.maximum(),
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, Logs};

    fn change(before: usize, after: usize, within: (usize, usize), ratio: f64) -> ChangePoint {
        let logs = |factor: f64| Logs::new([100.0 * factor, 100.0 * factor]).unwrap();
        let effect = Estimate::welch(&logs(1.0), &logs(ratio)).unwrap();
        ChangePoint { before, after, within, p: 0.001, effect }
    }

    fn at(after: usize, ratio: f64) -> ChangePoint {
        change(after - 1, after, (after - 1, after), ratio)
    }

    fn places(events: &[Event]) -> Vec<(usize, usize, Vec<usize>)> {
        let series = |event: &Event| event.changes.iter().map(|(number, _)| *number).collect();
        events.iter().map(|event| (event.before, event.after, series(event))).collect()
    }

    #[test]
    fn without_changes_there_are_no_events() {
        assert_eq!(events(&[]), []);
        assert_eq!(events(&[vec![], vec![]]), []);
    }

    #[test]
    fn changes_at_one_position_are_one_event() {
        let events = events(&[vec![at(5, 0.8), at(9, 2.0)], vec![], vec![at(5, 0.9)], vec![at(6, 0.5)]]);
        assert_eq!(places(&events), [(4, 5, vec![0, 2]), (5, 6, vec![3]), (8, 9, vec![0])]);
        assert!((events[0].ratio - 0.72_f64.sqrt()).abs() < 1e-12);
        assert!((events[0].smallest - 0.8).abs() < 1e-12 && (events[0].largest - 0.9).abs() < 1e-12);
    }

    #[test]
    fn falls_and_rises_at_one_position_are_two_events() {
        assert_eq!(
            places(&events(&[vec![at(5, 0.8)], vec![at(5, 1.2)]])),
            [(4, 5, vec![0]), (4, 5, vec![1])]
        );
    }

    /// A change that fits two positions joins the one with more; two that only a third could connect stay separate.
    #[test]
    fn an_uncertain_position_is_decided_by_the_others() {
        let wide = change(6, 7, (3, 9), 0.8);
        let events = events(&[vec![wide], vec![at(5, 0.8)], vec![at(5, 0.8)], vec![at(8, 0.8)]]);
        assert_eq!(places(&events), [(4, 5, vec![0, 1, 2]), (7, 8, vec![3])]);
    }

    #[test]
    fn a_series_with_missing_points_has_an_uncertain_position() {
        let lacking = change(3, 8, (3, 8), 0.8);
        assert_eq!(places(&events(&[vec![lacking], vec![at(5, 0.8)]])), [(4, 5, vec![0, 1])]);
        assert_eq!(places(&events(&[vec![lacking]])), [(3, 8, vec![0])]);
    }

    #[test]
    fn a_series_takes_part_once() {
        let near = change(4, 5, (3, 7), 0.8);
        let far = change(6, 7, (3, 7), 0.8);
        let events = events(&[vec![near, far], vec![at(5, 0.8)]]);
        assert_eq!(places(&events), [(4, 5, vec![0, 1]), (6, 7, vec![0])]);
    }
}
