\set seller random(1, 10)
\set times random(2, 3)
select /* valuable-stock */
       offer.part, sum(offer.cost * offer.available) as value
from part_supplier offer
join supplier s on s.id = offer.supplier
join nation n on n.id = s.nation
where n.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :seller::int)
group by offer.part
having sum(offer.cost * offer.available) > (
    select :times::int * sum(mine.cost * mine.available) / count(distinct mine.part)
    from part_supplier mine
    join supplier on supplier.id = mine.supplier
    join nation on nation.id = supplier.nation
    where nation.name = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :seller::int))
order by value desc, offer.part;
