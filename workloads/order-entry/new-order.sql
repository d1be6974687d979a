-- A customer orders 5 to 15 items. One of a hundred orders has an item that does not exist, and is rolled back.
\if :pace > 0
\set keying int(18000000 * :pace)
\sleep :keying us
\endif
\set w 1 + :client_id % :scale
\set d random(1, 10)
\set c 1 + ((random(0, 1023) | random(1, :customers)) + 259) % :customers
\set lines random(5, 15)
\set wrong random(1, 100)
-- Of each line: the item, its number, and the warehouse that supplies it, of one in a hundred another. 0 is no item.
\set i1 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items
\set q1 random(1, 10)
\set s1 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i2 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items
\set q2 random(1, 10)
\set s2 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i3 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items
\set q3 random(1, 10)
\set s3 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i4 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items
\set q4 random(1, 10)
\set s4 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i5 case when :lines < 5 then 0 when :lines = 5 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q5 random(1, 10)
\set s5 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i6 case when :lines < 6 then 0 when :lines = 6 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q6 random(1, 10)
\set s6 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i7 case when :lines < 7 then 0 when :lines = 7 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q7 random(1, 10)
\set s7 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i8 case when :lines < 8 then 0 when :lines = 8 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q8 random(1, 10)
\set s8 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i9 case when :lines < 9 then 0 when :lines = 9 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q9 random(1, 10)
\set s9 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i10 case when :lines < 10 then 0 when :lines = 10 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q10 random(1, 10)
\set s10 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i11 case when :lines < 11 then 0 when :lines = 11 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q11 random(1, 10)
\set s11 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i12 case when :lines < 12 then 0 when :lines = 12 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q12 random(1, 10)
\set s12 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i13 case when :lines < 13 then 0 when :lines = 13 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q13 random(1, 10)
\set s13 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i14 case when :lines < 14 then 0 when :lines = 14 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q14 random(1, 10)
\set s14 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
\set i15 case when :lines < 15 then 0 when :lines = 15 and :wrong = 1 then :items + 1 \
    else 1 + ((random(0, 8191) | random(1, :items)) + 5867) % :items end
\set q15 random(1, 10)
\set s15 case when :scale > 1 and random(1, 100) = 1 then 1 + (:w + random(0, :scale - 2)) % :scale else :w end
begin;
select c.discount, c.last, c.credit, w.tax from customer c join warehouse w on w.id = c.warehouse
where c.warehouse = :w and c.district = :d and c.id = :c;
update district set next_order = next_order + 1 where warehouse = :w and id = :d
returning next_order - 1 as o, tax \gset
insert into orders values (:w, :d, :o, :c, now(), null, :lines,
    :w = all ((array[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8,
           :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines]));
insert into new_order values (:w, :d, :o);
select count(*) as known from unnest(
           array[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8,
           :i9, :i10, :i11, :i12, :i13, :i14, :i15]::int[]) ordered
join item on id = ordered \gset
\if :known < :lines
rollback;
\else
-- In one order of all transactions, so that none waits in a circle.
select item, quantity, dist_info[:d], data from stock
where (warehouse, item) in (select * from unnest(
           array[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8,
           :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[],
           array[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8,
           :i9, :i10, :i11, :i12, :i13, :i14, :i15]::int[]))
order by warehouse, item for update;
update stock set quantity = quantity - :q1 + case when quantity >= :q1 + 10 then 0 else 91 end, ytd = ytd + :q1,
    orders = orders + 1, remote_orders = remote_orders + (:s1 <> :w)::int where warehouse = :s1 and item = :i1;
update stock set quantity = quantity - :q2 + case when quantity >= :q2 + 10 then 0 else 91 end, ytd = ytd + :q2,
    orders = orders + 1, remote_orders = remote_orders + (:s2 <> :w)::int where warehouse = :s2 and item = :i2;
update stock set quantity = quantity - :q3 + case when quantity >= :q3 + 10 then 0 else 91 end, ytd = ytd + :q3,
    orders = orders + 1, remote_orders = remote_orders + (:s3 <> :w)::int where warehouse = :s3 and item = :i3;
update stock set quantity = quantity - :q4 + case when quantity >= :q4 + 10 then 0 else 91 end, ytd = ytd + :q4,
    orders = orders + 1, remote_orders = remote_orders + (:s4 <> :w)::int where warehouse = :s4 and item = :i4;
update stock set quantity = quantity - :q5 + case when quantity >= :q5 + 10 then 0 else 91 end, ytd = ytd + :q5,
    orders = orders + 1, remote_orders = remote_orders + (:s5 <> :w)::int where warehouse = :s5 and item = :i5;
\if :lines >= 6
update stock set quantity = quantity - :q6 + case when quantity >= :q6 + 10 then 0 else 91 end, ytd = ytd + :q6,
    orders = orders + 1, remote_orders = remote_orders + (:s6 <> :w)::int where warehouse = :s6 and item = :i6;
\if :lines >= 7
update stock set quantity = quantity - :q7 + case when quantity >= :q7 + 10 then 0 else 91 end, ytd = ytd + :q7,
    orders = orders + 1, remote_orders = remote_orders + (:s7 <> :w)::int where warehouse = :s7 and item = :i7;
\if :lines >= 8
update stock set quantity = quantity - :q8 + case when quantity >= :q8 + 10 then 0 else 91 end, ytd = ytd + :q8,
    orders = orders + 1, remote_orders = remote_orders + (:s8 <> :w)::int where warehouse = :s8 and item = :i8;
\if :lines >= 9
update stock set quantity = quantity - :q9 + case when quantity >= :q9 + 10 then 0 else 91 end, ytd = ytd + :q9,
    orders = orders + 1, remote_orders = remote_orders + (:s9 <> :w)::int where warehouse = :s9 and item = :i9;
\if :lines >= 10
update stock set quantity = quantity - :q10 + case when quantity >= :q10 + 10 then 0 else 91 end, ytd = ytd + :q10,
    orders = orders + 1, remote_orders = remote_orders + (:s10 <> :w)::int where warehouse = :s10 and item = :i10;
\if :lines >= 11
update stock set quantity = quantity - :q11 + case when quantity >= :q11 + 10 then 0 else 91 end, ytd = ytd + :q11,
    orders = orders + 1, remote_orders = remote_orders + (:s11 <> :w)::int where warehouse = :s11 and item = :i11;
\if :lines >= 12
update stock set quantity = quantity - :q12 + case when quantity >= :q12 + 10 then 0 else 91 end, ytd = ytd + :q12,
    orders = orders + 1, remote_orders = remote_orders + (:s12 <> :w)::int where warehouse = :s12 and item = :i12;
\if :lines >= 13
update stock set quantity = quantity - :q13 + case when quantity >= :q13 + 10 then 0 else 91 end, ytd = ytd + :q13,
    orders = orders + 1, remote_orders = remote_orders + (:s13 <> :w)::int where warehouse = :s13 and item = :i13;
\if :lines >= 14
update stock set quantity = quantity - :q14 + case when quantity >= :q14 + 10 then 0 else 91 end, ytd = ytd + :q14,
    orders = orders + 1, remote_orders = remote_orders + (:s14 <> :w)::int where warehouse = :s14 and item = :i14;
\if :lines >= 15
update stock set quantity = quantity - :q15 + case when quantity >= :q15 + 10 then 0 else 91 end, ytd = ytd + :q15,
    orders = orders + 1, remote_orders = remote_orders + (:s15 <> :w)::int where warehouse = :s15 and item = :i15;
\endif
\endif
\endif
\endif
\endif
\endif
\endif
\endif
\endif
\endif
-- The lines, as the customer is shown them.
with lines as (
    select line, l.item, supplier, l.quantity, l.quantity * price as amount, dist_info[:d] as dist_info, name, price,
           s.quantity as in_stock, i.data like 'original%' and s.data like 'original%' as is_brand
    from unnest(
           array[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8,
           :i9, :i10, :i11, :i12, :i13, :i14, :i15]::int[],
           array[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8,
           :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[],
           array[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8,
           :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[]) with ordinality l (item, supplier, quantity, line)
    join item i on i.id = l.item join stock s on s.warehouse = l.supplier and s.item = l.item
), inserted as (
    insert into order_line select :w, :d, :o, line, item, supplier, null, quantity, amount, dist_info from lines
)
select supplier, item, name, quantity, in_stock, case when is_brand then 'B' else 'G' end as brand, price, amount
from lines order by line;
commit;
\endif
\if :pace > 0
\set thinking int(least(120000000, -12000000 * ln(random(1, 1000000) / 1000000.0)) * :pace)
\sleep :thinking us
\endif
