\set size random(1, 48)
\set metal random(1, 5)
\set region random(1, 5)
select /* cheapest-supplier */
       s.balance, s.name, n.name as nation, p.id, p.manufacturer, s.address, s.phone, s.remark
from part p
join part_supplier offer on offer.part = p.id
join supplier s on s.id = offer.supplier
join nation n on n.id = s.nation
join region r on r.id = n.region
where p.size between :size::int and :size::int + 2
  and p.kind like '%' || split_part('TIN,NICKEL,BRASS,STEEL,COPPER', ',', :metal::int)
  and r.name = split_part('AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST', ',', :region::int)
  and offer.cost = (
      select min(other.cost)
      from part_supplier other
      join supplier on supplier.id = other.supplier
      join nation on nation.id = supplier.nation
      join region on region.id = nation.region
      where other.part = p.id
        and region.name = split_part('AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST', ',', :region::int))
order by s.balance desc, n.name, s.name, p.id
limit 100;
