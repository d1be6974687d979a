\set one random(1, 7)
\set other 1 + (:one + random(0, 5)) % 7
\set year random(1993, 1997)
select /* transport-priority */
       l.transport, count(*) filter (where o.priority in ('1-URGENT', '2-HIGH')) as urgent,
       sum(case when o.priority in ('1-URGENT', '2-HIGH') then 0 else 1 end) as others
from orders o
join order_line l on l.order_id = o.id
where l.transport in (split_part('AIR,FOB,MAIL,RAIL,REG AIR,SHIP,TRUCK', ',', :one::int),
                      split_part('AIR,FOB,MAIL,RAIL,REG AIR,SHIP,TRUCK', ',', :other::int))
  and l.shipped < l.committed
  and l.committed < l.received
  and l.received between make_date(:year::int, 1, 1) and make_date(:year::int, 12, 31)
group by l.transport
order by l.transport;
