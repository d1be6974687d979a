\set first random(1, 4)
\set second random(1, 4)
select /* orders-per-customer */
       orders, count(*) as customers
from (
    select c.id, count(o.id) as orders
    from customer c
    left join orders o on o.customer = c.id
         and o.remark not like '%' || split_part('express,pending,special,unusual', ',', :first::int) || '%'
                               || split_part('accounts,deposits,packages,requests', ',', :second::int) || '%'
    group by c.id
) customer_orders
group by orders
order by customers desc, orders desc;
