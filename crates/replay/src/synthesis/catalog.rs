//! What the database of the values says of statements, relations and types.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use wire::blocking::{Session, SessionError};
use wire::{quote_identifier, quote_literal};

use super::uses::{ColumnName, RelationName};

/// Name of the prepared statement.
const PREPARED: &str = "pgdyno_synthesis";

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    /// Its OID; that of the base type for a domain.
    pub(super) oid: u32,
    /// Its name, as `format_type` has it.
    pub(super) name: String,
    /// `pg_type.typcategory`.
    pub(super) category: char,
    /// OID of its elements, if it is an array.
    pub(super) element: Option<u32>,
    /// Labels, if it is an enum.
    pub(super) labels: Vec<Arc<str>>,
}

/// A relation.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// Its name for statements, quoted.
    pub(super) sql: String,
    /// `pg_class.relkind`.
    pub(super) kind: char,
    /// Estimated number of rows, and bytes on disk, with all partitions.
    pub(super) rows: f64,
    pub(super) bytes: f64,
    pub(super) columns: Vec<Column>,
    /// The columns of each unique index, by index of `columns`.
    unique: Vec<Vec<usize>>,
    /// The columns that reference others.
    referencing: BTreeSet<usize>,
}

/// A column of a relation.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// OID of its type; of a domain, that of the base type.
    pub(super) type_oid: u32,
}

/// How the value of a column differs from that of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// No row has it.
    New,
    /// It is of another row.
    OtherRow,
}

/// The catalog, as far as it was queried.
pub(super) struct Catalog<'a> {
    session: &'a mut Session,
    relations: HashMap<RelationName, Option<u32>>,
    known: BTreeMap<u32, Relation>,
    types: HashMap<u32, Type>,
}

impl<'a> Catalog<'a> {
    pub(super) fn new(session: &'a mut Session) -> Self {
        Self { session, relations: HashMap::new(), known: BTreeMap::new(), types: HashMap::new() }
    }

    /// The session, for other queries.
    pub(super) fn session(&mut self) -> &mut Session {
        self.session
    }

    /// The types of a statement's parameters.
    ///
    /// # Errors
    /// The server refuses the statement, or the connection is lost.
    pub(super) fn parameter_types(&mut self, statement: &str) -> Result<Vec<u32>, SessionError> {
        self.session.execute(&format!("PREPARE {PREPARED} AS {statement}"))?;
        let types = self.session.query(&format!(
            "SELECT coalesce(nullif(t.typbasetype, 0), t.oid) FROM pg_prepared_statements p, \
             unnest(p.parameter_types) WITH ORDINALITY parameter (type, number) JOIN pg_type t ON t.oid = parameter.type \
             WHERE p.name = '{PREPARED}' ORDER BY number"
        ));
        self.session.execute(&format!("DEALLOCATE {PREPARED}"))?;
        types
    }

    /// A type.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn type_of(&mut self, oid: u32) -> Result<Type, SessionError> {
        if let Some(known) = self.types.get(&oid) {
            return Ok(known.clone());
        }
        let (name, category, element): (String, String, u32) = self.session.query_one(&format!(
            "SELECT format_type(oid, NULL), typcategory, CASE typcategory WHEN 'A' THEN typelem ELSE 0 END \
             FROM pg_type WHERE oid = {oid}"
        ))?;
        let labels: Vec<String> = self.session.query(&format!(
            "SELECT enumlabel FROM pg_enum WHERE enumtypid = {oid} ORDER BY enumsortorder"
        ))?;
        let found = Type {
            oid,
            name,
            category: category.chars().next().unwrap_or('U'),
            element: (element != 0).then_some(element),
            labels: labels.into_iter().map(Arc::from).collect(),
        };
        self.types.insert(oid, found.clone());
        Ok(found)
    }

    /// OID of the relation of this name, as the session's search path has it. None if there is none.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn oid(&mut self, name: &RelationName) -> Result<Option<u32>, SessionError> {
        if let Some(known) = self.relations.get(name) {
            return Ok(*known);
        }
        let schema = name.schema.as_ref().map(|schema| format!("{}.", quote_identifier(schema)));
        let quoted = format!("{}{}", schema.unwrap_or_default(), quote_identifier(&name.name));
        let oid: Option<u32> =
            self.session.query_one(&format!("SELECT to_regclass({})::oid", quote_literal(&quoted)))?;
        if let Some(oid) = oid
            && !self.known.contains_key(&oid)
        {
            let relation = self.relation(oid)?;
            self.known.insert(oid, relation);
        }
        self.relations.insert(name.clone(), oid);
        Ok(oid)
    }

    /// A relation that was queried.
    pub(super) fn get(&self, oid: u32) -> Option<&Relation> {
        self.known.get(&oid)
    }

    fn relation(&mut self, oid: u32) -> Result<Relation, SessionError> {
        // Partitions have the rows.
        let (sql, kind, rows, bytes): (String, String, f64, f64) = self.session.query_one(&format!(
            "WITH RECURSIVE part AS (SELECT {oid}::oid AS oid UNION SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = oid) \
             SELECT max(format('%I.%I', n.nspname, c.relname)) FILTER (WHERE c.oid = {oid}), \
             max(c.relkind::text) FILTER (WHERE c.oid = {oid}), \
             sum(greatest(c.reltuples, 0))::float8, coalesce(sum(pg_table_size(c.oid)), 0)::float8 \
             FROM part JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
        ))?;
        let columns: Vec<(String, u32, i64)> = self.session.query(&format!(
            "SELECT attname, coalesce(nullif(t.typbasetype, 0), t.oid), attnum FROM pg_attribute \
             JOIN pg_type t ON t.oid = atttypid WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        ))?;
        let position = |number: &str| {
            let number: i64 = number.parse().ok()?;
            columns.iter().position(|(_, _, attnum)| *attnum == number)
        };
        let numbers = |text: &String, separator| -> Vec<usize> {
            text.split(separator).filter(|number| !number.is_empty()).filter_map(position).collect()
        };
        let unique: Vec<String> = self.session.query(&format!(
            "SELECT indkey::text FROM pg_index WHERE indrelid = {oid} AND indisunique AND indexprs IS NULL AND indpred IS NULL \
             ORDER BY indexrelid"
        ))?;
        let referencing: Vec<String> = self.session.query(&format!(
            "SELECT array_to_string(conkey, ' ') FROM pg_constraint WHERE conrelid = {oid} AND contype = 'f'"
        ))?;
        Ok(Relation {
            sql,
            kind: kind.chars().next().unwrap_or('r'),
            rows,
            bytes,
            unique: unique.iter().map(|keys| numbers(keys, ' ')).collect(),
            referencing: referencing.iter().flat_map(|keys| numbers(keys, ' ')).collect(),
            columns: columns.into_iter().map(|(name, type_oid, _)| Column { name, type_oid }).collect(),
        })
    }
}

impl Relation {
    /// The column of this name.
    pub(super) fn column(&self, name: &ColumnName) -> Option<usize> {
        match name {
            ColumnName::Name(name) => self.columns.iter().position(|column| column.name == *name),
            ColumnName::Number(number) => (*number < self.columns.len()).then_some(*number),
        }
    }

    /// Columns that may not have the values of one row, if rows with these columns are inserted: one of each unique index that has
    /// no others. A column that is missing has a default, which is new.
    pub(super) fn different_columns(&self, inserted: &BTreeSet<usize>) -> BTreeMap<usize, Difference> {
        let mut different: BTreeMap<usize, Difference> = BTreeMap::new();
        for columns in &self.unique {
            let is_given = columns.iter().all(|column| inserted.contains(column));
            if !is_given || columns.iter().any(|column| different.contains_key(column)) {
                continue;
            }
            let own = columns.iter().find(|column| !self.referencing.contains(column));
            match (own, columns.last()) {
                (Some(own), _) => drop(different.insert(*own, Difference::New)),
                // A pair of references that is new, most probably.
                (None, Some(last)) => drop(different.insert(*last, Difference::OtherRow)),
                (None, None) => {}
            }
        }
        different
    }

    /// Whether a column is part of a unique index.
    pub(super) fn is_unique(&self, column: usize) -> bool {
        self.unique.iter().any(|columns| columns.contains(&column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_rows_differ_in_each_unique_index_that_they_fill() {
        let column = |name: &str| Column { name: name.to_owned(), type_oid: 23 };
        let relation = |unique: &[&[usize]], referencing: &[usize]| Relation {
            sql: "t".to_owned(),
            kind: 'r',
            rows: 0.0,
            bytes: 0.0,
            columns: ["a", "b", "c"].map(column).into(),
            unique: unique.iter().map(|columns| columns.to_vec()).collect(),
            referencing: referencing.iter().copied().collect(),
        };
        let different = |relation: &Relation, inserted: &[usize]| -> Vec<(usize, Difference)> {
            relation.different_columns(&inserted.iter().copied().collect()).into_iter().collect()
        };
        let key = relation(&[&[0]], &[]);
        assert_eq!(different(&key, &[0, 1]), [(0, Difference::New)]);
        assert_eq!(different(&key, &[1, 2]), []);
        // An item of an order: the order exists.
        let item = relation(&[&[0, 1]], &[0]);
        assert_eq!(different(&item, &[0, 1, 2]), [(1, Difference::New)]);
        assert_eq!(different(&item, &[0, 2]), []);
        let pair = relation(&[&[0, 1], &[2]], &[0, 1]);
        assert_eq!(different(&pair, &[0, 1, 2]), [(1, Difference::OtherRow), (2, Difference::New)]);
        assert_eq!(item.column(&ColumnName::Name("c".to_owned())), Some(2));
        assert_eq!(item.column(&ColumnName::Number(3)), None);
    }
}
