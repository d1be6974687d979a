\set first random(1, :rows)
select sum_in_plpgsql(:first, 100);
