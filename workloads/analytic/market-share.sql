\set seller random(1, 10)
\set size random(1, 6)
\set metal random(1, 5)
select /* market-share */
       year, sum(case when seller = split_part('ARGENTINA,BRAZIL,CANADA,CHINA,FRANCE,GERMANY,INDIA,JAPAN,KENYA,PERU', ',', :seller::int)
                      then revenue else 0 end) / sum(revenue) as share
from (
    select date_part('year', o.ordered) as year, m.name as seller, l.price * (1 - l.discount) as revenue
    from part p
    join order_line l on l.part = p.id
    join supplier s on s.id = l.supplier
    join nation m on m.id = s.nation
    join orders o on o.id = l.order_id
    join customer c on c.id = o.customer
    join nation n on n.id = c.nation
    join region r on r.id = n.region
    where r.name = split_part('AMERICA,AMERICA,AMERICA,ASIA,EUROPE,EUROPE,ASIA,ASIA,AFRICA,AMERICA', ',', :seller::int)
      and p.kind like split_part('ECONOMY,LARGE,MEDIUM,PROMO,SMALL,STANDARD', ',', :size::int) || ' % '
                      || split_part('TIN,NICKEL,BRASS,STEEL,COPPER', ',', :metal::int)
      and o.ordered between date '1995-01-01' and date '1996-12-31'
) sale
group by year
order by year;
