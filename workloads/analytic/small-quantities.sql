\set brand 10 * random(1, 5) + random(1, 5)
\set container random(1, 5)
select /* small-quantities */
       sum(l.price) / 7.0 as per_year
from order_line l
join part p on p.id = l.part
where p.brand = 'Brand#' || :brand::text
  and p.container like split_part('JUMBO,LG,MED,SM,WRAP', ',', :container::int) || ' %'
  and l.quantity < (select 0.3 * avg(other.quantity) from order_line other where other.part = p.id);
