\set brand 10 * random(1, 5) + random(1, 5)
\set kind random(1, 6)
\set size random(1, 43)
select /* suppliers-per-kind */
       p.brand, p.kind, p.size, count(distinct offer.supplier) as suppliers
from part_supplier offer
join part p on p.id = offer.part
where p.brand <> 'Brand#' || :brand::text
  and p.kind not like split_part('ECONOMY,LARGE,MEDIUM,PROMO,SMALL,STANDARD', ',', :kind::int) || ' POLISHED%'
  and p.size in (:size::int, :size::int + 1, :size::int + 2, :size::int + 3, :size::int + 4, :size::int + 5, :size::int + 6,
                 :size::int + 7)
  and offer.supplier not in (select id from supplier where remark like '%Customer%Complaints%')
group by p.brand, p.kind, p.size
order by suppliers desc, p.brand, p.kind, p.size;
