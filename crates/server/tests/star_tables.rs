//! The tables of the star schema have the generator's rows.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod support;

use std::sync::Arc;

use host::NoProgress;
use server::{Content, Setup};
use support::{cache, installed, settings};
use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItemGenerator, OrderGenerator, PartSuppGenerator};
use tpchgen::text::TextPool;

/// Twice the smallest.
const SCALE: u32 = 2;
/// The same as the generator counts it.
const FACTOR: f64 = 0.02;

const FOUND: &str = "
    select 'region ' || count(*) from region union all
    select 'nation ' || count(*) from nation union all
    select 'supplier ' || count(*) from supplier union all
    select 'part ' || count(*) from part union all
    select format('part_supplier %s %s', count(*), sum(cost)) from part_supplier union all
    select 'customer ' || count(*) from customer union all
    select format('orders %s %s %s', count(*), sum(total), max(id)) from orders union all
    select format('order_line %s %s %s %s', count(*), sum(quantity)::int, sum(price), max(shipped)) from order_line union all
    select format('%s orders without a customer, %s lines without an order', (select count(*) from orders o
        where not exists (select 1 from customer c where c.id = o.customer)), (select count(*) from order_line l
        where not exists (select 1 from orders o where o.id = l.order_id)))";

fn expected() -> Vec<String> {
    let words = Distributions::static_default();
    let texts = TextPool::new(1 << 20, words);
    let decimal = |cents: i64| format!("{}.{:02}", cents / 100, cents % 100);
    let supplied: Vec<_> = PartSuppGenerator::new_with_text_pool(FACTOR, 1, 1, &texts).iter().collect();
    let cost: i64 = supplied.iter().map(|row| row.ps_supplycost.into_inner()).sum();
    let orders = OrderGenerator::new_with_distributions_and_text_pool(FACTOR, 1, 1, words, &texts);
    let orders: Vec<_> = orders.iter().collect();
    let total: i64 = orders.iter().map(|row| row.o_totalprice.into_inner()).sum();
    let last = orders.iter().map(|row| row.o_orderkey).max().unwrap();
    let lines = LineItemGenerator::new_with_distributions_and_text_pool(FACTOR, 1, 1, words, &texts);
    let lines: Vec<_> = lines.iter().collect();
    let quantity: i64 = lines.iter().map(|row| row.l_quantity).sum();
    let price: i64 = lines.iter().map(|row| row.l_extendedprice.into_inner()).sum();
    let shipped = lines.iter().map(|row| row.l_shipdate).max().unwrap();
    vec![
        "region 5".to_owned(),
        "nation 25".to_owned(),
        "supplier 200".to_owned(),
        "part 4000".to_owned(),
        format!("part_supplier {} {}", supplied.len(), decimal(cost)),
        "customer 3000".to_owned(),
        format!("orders {} {} {last}", orders.len(), decimal(total)),
        format!("order_line {} {quantity} {} {shipped}", lines.len(), decimal(price)),
        "0 orders without a customer, 0 lines without an order".to_owned(),
    ]
}

#[test]
fn the_star_schema_has_the_generators_rows_on_all_versions() {
    let setup = Setup {
        workload: "star".to_owned(),
        pgbench_tables: false,
        star_tables: true,
        statements: Vec::new(),
    };
    let content = Content { scale: SCALE, own: None, setup: Some(Arc::new(setup)) };
    for version in ["9.6", "13", "18"] {
        let template =
            server::template(&cache(), &installed(version), &[], &content, None, &NoProgress).unwrap();
        let cluster = template.clone_cluster(&cache(), &NoProgress).unwrap();
        let server = cluster.start(&settings(&[])).unwrap();
        // Parallel workers return rows in any order.
        let mut found: Vec<String> = server.session("pgdyno").unwrap().query(FOUND).unwrap();
        let mut expected = expected();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{version}");
        let relations: Vec<String> = server
            .session("pgdyno")
            .unwrap()
            .query("select relname::text from pg_class where relname like 'pgbench%' and relkind = 'r'")
            .unwrap();
        assert!(relations.is_empty(), "{version}: {relations:?}");
    }
}
