\set quarter random(0, 19)
select /* late-orders */
       o.priority, count(*) as orders
from orders o
where o.ordered >= date '1993-01-01' + :quarter::int * interval '3 months'
  and o.ordered < date '1993-01-01' + (:quarter::int + 1) * interval '3 months'
  and exists (select 1 from order_line l where l.order_id = o.id and l.received > l.committed)
group by o.priority
order by o.priority;
