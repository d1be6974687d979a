-- The oldest open order of each district is delivered.
\if :pace > 0
\set keying int(2000000 * :pace)
\sleep :keying us
\endif
\set w 1 + :client_id % :scale
\set carrier random(1, 10)
begin;
-- Who delivers at the same time waits, and then leaves out the districts whose oldest order the other one has taken.
with oldest as (
    select d as district, n.id from generate_series(1, 10) d,
    lateral (select id from new_order where warehouse = :w and district = d order by id limit 1 for update) n
), taken as (
    delete from new_order n using oldest o where n.warehouse = :w and n.district = o.district and n.id = o.id
    returning n.district, n.id
), sent as (
    update orders s set carrier = :carrier from taken t
    where s.warehouse = :w and s.district = t.district and s.id = t.id
    returning s.district, s.id, s.customer
), delivered as (
    update order_line l set delivered = now() from sent s
    where l.warehouse = :w and l.district = s.district and l.order_id = s.id
    returning s.district, s.customer, l.amount
)
update customer c set balance = balance + due, deliveries = deliveries + 1
from (select district, customer, sum(amount) as due from delivered group by district, customer) o
where c.warehouse = :w and c.district = o.district and c.id = o.customer;
commit;
\if :pace > 0
\set thinking int(least(50000000, -5000000 * ln(random(1, 1000000) / 1000000.0)) * :pace)
\sleep :thinking us
\endif
