\set code random(1, :rows)
select label from item where code = :code;
