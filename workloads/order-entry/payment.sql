-- A customer pays, in 15 of 100 cases at a warehouse that is not the customer's own.
\if :pace > 0
\set keying int(3000000 * :pace)
\sleep :keying us
\endif
\set w 1 + :client_id % :scale
\set d random(1, 10)
\set remote case when :scale > 1 and random(1, 100) <= 15 then 1 else 0 end
\set cw case when :remote = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set cd case when :remote = 1 then random(1, 10) else :d end
\set cents random(100, 500000)
begin;
update warehouse set ytd = ytd + :cents * 0.01 where id = :w;
select name, street, city, state, zip from warehouse where id = :w;
update district set ytd = ytd + :cents * 0.01 where warehouse = :w and id = :d;
select name, street, city, state, zip from district where warehouse = :w and id = :d;
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
update customer set balance = balance - :cents * 0.01, ytd_payment = ytd_payment + :cents * 0.01,
    payments = payments + 1,
    data = case credit when 'GC' then data
           else left(concat_ws(' ', id, district, warehouse, :d::int, :w::int, :cents::int, data), 500) end
where warehouse = :cw and district = :cd and id = :c
returning first, middle, last, street, city, state, zip, phone, since, credit, credit_limit, discount, balance,
    case credit when 'BC' then left(data, 200) end as data;
insert into history
select :cw, :cd, :c, :w, :d, now(), :cents * 0.01, w.name || '    ' || d.name
from warehouse w join district d on d.warehouse = w.id where w.id = :w and d.id = :d;
commit;
\if :pace > 0
\set thinking int(least(120000000, -12000000 * ln(random(1, 1000000) / 1000000.0)) * :pace)
\sleep :thinking us
\endif
