\set region random(1, 5)
\set year random(1993, 1997)
select /* domestic-revenue */
       n.name, sum(l.price * (1 - l.discount)) as revenue
from region r
join nation n on n.region = r.id
join customer c on c.nation = n.id
join orders o on o.customer = c.id
join order_line l on l.order_id = o.id
join supplier s on s.id = l.supplier and s.nation = c.nation
where r.name = split_part('AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST', ',', :region::int)
  and o.ordered between make_date(:year::int, 1, 1) and make_date(:year::int, 12, 31)
group by n.name
order by revenue desc, n.name;
