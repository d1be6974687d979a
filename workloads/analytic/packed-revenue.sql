\set one random(11, 15)
\set two random(21, 25)
\set three random(31, 35)
\set least random(1, 10)
select /* packed-revenue */
       sum(l.price * (1 - l.discount)) as revenue
from order_line l
join part p on p.id = l.part
where l.instruction = 'DELIVER IN PERSON'
  and l.transport in ('AIR', 'REG AIR')
  and (p.brand = 'Brand#' || :one::text and p.container in ('SM BAG', 'SM BOX', 'SM CAN', 'SM CASE', 'SM PACK', 'SM PKG')
           and p.size <= 15 and l.quantity between :least::int and :least::int + 20
       or p.brand = 'Brand#' || :two::text and p.container in ('MED BAG', 'MED BOX', 'MED CAN', 'MED CASE', 'MED PACK', 'MED PKG')
           and p.size <= 25 and l.quantity between :least::int + 10 and :least::int + 30
       or p.brand = 'Brand#' || :three::text and p.container in ('LG BAG', 'LG BOX', 'LG CAN', 'LG CASE', 'LG PACK', 'LG PKG')
           and p.size <= 35 and l.quantity between :least::int + 20 and :least::int + 40);
