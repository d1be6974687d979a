//! Statements whose parameters get values: those of rows of the database, new ones, or some of their type.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use wire::blocking::SessionError;

use super::catalog::{Catalog, Column, Difference, Type};
use super::pool::{Expression, Pool, Wanted};
use super::uses::{Applied, ColumnUse, Role, Use, Uses};

/// Most elements of an array: of the rows that its statement returned on average.
const MAX_ELEMENTS: u64 = 100;
/// Number of rows for LIMIT.
const LIMIT: &str = "10";
/// Part of a time.
const TIME_FIELD: &str = "day";
/// Characters of a prefix that a pattern has.
const PREFIX_CHARS: usize = 3;
/// Largest number of those by type.
const MAX_NUMBER: u32 = 100;
/// Time in microseconds after the recorded period within which new times are: a day.
const MAX_LATER_US: i64 = 86_400_000_000;
/// Length of texts by type.
const TEXT_CHARS: usize = 8;
/// OIDs of types with new values. Source: `pg_type.dat`.
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const NUMERIC: u32 = 1700;
const TIMESTAMP: u32 = 1114;
const TIMESTAMPTZ: u32 = 1184;
const UUID: u32 = 2950;
const JSON: u32 = 114;
const JSONB: u32 = 3802;
const BYTEA: u32 = 17;
const DATE: u32 = 1082;
const TIME: u32 = 1083;
const TIMETZ: u32 = 1266;

/// A statement, and how its parameters get values.
#[derive(Clone, Debug)]
pub(super) struct Template {
    parameters: Vec<Parameter>,
    /// Whether each row is drawn once: it deletes them.
    draws_each_once: bool,
    /// Elements of its arrays.
    elements: u64,
    /// By relation and row: what must not be null.
    compared: BTreeMap<RowKey, Vec<Expression>>,
}

/// A row that a statement is about: of this relation (OID), its name in the statement, and a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey(u32, String, usize);

#[derive(Clone, Debug)]
enum Parameter {
    /// Of a row.
    Drawn {
        row: RowKey,
        expression: Expression,
        form: Form,
        otherwise: Type,
    },
    /// A value that no row has.
    New {
        row: RowKey,
        expression: Expression,
        of: Type,
    },
    /// Of its type.
    Typed(Type),
    Fixed(&'static str),
}

/// What is made of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Same,
    /// An array of several rows' values.
    Array,
    Prefix,
    Low,
    High,
}

/// What templates need of the database.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// By OID of the relation.
    wanted: BTreeMap<u32, Wanted>,
    /// Columns with new values, by OID and index.
    new: BTreeSet<(u32, usize)>,
}

impl Template {
    /// Plans the values of a statement with parameters of these types, whose calls return or change so many rows on average.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn new(
        uses: &Uses,
        types: &[u32],
        rows_per_call: f64,
        catalog: &mut Catalog<'_>,
        needs: &mut Needs,
    ) -> Result<Self, SessionError> {
        let mut template = Self {
            parameters: Vec::new(),
            draws_each_once: uses.is_delete,
            elements: (rows_per_call.round() as u64).clamp(1, MAX_ELEMENTS),
            compared: BTreeMap::new(),
        };
        let mut resolved = Vec::new();
        for (number, oid) in (1..).zip(types) {
            let kind = catalog.type_of(*oid)?;
            let column = match uses.of(number) {
                Use::Column(usage) => column(usage, &kind, catalog)?,
                _ => None,
            };
            resolved.push((number, kind, column));
        }
        // Rows of an INSERT, by what they fill.
        let mut inserted: BTreeMap<RowKey, BTreeSet<usize>> = BTreeMap::new();
        for (number, _, column) in &resolved {
            if let (Use::Column(ColumnUse { role: Role::Inserted, .. }), Some((row, expression, _))) =
                (uses.of(*number), column)
            {
                inserted.entry(row.clone()).or_default().insert(expression.column);
            }
        }
        for (number, kind, column) in resolved {
            let parameter = match (uses.of(number), column) {
                (Use::Limit, _) => Parameter::Fixed(LIMIT),
                (Use::Offset, _) => Parameter::Fixed("0"),
                (Use::TimeField, _) => Parameter::Fixed(TIME_FIELD),
                (Use::Column(usage), Some((row, expression, is_element))) => {
                    let relation = catalog.get(row.0);
                    let difference = relation
                        .zip(inserted.get(&row))
                        .filter(|_| usage.role == Role::Inserted && !uses.has_on_conflict)
                        .and_then(|(relation, inserted)| {
                            relation.different_columns(inserted).get(&expression.column).copied()
                        });
                    let keeps_own = usage.role == Role::Updated
                        && relation.is_some_and(|relation| relation.is_unique(expression.column));
                    let form = match usage.role {
                        _ if is_element => Form::Array,
                        Role::Like => Form::Prefix,
                        Role::Low => Form::Low,
                        Role::High => Form::High,
                        _ => Form::Same,
                    };
                    // A limit without the other is the row's value.
                    let is_ordered = matches!(form, Form::Low | Form::High);
                    needs.wanted.entry(row.0).or_default().add(expression.clone(), is_ordered);
                    if difference == Some(Difference::New) {
                        needs.new.insert((row.0, expression.column));
                        Parameter::New { row, expression, of: kind }
                    } else {
                        let RowKey(oid, alias, row) = row;
                        let row = match difference {
                            _ if keeps_own => 0,
                            Some(_) => usize::MAX - row,
                            None => row,
                        };
                        let row = RowKey(oid, alias, row);
                        if !matches!(usage.role, Role::Inserted | Role::Updated) {
                            template.compared.entry(row.clone()).or_default().push(expression.clone());
                        }
                        Parameter::Drawn { row, expression, form, otherwise: kind }
                    }
                }
                _ => Parameter::Typed(kind),
            };
            template.parameters.push(parameter);
        }
        template.pair_limits();
        Ok(template)
    }

    /// Limits without the other limit of the same column: the value of the row itself.
    fn pair_limits(&mut self) {
        let limits: Vec<(RowKey, Expression, Form)> = self
            .parameters
            .iter()
            .filter_map(|parameter| match parameter {
                Parameter::Drawn { row, expression, form, .. } => {
                    Some((row.clone(), expression.clone(), *form))
                }
                _ => None,
            })
            .collect();
        for parameter in &mut self.parameters {
            let Parameter::Drawn { row, expression, form, .. } = parameter else { continue };
            let other = match form {
                Form::Low => Form::High,
                Form::High => Form::Low,
                _ => continue,
            };
            if !limits.iter().any(|limit| (&limit.0, &limit.1, limit.2) == (row, expression, other)) {
                *form = Form::Same;
            }
        }
    }
}

/// The row and the column that a parameter of this type gets values from, and whether it is an array of them. None if its type
/// is another.
fn column(
    usage: &ColumnUse,
    kind: &Type,
    catalog: &mut Catalog<'_>,
) -> Result<Option<(RowKey, Expression, bool)>, SessionError> {
    for (relation, alias) in &usage.relations {
        let Some(oid) = catalog.oid(relation)? else { continue };
        let Some(relation) = catalog.get(oid) else { continue };
        let Some(column) = relation.column(&usage.column) else { continue };
        let column_type = relation.columns[column].type_oid;
        let of_column = catalog.type_of(column_type)?;
        let is_element = match kind.element {
            Some(element) if kind.oid != column_type => {
                let element = catalog.type_of(element)?;
                fits(&element, &of_column, &usage.applied).then_some(true)
            }
            _ => fits(kind, &of_column, &usage.applied).then_some(false),
        };
        let Some(is_element) = is_element else { return Ok(None) };
        let expression = Expression { column, applied: usage.applied.clone() };
        return Ok(Some((RowKey(oid, alias.clone(), usage.row), expression, is_element)));
    }
    Ok(None)
}

/// Whether texts of a column's values are values of a parameter's type.
fn fits(kind: &Type, column: &Type, applied: &Applied) -> bool {
    let is_similar = kind.category == column.category && "SNDBT".contains(kind.category);
    // What is applied has another type.
    kind.oid == column.oid || is_similar || *applied != Applied::Nothing
}

/// Values for templates.
pub(super) struct Values {
    pools: BTreeMap<u32, Pool>,
    /// The next new number of a column.
    next: HashMap<(u32, usize), u64>,
    /// The next row to delete.
    deleted: HashMap<u32, usize>,
    random: fastrand::Rng,
    /// End of the recorded period, in microseconds since 1970.
    now_us: i64,
}

/// The values of one execution.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) values: Vec<Option<Arc<str>>>,
    /// Whether one is of its type only.
    pub(super) has_typed: bool,
}

impl Values {
    /// Reads what the templates need. Calls `on_refused` with the name of each relation that can't be read, and why.
    ///
    /// New numbers begin `executions` after the largest ones, so that those of sequences and of the trace differ.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn read(
        catalog: &mut Catalog<'_>,
        needs: &Needs,
        (seed, executions, now_us): (u64, u64, i64),
        on_refused: &mut dyn FnMut(&str, &SessionError),
    ) -> Result<Self, SessionError> {
        let mut pools = BTreeMap::new();
        for (oid, wanted) in &needs.wanted {
            let Some(relation) = catalog.get(*oid).cloned() else { continue };
            match Pool::read(catalog.session(), &relation, wanted, seed) {
                Ok(pool) => drop(pools.insert(*oid, pool)),
                Err(error) if error.server_error().is_some() => on_refused(&relation.sql, &error),
                Err(error) => return Err(error),
            }
        }
        let mut next = HashMap::new();
        for (oid, column) in &needs.new {
            let Some(relation) = catalog.get(*oid).cloned() else { continue };
            let Column { name, type_oid } = &relation.columns[*column];
            let largest = match *type_oid {
                INT2 => i64::from(i16::MAX),
                INT4 => i64::from(i32::MAX),
                INT8 | NUMERIC => i64::MAX,
                _ => continue,
            };
            let name = wire::quote_identifier(name);
            let highest = catalog.session().query_one::<i64>(&format!(
                "SELECT coalesce(least(max({name}), {}), 0)::bigint FROM {}",
                i64::MAX / 2,
                relation.sql
            ));
            let highest = match highest {
                Ok(highest) => highest.max(0) as u64,
                Err(error) if error.server_error().is_some() => continue,
                Err(error) => return Err(error),
            };
            let apart = highest.saturating_add(executions);
            let has_room = apart.saturating_add(executions) <= largest as u64;
            next.insert((*oid, *column), if has_room { apart } else { highest } + 1);
        }
        let random = fastrand::Rng::with_seed(seed);
        Ok(Self { pools, next, deleted: HashMap::new(), random, now_us })
    }

    /// Values for an execution.
    pub(super) fn draw(&mut self, template: &Template) -> Drawn {
        let mut drawn = Drawn::default();
        let mut rows: Vec<(&RowKey, Option<usize>)> = Vec::new();
        for parameter in &template.parameters {
            let value = match parameter {
                Parameter::Fixed(text) => Some(Arc::from(*text)),
                Parameter::Typed(of) => {
                    drawn.has_typed = true;
                    self.typed(of)
                }
                Parameter::New { row, expression, of } => {
                    let number = self.row_of(template, row, &mut rows);
                    self.new_value(row.0, number, expression, of)
                }
                Parameter::Drawn { row: key, expression, form: Form::Array, .. } => {
                    let rows: Vec<usize> =
                        (0..template.elements).filter_map(|_| self.row(template, key)).collect();
                    let pool = self.pools.get(&key.0);
                    let values = rows.iter().filter_map(|row| pool?.value(*row, expression));
                    Some(array(values.map(|value| &**value)))
                }
                Parameter::Drawn { row: key, expression, form, otherwise } => {
                    match self.row_of(template, key, &mut rows) {
                        Some(row) => self.of_row(key.0, row, expression, *form),
                        None => {
                            drawn.has_typed = true;
                            self.typed(otherwise)
                        }
                    }
                }
            };
            drawn.values.push(value);
        }
        drawn
    }

    /// The row of this execution.
    fn row_of<'t>(
        &mut self,
        template: &'t Template,
        key: &'t RowKey,
        rows: &mut Vec<(&'t RowKey, Option<usize>)>,
    ) -> Option<usize> {
        if let Some((_, row)) = rows.iter().find(|(known, _)| *known == key) {
            return *row;
        }
        let row = self.row(template, key);
        rows.push((key, row));
        row
    }

    /// A row, drawn.
    fn row(&mut self, template: &Template, key: &RowKey) -> Option<usize> {
        let pool = self.pools.get(&key.0)?;
        if template.draws_each_once {
            let number = self.deleted.entry(key.0).or_default();
            *number += 1;
            return pool.row(*number - 1);
        }
        let needed: Vec<&Expression> = template.compared.get(key).into_iter().flatten().collect();
        pool.draw(&mut self.random, &needed)
    }

    fn of_row(&self, oid: u32, row: usize, expression: &Expression, form: Form) -> Option<Arc<str>> {
        let pool = self.pools.get(&oid)?;
        match form {
            Form::Low | Form::High => pool.limit(row, expression, form == Form::High).cloned(),
            Form::Prefix => {
                let value = pool.value(row, expression)?;
                let prefix: String = value.chars().take(PREFIX_CHARS).collect();
                Some(format!("{prefix}%").into())
            }
            Form::Same | Form::Array => pool.value(row, expression).cloned(),
        }
    }

    /// A value that no row has, as far as its type lets one be made; else that of a row.
    fn new_value(
        &mut self,
        oid: u32,
        row: Option<usize>,
        expression: &Expression,
        of: &Type,
    ) -> Option<Arc<str>> {
        if let Some(next) = self.next.get_mut(&(oid, expression.column)) {
            *next += 1;
            return Some((*next - 1).to_string().into());
        }
        let known = row.and_then(|row| self.pools.get(&oid)?.value(row, expression).cloned());
        match (of.oid, of.category, known) {
            (UUID, ..) => Some(uuid(&mut self.random).into()),
            (TIMESTAMP | TIMESTAMPTZ, ..) => {
                let later_us = self.random.i64(..=MAX_LATER_US);
                Some(time(self.now_us.saturating_add(later_us), of.oid).into())
            }
            (_, 'S', Some(known)) => Some(letters(&mut self.random, known.chars().count()).into()),
            (_, 'S', None) => Some(letters(&mut self.random, TEXT_CHARS).into()),
            (_, _, Some(known)) => Some(known),
            _ => self.typed(of),
        }
    }

    /// A value of a type, which no row may have.
    fn typed(&mut self, of: &Type) -> Option<Arc<str>> {
        let random = &mut self.random;
        let text: String = match (of.oid, of.category) {
            (UUID, _) => uuid(random),
            (JSON | JSONB, _) => "{}".to_owned(),
            (BYTEA, _) => "\\x".to_owned(),
            (DATE | TIMESTAMP | TIMESTAMPTZ | TIME | TIMETZ, _) => time(self.now_us, of.oid),
            (_, 'N') => random.u32(1..=MAX_NUMBER).to_string(),
            (_, 'S') => letters(random, TEXT_CHARS),
            (_, 'B') => random.bool().to_string(),
            (_, 'T') => "1 day".to_owned(),
            (_, 'A') => "{}".to_owned(),
            (_, 'E') => return random.choice(&of.labels).cloned(),
            _ => return None,
        };
        Some(text.into())
    }
}

/// A random UUID of version 4.
fn uuid(random: &mut fastrand::Rng) -> String {
    let (a, b) = (random.u64(..), random.u64(..));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | ((b >> 48) & 0x3fff),
        b & 0xffff_ffff_ffff
    )
}

fn letters(random: &mut fastrand::Rng, count: usize) -> String {
    std::iter::repeat_with(|| random.lowercase()).take(count).collect()
}

/// A time as a type has it.
fn time(at_us: i64, oid: u32) -> String {
    let at = Timestamp::from_microsecond(at_us).unwrap_or_default();
    match oid {
        DATE => at.strftime("%Y-%m-%d").to_string(),
        TIME | TIMETZ => at.strftime("%H:%M:%S%.6f+00").to_string(),
        _ => at.strftime("%Y-%m-%d %H:%M:%S%.6f+00").to_string(),
    }
}

/// An array as PostgreSQL writes one.
fn array<'v>(values: impl Iterator<Item = &'v str>) -> Arc<str> {
    let quoted = values.map(|value| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(",")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_types_have_their_form() {
        let mut random = fastrand::Rng::with_seed(7);
        let text = uuid(&mut random);
        let parts: Vec<usize> = text.split('-').map(str::len).collect();
        assert_eq!((parts, &text[14..15]), (vec![8, 4, 4, 4, 12], "4"), "{text}");
        assert!("89ab".contains(&text[19..20]), "{text}");
        assert_eq!(letters(&mut random, 5).len(), 5);
        let at_us = 1_795_780_867_000_000;
        assert_eq!(time(at_us, DATE), "2026-11-27");
        assert_eq!(time(at_us, TIME), "12:01:07.000000+00");
        assert_eq!(time(at_us, TIMESTAMPTZ), "2026-11-27 12:01:07.000000+00");
        assert_eq!(&*array(["a", "b\"c\\"].into_iter()), r#"{"a","b\"c\\"}"#);
    }
}
