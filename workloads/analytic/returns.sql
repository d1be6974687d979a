\set quarter random(0, 7)
select /* returns */
       c.id, c.name, c.balance, n.name as nation, c.address, c.phone, c.remark,
       sum(l.price * (1 - l.discount)) as lost
from customer c
join nation n on n.id = c.nation
join orders o on o.customer = c.id
join order_line l on l.order_id = o.id
where o.ordered >= date '1993-01-01' + :quarter::int * interval '3 months'
  and o.ordered < date '1993-01-01' + (:quarter::int + 1) * interval '3 months'
  and l.returned = 'R'
group by c.id, n.name
order by lost desc, c.id
limit 20;
