//! The tables of `tables = "star"`: a wholesaler's orders around which are customers, parts and suppliers, with the rows of the crate
//! `tpchgen`.

use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, Write as _};

use host::Progress;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;
use wire::blocking::{Session, SessionError};

use crate::control::Control;
use crate::error::Error;

/// Units of scale in what the generator calls a scale factor of 1.
const SCALES_PER_FACTOR: f64 = 100.0;
/// Keeps 0.29 × 200,000 from being a row short: the generator cuts off fractions.
const ROUNDING: f64 = 1.0 + 1e-12;
/// The text that remarks are parts of. The generator's own default is 300 MB.
const TEXT_BYTES: i32 = 16 << 20;
/// Bytes of a message, about.
const CHUNK_BYTES: usize = 200_000;

/// A table: its name, and its columns in the generator's order.
struct Table {
    name: &'static str,
    columns: &'static str,
}

const REGION: Table = Table { name: "region", columns: "id int not null, name text not null, remark text" };
const NATION: Table = Table {
    name: "nation",
    columns: "id int not null, name text not null, region int not null, remark text",
};
const SUPPLIER: Table = Table {
    name: "supplier",
    columns: "id int not null, name text not null, address text not null, nation int not null, phone text not null, \
              balance numeric(12, 2) not null, remark text",
};
const PART: Table = Table {
    name: "part",
    columns: "id int not null, name text not null, manufacturer text not null, brand text not null, kind text not null, \
              size int not null, container text not null, price numeric(12, 2) not null, remark text",
};
const PART_SUPPLIER: Table = Table {
    name: "part_supplier",
    columns: "part int not null, supplier int not null, available int not null, cost numeric(12, 2) not null, remark text",
};
const CUSTOMER: Table = Table {
    name: "customer",
    columns: "id int not null, name text not null, address text not null, nation int not null, phone text not null, \
              balance numeric(12, 2) not null, segment text not null, remark text",
};
const ORDERS: Table = Table {
    name: "orders",
    columns: "id bigint not null, customer int not null, status text not null, total numeric(12, 2) not null, \
              ordered date not null, priority text not null, clerk text not null, ship_priority int not null, remark text",
};
const ORDER_LINE: Table = Table {
    name: "order_line",
    columns: "order_id bigint not null, part int not null, supplier int not null, line int not null, \
              quantity numeric(12, 2) not null, price numeric(12, 2) not null, discount numeric(12, 2) not null, \
              tax numeric(12, 2) not null, returned text not null, status text not null, shipped date not null, \
              committed date not null, received date not null, instruction text not null, transport text not null, remark text",
};

/// Creates and fills the tables in a database, without keys and indexes.
pub(crate) fn fill_star_tables(
    server: &Control,
    database: &str,
    scale: u32,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let words = Distributions::static_default();
    let texts = TextPool::new(TEXT_BYTES, words);
    let factor = f64::from(scale) / SCALES_PER_FACTOR * ROUNDING;
    let mut filling = Filling { server, session: server.connect(database)?, scale, progress };
    let regions = RegionGenerator::new_with_distributions_and_text_pool(words, &texts);
    filling.load(&REGION, regions.iter(), None)?;
    let nations = NationGenerator::new_with_distributions_and_text_pool(words, &texts);
    filling.load(&NATION, nations.iter(), None)?;
    let suppliers = SupplierGenerator::new_with_distributions_and_text_pool(factor, 1, 1, words, &texts);
    let count = SupplierGenerator::calculate_row_count(factor, 1, 1);
    filling.load(&SUPPLIER, suppliers.iter(), Some(count))?;
    let parts = PartGenerator::new_with_distributions_and_text_pool(factor, 1, 1, words, &texts);
    let count = PartGenerator::calculate_row_count(factor, 1, 1);
    filling.load(&PART, parts.iter(), Some(count))?;
    let supplied = PartSuppGenerator::new_with_text_pool(factor, 1, 1, &texts);
    // Of four suppliers.
    filling.load(&PART_SUPPLIER, supplied.iter(), Some(4 * count))?;
    let customers = CustomerGenerator::new_with_distributions_and_text_pool(factor, 1, 1, words, &texts);
    let count = CustomerGenerator::calculate_row_count(factor, 1, 1);
    filling.load(&CUSTOMER, customers.iter(), Some(count))?;
    let orders = OrderGenerator::new_with_distributions_and_text_pool(factor, 1, 1, words, &texts);
    let count = OrderGenerator::calculate_row_count(factor, 1, 1);
    filling.load(&ORDERS, orders.iter(), Some(count))?;
    let lines = LineItemGenerator::new_with_distributions_and_text_pool(factor, 1, 1, words, &texts);
    filling.load(&ORDER_LINE, lines.iter(), None)
}

/// A database that is filled.
struct Filling<'a> {
    server: &'a Control,
    session: Session,
    scale: u32,
    progress: &'a dyn Progress,
}

impl Filling<'_> {
    /// Creates a table and loads it in the same transaction, which permits freezing, and saves WAL if its level is minimal.
    fn load(
        &mut self,
        Table { name, columns }: &Table,
        rows: impl Iterator<Item = impl Display>,
        count: Option<i64>,
    ) -> Result<(), Error> {
        let (server, progress) = (self.server, self.progress);
        let sql = |error: SessionError| server.error(format!("load {name}"), &error);
        let what = format!("{}, scale {}: loading {name}", server.title, self.scale);
        let total = count.and_then(|count| u64::try_from(count).ok());
        self.session.execute(&format!("begin; create table {name} ({columns})")).map_err(sql)?;
        let mut interrupted = false;
        let copied = self.session.copy_in(
            &format!("copy {name} from stdin (format text, delimiter '|', freeze)"),
            |writer| {
                let mut text = String::new();
                let mut done = 0;
                for row in rows {
                    // Each value is followed by the delimiter.
                    let _ = write!(text, "{row}");
                    text.pop();
                    text.push('\n');
                    done += 1;
                    if text.len() < CHUNK_BYTES {
                        continue;
                    }
                    if progress.interrupted() {
                        interrupted = true;
                        return Err(ErrorKind::Interrupted.into());
                    }
                    writer.write_all(text.as_bytes())?;
                    text.clear();
                    progress.step(&what, done, total);
                }
                writer.write_all(text.as_bytes())
            },
        );
        if interrupted {
            // The session ends with an open transaction: the server rolls back.
            return Err(host::Error::Interrupted.into());
        }
        copied.map_err(sql)?;
        self.session.execute("commit").map_err(sql)
    }
}
