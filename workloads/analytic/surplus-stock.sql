\set colour random(1, 8)
\set region random(1, 5)
\set year random(1993, 1997)
select /* surplus-stock */
       s.name, s.address
from supplier s
join nation n on n.id = s.nation
join region r on r.id = n.region
where r.name = split_part('AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST', ',', :region::int)
  and s.id in (
      select offer.supplier
      from part_supplier offer
      where offer.part in (
            select id from part
            where name like split_part('almond,azure,chocolate,green,lemon,navy,rose,violet', ',', :colour::int) || '%')
        and offer.available > (
            select 0.5 * sum(l.quantity)
            from order_line l
            where l.part = offer.part
              and l.supplier = offer.supplier
              and l.shipped between make_date(:year::int, 1, 1) and make_date(:year::int, 12, 31)))
order by s.name;
