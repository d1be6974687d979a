\set month random(0, 59)
select /* promotion-share */
       100 * sum(case when p.kind like 'PROMO%' then l.price * (1 - l.discount) else 0 end)
           / sum(l.price * (1 - l.discount)) as percent
from order_line l
join part p on p.id = l.part
where l.shipped >= date '1993-01-01' + :month::int * interval '1 month'
  and l.shipped < date '1993-01-01' + (:month::int + 1) * interval '1 month';
