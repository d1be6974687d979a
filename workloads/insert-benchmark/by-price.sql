\set price random(0, :prices - 1)
select price, at, customer from sale where price >= :price order by price, at, customer limit :rows_per_query;
