\set register random(0, :registers - 1)
select register, customer, price from sale where register >= :register
order by register, customer, price limit :rows_per_query;
