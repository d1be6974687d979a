//! The functions by name: PostgreSQL 18's table "pgbench Functions".

use std::f64::consts::PI;

use crate::expr::{Binary, Expr, Extremum, Ternary, Unary};
use crate::{Slot, Value};

/// Form of a function in an expression, with the number of its arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Function {
    Constant(Value),
    Unary(Unary),
    Binary(Binary),
    Ternary(Ternary),
    /// At least one argument.
    Extremum(Extremum),
    /// One argument and, optionally, a seed.
    Hash(Binary),
    /// Two arguments and, optionally, a seed.
    Permute,
}

/// The variable that seeds hashes and permutations without a seed.
pub(crate) const DEFAULT_SEED: &str = "default_seed";

/// Every function, by name.
pub(crate) const FUNCTIONS: [(&str, Function); 21] = [
    ("abs", Function::Unary(Unary::Abs)),
    ("debug", Function::Unary(Unary::Debug)),
    ("double", Function::Unary(Unary::Double)),
    ("exp", Function::Unary(Unary::Exp)),
    ("greatest", Function::Extremum(Extremum::Greatest)),
    ("hash", Function::Hash(Binary::HashMurmur2)),
    ("hash_fnv1a", Function::Hash(Binary::HashFnv1a)),
    ("hash_murmur2", Function::Hash(Binary::HashMurmur2)),
    ("int", Function::Unary(Unary::Int)),
    ("least", Function::Extremum(Extremum::Least)),
    ("ln", Function::Unary(Unary::Ln)),
    ("mod", Function::Binary(Binary::Modulo)),
    ("permute", Function::Permute),
    ("pi", Function::Constant(Value::Double(PI))),
    ("pow", Function::Binary(Binary::Power)),
    ("power", Function::Binary(Binary::Power)),
    ("random", Function::Binary(Binary::Random)),
    ("random_exponential", Function::Ternary(Ternary::RandomExponential)),
    ("random_gaussian", Function::Ternary(Ternary::RandomGaussian)),
    ("random_zipfian", Function::Ternary(Ternary::RandomZipfian)),
    ("sqrt", Function::Unary(Unary::Sqrt)),
];

impl Function {
    /// The function of this name, in any case, with the manual's spelling of the name.
    pub(crate) fn find(name: &str) -> Option<(&'static str, Function)> {
        FUNCTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).copied()
    }

    /// Number of its arguments, in words.
    pub(crate) fn arity(self) -> &'static str {
        match self {
            Function::Constant(_) => "no argument",
            Function::Unary(_) => "1 argument",
            Function::Binary(_) => "2 arguments",
            Function::Ternary(_) => "3 arguments",
            Function::Extremum(_) => "1 or more arguments",
            Function::Hash(_) => "1 or 2 arguments",
            Function::Permute => "2 or 3 arguments",
        }
    }

    /// Whether a seed would complete these arguments.
    pub(crate) fn lacks_seed(self, arguments: usize) -> bool {
        matches!((self, arguments), (Function::Hash(_), 1) | (Function::Permute, 2))
    }

    /// The call, or `None` when the number of arguments is wrong.
    pub(crate) fn call(self, mut arguments: Vec<Expr>, seed: Option<Slot>) -> Option<Expr> {
        arguments.extend(seed.map(Expr::Variable));
        Some(match self {
            Function::Constant(value) => arguments.is_empty().then_some(Expr::Constant(value))?,
            Function::Unary(function) => {
                let [argument] = <[Expr; 1]>::try_from(arguments).ok()?;
                Expr::Unary(function, Box::new(argument))
            }
            Function::Binary(function) | Function::Hash(function) => {
                Expr::Binary(function, Box::new(arguments.try_into().ok()?))
            }
            Function::Ternary(function) => Expr::Ternary(function, Box::new(arguments.try_into().ok()?)),
            Function::Permute => Expr::Ternary(Ternary::Permute, Box::new(arguments.try_into().ok()?)),
            Function::Extremum(function) => {
                (!arguments.is_empty()).then(|| Expr::Extremum(function, arguments.into()))?
            }
        })
    }
}
