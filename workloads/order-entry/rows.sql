do $setup$
begin
    if :items < 1 or :customers < 10 or :customers % 1009 = 0 then
        raise exception 'at least one item and ten customers, and no multiple of 1009 of them';
    end if;
end
$setup$;

-- A number from low to high that looks random, and is the same each time and on each server.
create function pg_temp.drawn(seed bigint, low int, high int) returns int language sql immutable as $$
    select low + (((seed % 1000003 + 17) * 48271 % 2147483647 * 16807 % 2147483647) / 8 % (high - low + 1))::int
$$;

insert into item
select id, pg_temp.drawn(id, 1, 10000), left(md5('item' || id), 14 + id % 11),
       pg_temp.drawn(id + 1, 100, 10000) / 100.0,
       case id % 10 when 0 then 'original ' else '' end || left(md5('data' || id), 26)
from generate_series(1, :items) id;

insert into warehouse
select id, 'W' || id, left(md5('street' || id), 20), left(md5('city' || id), 15), 'ST', '123411111',
       pg_temp.drawn(id, 0, 2000) / 10000.0, 100 * :customers
from generate_series(1, :scale) id;

insert into district
select w, d, 'D' || d, left(md5('street' || w || '/' || d), 20), left(md5('city' || w || '/' || d), 15), 'ST',
       '123411111', pg_temp.drawn(10 * w + d, 0, 2000) / 10000.0, 10 * :customers, :customers + 1
from generate_series(1, :scale) w, generate_series(1, 10) d;

insert into stock
select w, i, pg_temp.drawn(w * 7919 + i, 10, 100),
       array_fill(left(md5(w || '/' || i), 24)::char(24), array[10]), 0, 0, 0,
       case i % 10 when 0 then 'original ' else '' end || left(md5('stock' || i), 26)
from generate_series(1, :scale) w, generate_series(1, :items) i;

-- The first thousand of a district have the thousand names; the names of the others are drawn like those looked up.
insert into customer
select w, d, c, left(md5(w || '/' || d || '/' || c), 8 + c % 9), 'OE',
       last_name(case when c <= 1000 then c - 1
                      else ((pg_temp.drawn(seed, 0, 255) | pg_temp.drawn(seed + 1, 0, 999)) + 157) % 1000 end),
       left(md5('street' || seed), 20), left(md5('city' || seed), 15), 'ST', '123411111',
       pg_temp.drawn(seed + 2, 1, 9999)::text, statement_timestamp(),
       case when pg_temp.drawn(seed + 3, 1, 10) = 1 then 'BC' else 'GC' end, 50000,
       pg_temp.drawn(seed + 4, 0, 5000) / 10000.0, -10, 10, 1, 0, left(repeat(md5('data' || seed), 16), 300 + c % 201)
from generate_series(1, :scale) w, generate_series(1, 10) d, generate_series(1, :customers) c,
     lateral (select ((w * 10 + d) * :customers::bigint + c) * 5 as seed) seeds;

insert into history
select warehouse, district, id, warehouse, district, since, 10, left(md5('paid' || id), 20) from customer;

-- Each customer has an order, in an order of their own; seven of ten are delivered, and were free.
insert into orders
select w, d, o, 1 + (o * 1009 + d) % :customers, statement_timestamp(),
       case when o <= :customers * 0.7 then pg_temp.drawn(seed, 1, 10) end, pg_temp.drawn(seed + 1, 5, 15), true
from generate_series(1, :scale) w, generate_series(1, 10) d, generate_series(1, :customers) o,
     lateral (select ((w * 10 + d) * :customers::bigint + o) * 3 as seed) seeds;

insert into new_order select warehouse, district, id from orders where carrier is null;

insert into order_line
select warehouse, district, id, line, pg_temp.drawn(seed, 1, :items), warehouse,
       case when carrier is not null then entered end, 5,
       case when carrier is null then pg_temp.drawn(seed + 1, 1, 999999) / 100.0 else 0 end, left(md5(seed::text), 24)
from orders, generate_series(1, lines) line,
     lateral (select ((warehouse * 10 + district) * :customers::bigint + id) * 31 + 2 * line as seed) seeds;
