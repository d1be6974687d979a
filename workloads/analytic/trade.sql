\set one random(1, 10)
\set other 1 + (:one + random(0, 8)) % 10
select /* trade */
       seller, buyer, year, sum(revenue) as revenue
from (
    select m.name as seller, n.name as buyer, date_part('year', l.shipped) as year, l.price * (1 - l.discount) as revenue
    from order_line l
    join supplier s on s.id = l.supplier
    join nation m on m.id = s.nation
    join orders o on o.id = l.order_id
    join customer c on c.id = o.customer
    join nation n on n.id = c.nation
    where l.shipped between date '1995-01-01' and date '1996-12-31'
      and (m.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :one::int)
           and n.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :other::int)
           or m.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :other::int)
           and n.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :one::int))
) shipment
group by seller, buyer, year
order by seller, buyer, year;
