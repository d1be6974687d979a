\set first random(1, :rows - 999)
select id, label from item where id between :first and :first + 999 order by label limit 10;
