\set id random(1, 200)
select length(data) from large where id = :id;
