\set seller random(1, 10)
select /* late-suppliers */
       s.name, count(*) as waits
from supplier s
join nation n on n.id = s.nation
join order_line l on l.supplier = s.id
join orders o on o.id = l.order_id
where n.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :seller::int)
  and o.status = 'F'
  and l.received > l.committed
  and exists (
      select 1 from order_line other
      where other.order_id = l.order_id and other.supplier <> l.supplier)
  and not exists (
      select 1 from order_line other
      where other.order_id = l.order_id and other.supplier <> l.supplier and other.received > other.committed)
group by s.name
order by waits desc, s.name
limit 100;
