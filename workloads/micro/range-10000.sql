\set first random(1, :rows - 10000 + 1)
select sum(price) from item where id between :first and :first + 9999;
