\set id random(1, :rows)
select label from item where id = 0 - :id;
