\set id random(1, :rows)
update counter set n = n + 1 where id = :id;
