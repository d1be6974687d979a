\set first random(1, :rows - 999)
select id, price, label from item where id between :first and :first + 999;
