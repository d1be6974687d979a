\set first random(1, :rows - 999)
select max(running) from (select sum(price) over (partition by kind order by id) as running
                          from item where id between :first and :first + 999) sums;
