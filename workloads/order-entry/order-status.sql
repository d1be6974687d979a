-- A customer asks for the last order.
\if :pace > 0
\set keying int(2000000 * :pace)
\sleep :keying us
\endif
\set cw 1 + :client_id % :scale
\set cd random(1, 10)
begin;
\if random(1, 100) <= 60
\set names least(1000, :customers)
\set name ((random(0, 255) | random(0, :names - 1)) + 223) % :names
-- In the middle of those with the name.
select id as c from (select id, row_number() over (order by first) as nth, count(*) over () as named from customer
                     where warehouse = :cw and district = :cd and last = last_name(:name)) found
where nth = (named + 1) / 2 \gset
\else
\set c 1 + ((random(0, 1023) | random(1, :customers)) + 259) % :customers
\endif
select first, middle, last, balance from customer where warehouse = :cw and district = :cd and id = :c;
select id as o, entered, carrier from orders where warehouse = :cw and district = :cd and customer = :c
order by id desc limit 1 \gset
select item, supplier, quantity, amount, delivered from order_line
where warehouse = :cw and district = :cd and order_id = :o;
commit;
\if :pace > 0
\set thinking int(least(100000000, -10000000 * ln(random(1, 1000000) / 1000000.0)) * :pace)
\sleep :thinking us
\endif
