//! Parsed expressions.

use crate::{Slot, Value};

/// An expression of `\set`, evaluated by [`Expr::eval`].
///
/// Forms that pgbench rewrites are already rewritten: `-x` is `0 - x`, `~x` is `-1 # x`, `a > b` is `b < a` (with `b`
/// evaluated first, as in pgbench), `x isnull` is `x is null`, and a hash without a seed uses `:default_seed`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A literal.
    Constant(Value),
    /// `:name`.
    Variable(Slot),
    /// A function of one argument.
    Unary(Unary, Box<Expr>),
    /// An operator, or a function of two arguments.
    Binary(Binary, Box<[Expr; 2]>),
    /// A function of three arguments.
    Ternary(Ternary, Box<[Expr; 3]>),
    /// `least` or `greatest`.
    Extremum(Extremum, Box<[Expr]>),
    /// `and`, which does not evaluate the right side if the left one is false or null.
    And(Box<[Expr; 2]>),
    /// `or`, which does not evaluate the right side if the left one is true or null.
    Or(Box<[Expr; 2]>),
    /// `case when condition then value … else value end`; no `else` means null.
    Case {
        /// The conditions, each with its value.
        arms: Box<[(Expr, Expr)]>,
        /// The value when no condition holds.
        otherwise: Box<Expr>,
    },
}

/// Functions of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function of the manual that has its name")]
pub enum Unary {
    Not,
    Abs,
    Debug,
    Double,
    Exp,
    Int,
    Ln,
    Sqrt,
}

/// Operators and functions of two arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the operator or function of the manual that has its name")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Is,
    Power,
    HashFnv1a,
    HashMurmur2,
    Random,
}

/// Functions of three arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function of the manual that has its name")]
pub enum Ternary {
    Permute,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
}

/// `least` and `greatest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function of the manual that has its name")]
pub enum Extremum {
    Least,
    Greatest,
}
