\set first random(1, :rows - 9)
select sum_in_sql(:first, 10);
