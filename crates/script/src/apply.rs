//! Operators and functions, applied to their arguments.
//!
//! A null argument makes the result null, except for `is` and `debug`. Arithmetic and comparisons use doubles if either
//! side is one, else integers.

use crate::distribution;
use crate::expr::{Binary, Extremum, Ternary, Unary};
use crate::hash;
use crate::{EvalError, RandomState, Value};

pub(crate) fn unary(function: Unary, value: Value) -> Result<Value, EvalError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    Ok(match function {
        Unary::Not => Value::Bool(!value.to_bool()?),
        Unary::Debug => value,
        Unary::Abs => match value {
            // The absolute value of the least integer is itself, as in pgbench.
            Value::Int(value) => Value::Int(value.wrapping_abs()),
            _ => Value::Double(value.to_double()?.abs()),
        },
        Unary::Int => Value::Int(value.to_int()?),
        Unary::Double => Value::Double(value.to_double()?),
        Unary::Sqrt => Value::Double(value.to_double()?.sqrt()),
        Unary::Ln => Value::Double(value.to_double()?.ln()),
        Unary::Exp => Value::Double(value.to_double()?.exp()),
    })
}

pub(crate) fn binary(
    function: Binary,
    a: Value,
    b: Value,
    random: &mut RandomState,
) -> Result<Value, EvalError> {
    if function == Binary::Is {
        return Ok(Value::Bool(a == b));
    }
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    let doubles = matches!(a, Value::Double(_)) || matches!(b, Value::Double(_));
    Ok(match function {
        Binary::Add if doubles => Value::Double(a.to_double()? + b.to_double()?),
        Binary::Subtract if doubles => Value::Double(a.to_double()? - b.to_double()?),
        Binary::Multiply if doubles => Value::Double(a.to_double()? * b.to_double()?),
        Binary::Divide if doubles => Value::Double(a.to_double()? / b.to_double()?),
        Binary::Equal if doubles => Value::Bool(a.to_double()? == b.to_double()?),
        Binary::NotEqual if doubles => Value::Bool(a.to_double()? != b.to_double()?),
        Binary::Less if doubles => Value::Bool(a.to_double()? < b.to_double()?),
        Binary::LessOrEqual if doubles => Value::Bool(a.to_double()? <= b.to_double()?),
        Binary::Power => Value::Double(a.to_double()?.powf(b.to_double()?)),
        _ => integers(function, a.to_int()?, b.to_int()?, random)?,
    })
}

fn integers(function: Binary, a: i64, b: i64, random: &mut RandomState) -> Result<Value, EvalError> {
    let checked = |result: Option<i64>, operation| result.ok_or(EvalError::Overflow { operation });
    Ok(Value::Int(match function {
        Binary::Add => checked(a.checked_add(b), "add")?,
        Binary::Subtract => checked(a.checked_sub(b), "sub")?,
        Binary::Multiply => checked(a.checked_mul(b), "mul")?,
        Binary::Divide | Binary::Modulo if b == 0 => return Err(EvalError::DivisionByZero),
        Binary::Divide => checked(a.checked_div(b), "div")?,
        Binary::Modulo => a.wrapping_rem(b),
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        // The CPU shifts by the lowest 6 bits, and pgbench leaves it to the CPU.
        Binary::ShiftLeft => a.wrapping_shl(b as u32),
        Binary::ShiftRight => a.wrapping_shr(b as u32),
        Binary::HashFnv1a => hash::fnv1a(a, b),
        Binary::HashMurmur2 => hash::murmur2(a, b),
        Binary::Random => {
            check_range(a, b)?;
            random.range_i64(a, b)
        }
        Binary::Equal => return Ok(Value::Bool(a == b)),
        Binary::NotEqual => return Ok(Value::Bool(a != b)),
        Binary::Less => return Ok(Value::Bool(a < b)),
        Binary::LessOrEqual => return Ok(Value::Bool(a <= b)),
        // Handled before, in doubles or for any values.
        Binary::Power | Binary::Is => return Ok(Value::Null),
    }))
}

pub(crate) fn ternary(
    function: Ternary,
    values: [Value; 3],
    random: &mut RandomState,
) -> Result<Value, EvalError> {
    if values.iter().any(|value| value.is_null()) {
        return Ok(Value::Null);
    }
    let [a, b, c] = values;
    let (a, b) = (a.to_int()?, b.to_int()?);
    if function == Ternary::Permute {
        let seed = c.to_int()?;
        return if b > 0 { Ok(Value::Int(hash::permute(a, b, seed))) } else { Err(EvalError::PermuteSize) };
    }
    check_range(a, b)?;
    let parameter = c.to_double()?;
    Ok(Value::Int(match function {
        Ternary::RandomGaussian if parameter >= 2.0 => distribution::gaussian(random, a, b, parameter),
        Ternary::RandomGaussian => return Err(EvalError::GaussianParameter(parameter)),
        Ternary::RandomExponential if parameter > 0.0 => distribution::exponential(random, a, b, parameter),
        Ternary::RandomExponential => return Err(EvalError::ExponentialParameter(parameter)),
        Ternary::RandomZipfian if (1.001..=1000.0).contains(&parameter) => {
            distribution::zipfian(random, a, b, parameter)
        }
        Ternary::RandomZipfian | Ternary::Permute => return Err(EvalError::ZipfianParameter(parameter)),
    }))
}

pub(crate) fn extremum(function: Extremum, values: &[Value]) -> Result<Value, EvalError> {
    if values.iter().any(|value| value.is_null()) {
        return Ok(Value::Null);
    }
    let Some((first, rest)) = values.split_first() else {
        return Ok(Value::Null);
    };
    if values.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut extremum = first.to_double()?;
        for value in rest {
            let value = value.to_double()?;
            let keep = match function {
                Extremum::Least => extremum < value,
                Extremum::Greatest => extremum > value,
            };
            extremum = if keep { extremum } else { value };
        }
        return Ok(Value::Double(extremum));
    }
    let mut extremum = first.to_int()?;
    for value in rest {
        let value = value.to_int()?;
        extremum = match function {
            Extremum::Least => extremum.min(value),
            Extremum::Greatest => extremum.max(value),
        };
    }
    Ok(Value::Int(extremum))
}

/// Checks the bounds of random numbers: in order, and at most 2^63 - 1 numbers between them.
fn check_range(min: i64, max: i64) -> Result<(), EvalError> {
    if min > max {
        return Err(EvalError::EmptyRandomRange);
    }
    match max.checked_sub(min).and_then(|width| width.checked_add(1)) {
        Some(_) => Ok(()),
        None => Err(EvalError::RandomRangeTooLarge),
    }
}
