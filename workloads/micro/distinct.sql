\set first random(1, :rows - 999)
select distinct kind from item where id between :first and :first + 999;
