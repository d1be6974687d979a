\set first random(1, :rows - 9999)
select kind, count(*), sum(price), max(price) from item where id between :first and :first + 9999 group by kind;
