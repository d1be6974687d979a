\set first random(10, 14)
select /* idle-customers */
       code, count(*) as customers, sum(balance) as balance
from (
    select left(c.phone, 2) as code, c.balance
    from customer c
    where left(c.phone, 2)::int in (:first::int, :first::int + 3, :first::int + 6, :first::int + 9, :first::int + 12,
                                                   :first::int + 15, :first::int + 18)
      and c.balance > (select avg(balance) from customer where balance > 0)
      and not exists (select 1 from orders o where o.customer = c.id)
) idle
group by code
order by code;
