\set colour random(1, 8)
select /* profit */
       nation, year, sum(profit) as profit
from (
    select n.name as nation, date_part('year', o.ordered) as year,
           l.price * (1 - l.discount) - offer.cost * l.quantity as profit
    from part p
    join order_line l on l.part = p.id
    join part_supplier offer on offer.part = l.part and offer.supplier = l.supplier
    join supplier s on s.id = l.supplier
    join nation n on n.id = s.nation
    join orders o on o.id = l.order_id
    where p.name like '%' || split_part('almond,azure,chocolate,green,lemon,navy,rose,violet', ',', :colour::int) || '%'
) sale
group by nation, year
order by nation, year desc;
