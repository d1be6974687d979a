\set code random(1, :rows)
select price from item where code = :code;
