\set month random(0, 57)
with /* top-supplier */ turnover as (
    select supplier, sum(price * (1 - discount)) as revenue
    from order_line
    where shipped >= date '1993-01-01' + :month::int * interval '1 month'
      and shipped < date '1993-01-01' + (:month::int + 3) * interval '1 month'
    group by supplier
)
select s.id, s.name, s.address, s.phone, turnover.revenue
from supplier s
join turnover on turnover.supplier = s.id
where turnover.revenue = (select max(revenue) from turnover)
order by s.id;
