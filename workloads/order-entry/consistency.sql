-- Consistency conditions of the order entry model, by their numbers there. The eleventh holds before a load only.
create function pg_temp.none(condition text, query text) returns void language plpgsql as $$
declare
    violation text;
begin
    -- Without a limit, for which plans would be those of the first row.
    execute format('select found::text from (%s) found', query) into violation;
    if violation is not null then
        raise exception 'condition % does not hold: %', condition, violation;
    end if;
end
$$;

select pg_temp.none('1 (a warehouse was paid what its districts were)', $$
    select w.id, w.ytd, sum(d.ytd) from warehouse w join district d on d.warehouse = w.id
    group by w.id, w.ytd having w.ytd <> sum(d.ytd)
$$);

select pg_temp.none('2 (the next order of a district follows its last one)', $$
    select d.warehouse, d.id, next_order, last, last_new
    from district d,
    lateral (select max(id) as last from orders o where o.warehouse = d.warehouse and o.district = d.id) o,
    lateral (select max(id) as last_new from new_order n where n.warehouse = d.warehouse and n.district = d.id) n
    where next_order - 1 is distinct from last or last_new <> last
$$);

select pg_temp.none('3 (the open orders of a district are consecutive)', $$
    select warehouse, district, min(id), max(id), count(*) from new_order
    group by warehouse, district having max(id) - min(id) + 1 <> count(*)
$$);

select pg_temp.none('4 (a district has the lines of its orders)', $$
    select *
    from (select warehouse, district, sum(lines) as ordered from orders group by warehouse, district) o
    full join (select warehouse, district, count(*) as lines from order_line group by warehouse, district) l
    using (warehouse, district)
    where ordered is distinct from lines
$$);

select pg_temp.none('8 (a warehouse was paid what its history has)', $$
    select w.id, w.ytd, sum(amount) from warehouse w left join history h on h.warehouse = w.id
    group by w.id, w.ytd having w.ytd is distinct from sum(amount)
$$);

select pg_temp.none('9 (a district was paid what its history has)', $$
    select d.warehouse, d.id, d.ytd, sum(amount)
    from district d left join history h on h.warehouse = d.warehouse and h.district = d.id
    group by d.warehouse, d.id, d.ytd having d.ytd is distinct from sum(amount)
$$);

select pg_temp.none('5 (an order is open if it has no carrier)', $$
    select o.warehouse, o.district, o.id, carrier, n.id as open
    from orders o left join new_order n on n.warehouse = o.warehouse and n.district = o.district and n.id = o.id
    where (carrier is null) <> (n.id is not null)
$$) where :all_orders = 1;

select pg_temp.none('6 and 7 (an order has its lines, delivered if it has a carrier)', $$
    select o.warehouse, o.district, o.id, o.lines, o.carrier, count(l.line), count(l.delivered)
    from orders o
    left join order_line l on l.warehouse = o.warehouse and l.district = o.district and l.order_id = o.id
    group by o.warehouse, o.district, o.id, o.lines, o.carrier
    having count(l.line) <> o.lines or count(l.delivered) <> case when o.carrier is null then 0 else o.lines end
$$) where :all_orders = 1;

select pg_temp.none('10 and 12 (a customer owes what was delivered and not paid)', $$
    select c.warehouse, c.district, c.id, c.balance, c.ytd_payment, due, paid
    from customer c
    left join (select o.warehouse, o.district, o.customer, sum(amount) as due
               from orders o
               join order_line l on l.warehouse = o.warehouse and l.district = o.district and l.order_id = o.id
               where delivered is not null group by o.warehouse, o.district, o.customer) d
        on d.warehouse = c.warehouse and d.district = c.district and d.customer = c.id
    left join (select customer_warehouse, customer_district, customer, sum(amount) as paid from history
               group by customer_warehouse, customer_district, customer) p
        on customer_warehouse = c.warehouse and customer_district = c.district and p.customer = c.id
    where c.balance <> coalesce(due, 0) - coalesce(paid, 0) or c.balance + c.ytd_payment <> coalesce(due, 0)
$$) where :all_orders = 1;
