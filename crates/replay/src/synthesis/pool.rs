//! Rows of a relation, from which values are drawn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use wire::blocking::{Session, SessionError};
use wire::quote_identifier;

use super::catalog::Relation;
use super::uses::Applied;

/// Rows of a relation that are read.
const MAX_ROWS: f64 = 10_000.0;
/// Bytes of a relation that are read, about.
const MAX_BYTES: f64 = (64 << 20) as f64;
/// Rows that a relation is taken to have at least, if its statistics say so: they may be old.
const LEAST_ROWS: f64 = 100.0;
/// Bytes of a row, for relations without statistics.
const ROW_BYTES: f64 = 100.0;
/// Share of the rows between the two limits of a range: what PostgreSQL's planner assumes (DEFAULT_RANGE_INEQ_SEL).
const RANGE_SHARE: f64 = 0.005;
/// Rows that are drawn to find one without a null.
const NULL_ATTEMPTS: usize = 20;

/// What is read of each row: a column, or something applied to one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Expression {
    /// Index of the relation's columns.
    pub(super) column: usize,
    pub(super) applied: Applied,
}

/// What is needed of a relation.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// The expressions, and whether their order is needed.
    expressions: BTreeMap<Expression, bool>,
}

impl Wanted {
    pub(super) fn add(&mut self, expression: Expression, is_ordered: bool) {
        *self.expressions.entry(expression).or_default() |= is_ordered;
    }
}

/// Rows that were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// By expression: its position in the rows.
    positions: BTreeMap<Expression, usize>,
    rows: Vec<Vec<Option<Arc<str>>>>,
    /// By position: the rows in the order of its values, and the place of each row in it.
    orders: BTreeMap<usize, Order>,
}

#[derive(Clone, Debug, Default)]
struct Order {
    rows: Vec<usize>,
    places: Vec<usize>,
}

impl Pool {
    /// Reads rows, spread over the relation, in an order that depends on the seed.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub(super) fn read(
        session: &mut Session,
        relation: &Relation,
        wanted: &Wanted,
        seed: u64,
    ) -> Result<Self, SessionError> {
        let statement = statement(relation, wanted, seed);
        let mut rows: Vec<Vec<Option<String>>> = session.query(&statement)?;
        fastrand::Rng::with_seed(seed).shuffle(&mut rows);
        Ok(Self::new(wanted, rows))
    }

    /// Rows with the expressions, and after them the ranks of those that are ordered.
    fn new(wanted: &Wanted, rows: Vec<Vec<Option<String>>>) -> Self {
        let count = wanted.expressions.len();
        let positions: BTreeMap<Expression, usize> =
            wanted.expressions.keys().enumerate().map(|(at, expression)| (expression.clone(), at)).collect();
        let mut orders = BTreeMap::new();
        let ordered = wanted.expressions.values().enumerate().filter(|(_, is_ordered)| **is_ordered);
        for (rank, (position, _)) in ordered.enumerate() {
            let rank_of = |row: &usize| -> u64 {
                rows[*row]
                    .get(count + rank)
                    .and_then(Option::as_ref)
                    .and_then(|rank| rank.parse().ok())
                    .unwrap_or(0)
            };
            let has_value = |row: &usize| rows[*row].get(position).is_some_and(Option::is_some);
            let mut by_rank: Vec<usize> = (0..rows.len()).filter(has_value).collect();
            by_rank.sort_by_key(|row| (rank_of(row), *row));
            let mut places = vec![0; rows.len()];
            for (place, row) in by_rank.iter().enumerate() {
                places[*row] = place;
            }
            orders.insert(position, Order { rows: by_rank, places });
        }
        let shared = |row: Vec<Option<String>>| -> Vec<Option<Arc<str>>> {
            row.into_iter().take(count).map(|value| value.map(Arc::from)).collect()
        };
        Self { positions, rows: rows.into_iter().map(shared).collect(), orders }
    }

    /// A row in which these expressions are not null, if one is found soon; none if there are no rows.
    pub(super) fn draw(&self, random: &mut fastrand::Rng, needed: &[&Expression]) -> Option<usize> {
        if self.rows.is_empty() {
            return None;
        }
        let mut row = 0;
        for _ in 0..NULL_ATTEMPTS {
            row = random.usize(..self.rows.len());
            if needed.iter().all(|expression| self.value(row, expression).is_some()) {
                break;
            }
        }
        Some(row)
    }

    /// The row after a number of others: each once, then again from the first.
    pub(super) fn row(&self, number: usize) -> Option<usize> {
        (!self.rows.is_empty()).then(|| number % self.rows.len())
    }

    /// A value of a row.
    pub(super) fn value(&self, row: usize, expression: &Expression) -> Option<&Arc<str>> {
        let position = *self.positions.get(expression)?;
        self.rows.get(row)?.get(position)?.as_ref()
    }

    /// The lower or upper limit of a range around a row.
    pub(super) fn limit(&self, row: usize, expression: &Expression, is_upper: bool) -> Option<&Arc<str>> {
        let order = self.orders.get(self.positions.get(expression)?)?;
        let last = order.rows.len().checked_sub(1)?;
        let width = ((order.rows.len() as f64 * RANGE_SHARE) as usize).max(1);
        let place = *order.places.get(row)?;
        let low = place.saturating_sub(width / 2).min(last.saturating_sub(width));
        let at = if is_upper { (low + width).min(last) } else { low };
        self.value(*order.rows.get(at)?, expression)
    }
}

/// The query for rows.
fn statement(relation: &Relation, wanted: &Wanted, seed: u64) -> String {
    let columns: Vec<String> = wanted
        .expressions
        .keys()
        .map(|Expression { column, applied }| {
            let name = relation.columns.get(*column).map_or("", |column| &column.name);
            let name = quote_identifier(name);
            match applied {
                Applied::Nothing => name,
                Applied::Function(function) => format!("{}({name})", quote_identifier(function)),
                Applied::Cast(to) => format!("{name}::{}", quote_identifier(to)),
            }
        })
        .collect();
    let (mut inner, mut outer) = (String::new(), String::new());
    for (number, column) in columns.iter().enumerate() {
        let separator = if number == 0 { "" } else { ", " };
        let _ = write!(inner, "{separator}{column} AS e{number}");
        let _ = write!(outer, "{separator}e{number}::text");
    }
    for (number, is_ordered) in wanted.expressions.values().enumerate() {
        if *is_ordered {
            let _ = write!(outer, ", rank() OVER (ORDER BY e{number})");
        }
    }
    let known = if relation.rows > 0.0 { relation.rows } else { relation.bytes / ROW_BYTES };
    let rows = known.max(LEAST_ROWS);
    let limit = (MAX_BYTES / (relation.bytes / rows).max(1.0)).clamp(LEAST_ROWS, MAX_ROWS);
    // Whole blocks are drawn: some more, since fewer are found now and then.
    let percent = (100.0 * 1.2 * limit / rows).min(100.0);
    let sample = match relation.kind {
        'r' | 'm' | 'p' if percent < 100.0 => {
            format!(" TABLESAMPLE SYSTEM ({percent:.6}) REPEATABLE ({})", seed % (1 << 31))
        }
        _ => String::new(),
    };
    format!("SELECT {outer} FROM (SELECT {inner} FROM {}{sample} LIMIT {limit:.0}) sample", relation.sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(column: usize) -> Expression {
        Expression { column, applied: Applied::Nothing }
    }

    /// Rows of a number and a text that is null in each third.
    fn pool(rows: usize) -> Pool {
        let mut wanted = Wanted::default();
        wanted.add(expression(0), true);
        wanted.add(expression(1), false);
        let row = |number: usize| {
            let text = (!number.is_multiple_of(3)).then(|| format!("text {number}"));
            vec![Some((rows - number).to_string()), text, Some((rows - number).to_string())]
        };
        Pool::new(&wanted, (0..rows).map(row).collect())
    }

    #[test]
    fn values_of_a_row_belong_together_and_are_no_nulls() {
        let pool = pool(300);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100 {
            let row = pool.draw(&mut random, &[&expression(0), &expression(1)]).unwrap();
            let number: usize = pool.value(row, &expression(0)).unwrap().parse().unwrap();
            assert_eq!(&**pool.value(row, &expression(1)).unwrap(), format!("text {}", 300 - number));
        }
        assert_eq!(Pool::default().draw(&mut random, &[]), None);
        assert_eq!([0, 299, 300].map(|number| pool.row(number)), [Some(0), Some(299), Some(0)]);
    }

    #[test]
    fn ranges_hold_the_row_and_a_two_hundredth_of_all() {
        let pool = pool(1000);
        for row in 0..1000 {
            let number = |text: Option<&Arc<str>>| text.unwrap().parse::<usize>().unwrap();
            let own = number(pool.value(row, &expression(0)));
            let low = number(pool.limit(row, &expression(0), false));
            let high = number(pool.limit(row, &expression(0), true));
            assert!(low <= own && own <= high && high - low == 5, "{low} {own} {high}");
        }
        assert_eq!(pool.limit(0, &expression(1), true), None);
    }
}
