//! What changed at the same place in several series.

use crate::{ChangePoint, Sample};

/// Change points of several series in which the same thing may show itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The last point with the level before, and the first with the level after, as far as the series can tell together.
    pub before: usize,
    /// See `before`.
    pub after: usize,
    /// The geometric mean of the ratios of its change points. It says how much they changed on average, not how much
    /// another series would.
    pub ratio: f64,
    /// The smallest ratio.
    pub smallest: f64,
    /// The largest ratio.
    pub largest: f64,
    /// The change points with the number of their series, in the order of these: one of each series at most.
    pub changes: Vec<(usize, ChangePoint)>,
}

/// Groups the change points of series that have the same points (one that lacks some has none there) into events, in
/// order of place.
///
/// Change points are of one event if they go the same way and there is a place where all of them can lie, by their
/// [`ChangePoint::within`]. The place where most can lie makes the first event; the others make the next ones.
pub fn events(series: &[Vec<ChangePoint>]) -> Vec<Event> {
    let all =
        || series.iter().enumerate().flat_map(|(number, changes)| changes.iter().map(move |c| (number, *c)));
    let mut events = Vec::new();
    for falls in [true, false] {
        let mut left: Vec<(usize, ChangePoint)> =
            all().filter(|(_, change)| (change.effect.ratio < 1.0) == falls).collect();
        while let Some(place) = most_common_place(&left) {
            let changes = take(&mut left, place);
            events.extend(event(place, changes));
        }
    }
    events.sort_by_key(|event| (event.after, event.before));
    events
}

/// Whether an interval has this place, which is before the point of that index.
fn has(interval: (usize, usize), place: usize) -> bool {
    interval.0 < place && place <= interval.1
}

/// The place where most change points can lie, of those that are the best place of one; of equal ones where most have
/// their best place, and then the first.
fn most_common_place(changes: &[(usize, ChangePoint)]) -> Option<usize> {
    let end = changes.iter().map(|(_, change)| change.within.1).max()?;
    // Differences from one place to the next.
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

/// Takes out the change points that can lie at this place, of each series the nearest.
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
    // Where all of those can lie whose best place this is.
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
    use crate::{Logs, Welch};

    fn change(before: usize, after: usize, within: (usize, usize), ratio: f64) -> ChangePoint {
        let logs = |factor: f64| Logs::new([100.0 * factor, 100.0 * factor]).unwrap();
        let effect = Welch::new(&logs(1.0), &logs(ratio)).unwrap();
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
    fn nothing_changed_is_no_event() {
        assert_eq!(events(&[]), []);
        assert_eq!(events(&[vec![], vec![]]), []);
    }

    #[test]
    fn changes_at_one_place_are_one_event() {
        let events = events(&[vec![at(5, 0.8), at(9, 2.0)], vec![], vec![at(5, 0.9)], vec![at(6, 0.5)]]);
        assert_eq!(places(&events), [(4, 5, vec![0, 2]), (5, 6, vec![3]), (8, 9, vec![0])]);
        assert!((events[0].ratio - 0.72_f64.sqrt()).abs() < 1e-12);
        assert!((events[0].smallest - 0.8).abs() < 1e-12 && (events[0].largest - 0.9).abs() < 1e-12);
    }

    #[test]
    fn what_falls_and_what_rises_at_one_place_are_two_events() {
        assert_eq!(
            places(&events(&[vec![at(5, 0.8)], vec![at(5, 1.2)]])),
            [(4, 5, vec![0]), (4, 5, vec![1])]
        );
    }

    /// A change that may lie at two places goes to that with more; two that only a third would connect stay two.
    #[test]
    fn an_uncertain_place_is_decided_by_the_others() {
        let wide = change(6, 7, (3, 9), 0.8);
        let events = events(&[vec![wide], vec![at(5, 0.8)], vec![at(5, 0.8)], vec![at(8, 0.8)]]);
        assert_eq!(places(&events), [(4, 5, vec![0, 1, 2]), (7, 8, vec![3])]);
    }

    #[test]
    fn a_series_that_lacks_points_says_less_of_the_place() {
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
