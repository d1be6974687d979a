\set segment random(1, 5)
\set day random(0, 30)
select /* open-orders */
       o.id, o.ordered, o.ship_priority, sum(l.price * (1 - l.discount)) as revenue
from customer c
join orders o on o.customer = c.id
join order_line l on l.order_id = o.id
where c.segment = split_part('AUTOMOBILE,BUILDING,FURNITURE,HOUSEHOLD,MACHINERY', ',', :segment::int)
  and o.ordered < date '1995-03-01' + :day::int
  and l.shipped > date '1995-03-01' + :day::int
group by o.id, o.ordered, o.ship_priority
order by revenue desc, o.ordered, o.id
limit 10;
