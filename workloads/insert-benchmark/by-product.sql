\set product random(0, :products - 1)
select product, customer, price from sale where product >= :product
order by product, customer, price limit :rows_per_query;
