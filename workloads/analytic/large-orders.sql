\set quantity random(230, 250)
select /* large-orders */
       c.name, c.id as customer, o.id, o.ordered, o.total, sum(l.quantity) as quantity
from customer c
join orders o on o.customer = c.id
join order_line l on l.order_id = o.id
where o.id in (select order_id from order_line group by order_id having sum(quantity) > :quantity::int)
group by c.id, o.id
order by o.total desc, o.ordered, o.id
limit 100;
